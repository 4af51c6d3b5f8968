"""One response's way to a client of a WebSocket: event streams in, one text message for each event out.

Events come from two sides. The exchange writes whole canonical frames into its sink. Whatever needs no
translation, and every refusal, is an ordinary HTTP answer of the inner application, and `send` takes its
ASGI messages. Both are cut into the events' JSON, which travels on as it is; the end of the body and
`[DONE]` have no counterpart here, so a stream that ends before its terminal event gets an error.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Literal

from starlette.types import Message

from ...events.actions import Finish
from ...events.errors import RemoteProtocolError, RequestError
from ...events.response_object import NEUTRAL
from ...events.sse import SSEDecoder
from ...events.wire import TERMINAL, dumps, loads
from ..headers import Headers, header
from ..shutdown import STOPPING, STOPPING_CODE
from .messages import error_payload

__all__ = ["WebSocketAnswer"]

_DONE: Final = b"[DONE]"
_TERMINAL_NAMES: Final = frozenset(name.encode() for name in TERMINAL)
_ENDING = re.compile(rb'"type"\s*:\s*"(?:error|response\.(?:completed|incomplete|failed|cancelled))"')
"""What a last event holds; the only ones that are parsed."""
_REFUSAL = 64 << 10
"""Bytes kept of a refusal's body."""
_WORDS = 1_000
"""Characters of a refusal that is no JSON."""


