"""The client's request body: read within a limit, decoded if it is compressed, and given back unread."""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope

from ..events.errors import RequestError

__all__ = ["RequestBody", "header", "read_body", "with_body"]

_WINDOWS = {b"gzip": (31,), b"x-gzip": (31,), b"deflate": (15, -15)}
"""zlib window bits: `deflate` should be a zlib stream, but some clients send a bare one."""

_DIGITS = 18
"""Of a length that any machine could take."""


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A body that has been read.

    Attributes:
        messages: the ASGI messages it came in, the client's disconnect included.
        data: the whole body, decoded; None if it did not come whole or cannot be decoded.
    """

    messages: list[Message]
    data: bytes | None

    def replay(self, receive: Receive) -> Receive:
        """Return a `receive` that gives the very same messages and then whatever comes next."""
        pending = deque(self.messages)

        async def replayed() -> Message:
            return pending.popleft() if pending else await receive()

        return replayed


def with_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a whole body and then whatever comes next."""
    return RequestBody([{"type": "http.request", "body": body, "more_body": False}], body).replay(receive)


def header(scope: Scope, name: bytes) -> bytes:
    """Return a request header's value, empty if there is none."""
    return next((value for key, value in scope["headers"] if key == name), b"")


async def read_body(scope: Scope, receive: Receive, limit: int) -> RequestBody:
    """Read the body of a request.

    Raises:
        RequestError: 413, as soon as it is known that the body is larger than `limit` bytes.
    """
    length = header(scope, b"content-length")
    # Python reads no number of more than 4,300 digits.
    if length.isdigit() and (len(length) > _DIGITS or int(length) > limit):
        raise _too_large(limit)
    messages: list[Message] = []
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] == "http.disconnect":
            return RequestBody(messages, None)
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
        if not message.get("more_body", False):
            break
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    encoding = header(scope, b"content-encoding").lower()
    return RequestBody(messages, _decoded(data, encoding, limit))


def _decoded(data: bytes, encoding: bytes, limit: int) -> bytes | None:
    if encoding in (b"", b"identity"):
        return data
    for window in _WINDOWS.get(encoding, ()):
        plain, rest = b"", data
        try:
            while True:
                decoder = zlib.decompressobj(window)
                plain += decoder.decompress(rest, limit + 1 - len(plain))
                if len(plain) > limit:
                    raise _too_large(limit)
                if not decoder.eof:
                    return None
                rest = decoder.unused_data
                if not rest:  # else it is a gzip file of several members
                    return plain
        except zlib.error:
            continue
    return None


def _too_large(limit: int) -> RequestError:
    message = f"The request body is larger than the {limit} bytes that max_body allows."
    return RequestError(message, status=413)
