"""Where a response's events go: into the body of an event stream, or into one JSON object at the end.

The head of turn one is kept until the first bytes are there: only then is it known whether the answer
is a stream, an object or an error.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from starlette.types import Send

from ..events.actions import Finish
from ..events.response_object import NEUTRAL
from ..events.sse import KEEPALIVE
from .answers import send_json, send_stopping, send_upstream_error
from .headers import DIGESTS, Headers, header

__all__ = ["JSONSink", "SSESink", "Sink"]

_REWRITTEN = {
    b"content-length",
    b"content-encoding",
    b"content-type",
    b"etag",
    b"trailer",
    b"transfer-encoding",
    *DIGESTS,
}


class Sink(Protocol):
    """One client's end of a response.

    Attributes:
        at_once: whether a server that stops closes such a connection before it waits for any.
    """

    at_once: bool

    def head(self, status: int, headers: Headers) -> None:
        """Keep the head of turn one; nothing is sent yet."""
        ...

    def write(self, frames: bytes) -> Awaitable[None]:
        """Send whole frames."""
        ...

    async def keepalive(self) -> None:
        """Show that the response is alive, if something can be shown."""
        ...

    async def close(self, finish: Finish) -> None:
        """End the answer. This sends the last body message."""
        ...


class SSESink:
    """Writes an event stream: each `write` is one ASGI message, at a frame boundary."""

    at_once = False

    def __init__(self, send: Send, error_headers: Headers) -> None:
        self._send = send
        self._error_headers = error_headers
        self._status = 200
        self._headers: Headers = []
        self._begun = False

    def head(self, status: int, headers: Headers) -> None:
        """Keep the head, with what a body of our own needs instead of what was said of the old one."""
        kind = header(headers, b"content-type")
        kept = [pair for pair in headers if pair[0].lower() not in _REWRITTEN]
        names = {name.lower() for name, _ in kept}
        stream = kind if kind.startswith(b"text/event-stream") else b"text/event-stream; charset=utf-8"
        kept.append((b"content-type", stream))
        for name, value in ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")):
            if name not in names:
                kept.append((name, value))
        self._status, self._headers = status, kept

    def write(self, frames: bytes) -> Awaitable[None]:
        """Send whole frames, after the head."""
        if not self._begun:
            return self._begin(frames)
        return self._send({"type": "http.response.body", "body": frames, "more_body": True})

    async def keepalive(self) -> None:
        """Send a comment, unless the client has not even seen the head."""
        if self._begun:
            await self._send({"type": "http.response.body", "body": KEEPALIVE, "more_body": True})

    async def close(self, finish: Finish) -> None:
        """End the body; a response that never began becomes an error answer."""
        if finish.pieces is None and not self._begun:
            await _send_failure(self._send, finish, self._error_headers)
            return
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, frames: bytes) -> None:
        await self._send({"type": "http.response.start", "status": self._status, "headers": self._headers})
        self._begun = True
        await self.write(frames)


class JSONSink:
    """Waits for the end and sends the final response object."""

    at_once = False

    def __init__(self, send: Send, error_headers: Headers) -> None:
        self._send = send
        self._error_headers = error_headers
        self._status = 200
        self._headers: Headers = []

    def head(self, status: int, headers: Headers) -> None:
        """Keep the head but for what was said of the old body."""
        self._status = status
        self._headers = [pair for pair in headers if pair[0].lower() not in _REWRITTEN]

    async def write(self, frames: bytes) -> None:
        """Do nothing: the translator builds no frames for a client that wants none."""

    async def keepalive(self) -> None:
        """Do nothing: the head can only be sent with the whole."""

    async def close(self, finish: Finish) -> None:
        """Send the object, or an error if the model server failed before anything was made."""
        response = finish.response
        if response is None or finish.failed:
            await _send_failure(self._send, finish, self._error_headers)
        else:
            await send_json(self._send, self._status, response, self._headers)


async def _send_failure(send: Send, finish: Finish, headers: Headers) -> None:
    if finish.stopping:
        await send_stopping(send, headers)
    else:
        await send_upstream_error(send, finish.told or NEUTRAL, headers)