class WebSocketAnswer:
    """The sink and the HTTP client of one `response.create`.

    Args:
        send_text: sends one text message.
        stream_id: the client's name for the lane, added to each event; None for none.
        max_event: bytes of one event, or of an answer that is no stream.

    Attributes:
        over: set as soon as the client knows, or is about to be told, how the response ended.
        held_up: whether a message is on its way to the client, or was given up there.
    """

    at_once = True  # uvicorn, for one, closes its WebSockets first

    def __init__(
        self, send_text: Callable[[str], Awaitable[None]], stream_id: str | None, max_event: int
    ) -> None:
        self._send_text = send_text
        self._suffix = b"" if stream_id is None else b',"stream_id":%b}' % dumps(stream_id)
        self._max_event = max_event
        self._decoder = SSEDecoder(max_event=max_event)
        self._frames: bytes | None = None
        self._rest: Iterator[bytes] = iter(())
        self._unsent: bytes | None = None
        self._mode: Literal["", "stream", "whole", "refused"] = ""
        self._status = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._told_error = False
        self.over = asyncio.Event()
        self.held_up = False

    # -- the sink ------------------------------------------------------------------------------

    def head(self, status: int, headers: Headers) -> None:
        """Do nothing: an open WebSocket has no place for a head."""

    async def write(self, frames: bytes) -> None:
        """Send each event of whole canonical frames.

        When it is cancelled in the midst of them, the next call gives the same frames again and
        goes on where it was.
        """
        if frames is not self._frames:
            self._frames, self._rest = frames, self._payloads(frames)
        while True:
            if self._unsent is None:
                self._unsent = next(self._rest, None)
            if self._unsent is None:
                return
            await self._tell(self._unsent)
            self._unsent = None

    async def keepalive(self) -> None:
        """Do nothing: servers send pings of their own."""

    async def close(self, finish: Finish) -> None:
        """End the answer; a response that never began becomes an error."""
        if finish.pieces is None and finish.stopping:
            await self.stop()
        elif finish.pieces is None:
            await self.fail(502, finish.told or NEUTRAL)
        self.over.set()

    def _payloads(self, frames: bytes) -> Iterator[bytes]:
        start = 0
        while start < len(frames):
            name_end = frames.find(b"\n", start)
            if not frames.startswith(b"event: ", start):  # [DONE]
                start = name_end + 2
                continue
            data_end = frames.find(b"\n", name_end + 1)
            if frames[start + 7 : name_end] in _TERMINAL_NAMES:
                # Not only when the exchange has ended: by then the client may have asked for the next one.
                self.over.set()
            yield frames[name_end + 7 : data_end]
            start = data_end + 2

    # -- the HTTP client -----------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Take a message of an HTTP answer."""
        if self.over.is_set():
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], list(message.get("headers", ())))
        elif message["type"] == "http.response.body":
            last = not message.get("more_body", False)
            try:
                await self._take(message.get("body", b""), last=last)
            except RemoteProtocolError:
                await self.fail(502, NEUTRAL)

    async def end(self) -> None:
        """Learn that nothing more will come."""
        if not self.over.is_set() and not self._told_error:
            await self.fail(502, NEUTRAL)
        self.over.set()

    async def refuse(self, error: RequestError) -> None:
        """Tell the client what is wrong with its request."""
        kind = "invalid_request_error"
        await self._tell_end(
            error_payload(error.status, error.message, kind=kind, param=error.param, code=error.code)
        )

    async def stop(self) -> None:
        """Tell the client that the response ends because the server stops."""
        await self.fail(503, STOPPING, STOPPING_CODE)

    async def fail(self, status: int, message: str, code: str | None = None) -> None:
        """Tell the client that something went wrong on this side of it."""
        await self._tell_end(error_payload(status, message, kind="server_error", code=code))

    def _begin(self, status: int, headers: Headers) -> None:
        self._status = status
        kind = header(headers, b"content-type")
        if not 200 <= status < 300:
            self._mode = "refused"
        else:
            self._mode = "stream" if kind.lower().startswith(b"text/event-stream") else "whole"

    async def _take(self, piece: bytes, *, last: bool) -> None:
        if self._mode == "stream":
            for event in self._decoder.feed(piece):
                await self._event(event.data)
            for event in self._decoder.close() if last else ():
                await self._event(event.data)
        else:
            self._size += len(piece)
            if self._size <= (_REFUSAL if self._mode == "refused" else self._max_event):
                self._pieces.append(piece)
        if not last:
            return
        if self._mode == "refused":
            await self._tell_end(_refusal(self._status, b"".join(self._pieces)))
        elif self._mode == "whole":
            await self._whole(b"".join(self._pieces))
        await self.end()

    async def _event(self, data: bytes) -> None:
        """Hand an event of the inner application on."""
        if data.strip() == _DONE or self.over.is_set():
            return
        if _ENDING.search(data):
            kind, data = _ending(data)
            self._told_error |= kind == "error"
            if kind in TERMINAL:
                self.over.set()
        await self._tell(data)

    async def _whole(self, body: bytes) -> None:
        """Hand a response on that came whole, though a stream was asked for."""
        response = _parsed(body)
        if response.get("object") != "response":
            return
        kind = f"response.{response.get('status')}"
        kind = kind if kind in TERMINAL else "response.completed"
        await self._tell_end(b'{"type":"%b","sequence_number":0,"response":%b}' % (kind.encode(), body))

    async def _tell_end(self, payload: bytes) -> None:
        """Tell the last that is to be told: while a slow client holds it up, nobody may tell another end."""
        self.over.set()
        await self._tell(payload)

    async def _tell(self, payload: bytes) -> None:
        if self._suffix and payload.endswith(b"}") and len(payload) > 2:
            payload = payload[:-1] + self._suffix
        self.held_up = True
        await self._send_text(payload.decode(errors="replace"))
        self.held_up = False


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        value = loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _ending(data: bytes) -> tuple[str, bytes]:
    """Return the type of what looks like a last event, and the event with its error nested."""
    event = _parsed(data)
    kind = event.get("type")
    if kind != "error" or isinstance(event.get("error"), dict):
        return str(kind), data
    error = {name: event.get(name) for name in ("code", "message", "param")}
    return kind, dumps({**event, "error": {"type": "server_error", **error}})


def _refusal(status: int, body: bytes) -> bytes:
    """Make an error event of the answer with which a request was refused."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    parsed = _parsed(body)
    told = parsed.get("error", parsed)
    if not isinstance(told, dict) or not isinstance(told.get("message"), str):
        words = body.decode(errors="replace").strip()[:_WORDS]
        return error_payload(status, words or f"The model server answered {status}.", kind=kind)
    error = {"type": kind, "code": None, "param": None, **told}
    return dumps({"type": "error", "status": status, "error": error})
