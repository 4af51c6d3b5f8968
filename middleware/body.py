"""The client's request body: read within a limit, decoded if it is compressed, and given back unread.

A body that cannot be read here goes nowhere. Ids in it would pass without anybody looking whose they are,
and many a model server reads plain JSON whatever the header says of its coding.
"""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope

from ..events.errors import RequestError
from .headers import header

__all__ = ["RequestBody", "read_body", "with_body"]

_WINDOWS = {b"gzip": (31,), b"x-gzip": (31,), b"deflate": (15, -15)}
"""zlib window bits: `deflate` should be a zlib stream, but some clients send a bare one."""

_DIGITS = 18
"""Of a length that any machine could take."""


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A body that has been read.

    Attributes:
        messages: the ASGI messages it came in, the client's disconnect included.
        data: the whole body, decoded; None if it did not come whole.
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


async def read_body(scope: Scope, receive: Receive, limit: int) -> RequestBody:
    """Read the body of a request.

    Raises:
        RequestError: 413, as soon as it is known that the body is larger than `limit` bytes; 415, if its
            coding is none of those that are read here; 400, if it is not coded as it says.
    """
    coding = _coding(scope)
    length = header(scope["headers"], b"content-length")
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
    return RequestBody(messages, _decoded(data, coding, limit) if coding and data else data)


def _coding(scope: Scope) -> bytes:
    """Return how the body is coded; nothing if it is not."""
    told = b",".join(value for name, value in scope["headers"] if name == b"content-encoding")
    codings = [coding for part in told.lower().split(b",") if (coding := part.strip()) != b"identity"]
    coding = b",".join(filter(None, codings))
    if coding and coding not in _WINDOWS:
        message = (
            "The request body's Content-Encoding is not read here; send it plain, or as gzip or deflate."
        )
        raise RequestError(message, status=415)
    return coding


def _decoded(data: bytes, coding: bytes, limit: int) -> bytes:
    for window in _WINDOWS[coding]:
        plain, rest = b"", data
        try:
            while True:
                decoder = zlib.decompressobj(window)
                plain += decoder.decompress(rest, limit + 1 - len(plain))
                if len(plain) > limit:
                    raise _too_large(limit)
                if not decoder.eof:
                    raise _broken(coding)
                rest = decoder.unused_data
                if not rest:  # else it is a gzip file of several members
                    return plain
        except zlib.error:
            continue
    raise _broken(coding)


def _broken(coding: bytes) -> RequestError:
    return RequestError(f"The request body is not the {coding.decode()} that its Content-Encoding says.")


def _too_large(limit: int) -> RequestError:
    message = f"The request body is larger than the {limit} bytes that max_body allows."
    return RequestError(message, status=413)
