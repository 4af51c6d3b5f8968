"""Recorded exchanges: `ReplayApp` stands for the model server, `Recorder` takes down what one says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..events.errors import RequestError
from ..events.wire import loads
from .answers import error_body, send_json
from .body import read_body

__all__ = [
    "Chunks",
    "Meta",
    "RecordedTurn",
    "Recorder",
    "Recording",
    "ReplayApp",
    "byte_by_byte",
    "frame_by_frame",
    "split_at",
    "whole",
]

Chunks = Callable[[bytes], Iterable[bytes]]
"""How a body is cut into the pieces that are sent one by one."""

Meta = Mapping[str, str | int | float | bool]
"""Facts about a recording: server, version, model, date, command, …"""

_MAX_BODY = 1 << 30
_FRAME_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """What a model server answered to one request.

    Attributes:
        body: the raw bytes.
        status: the HTTP status.
        headers: raw pairs, names in lower case. A Content-Length among them is not replayed.
    """

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"text/event-stream"),)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded exchange.

    Attributes:
        request: the client's request, parsed.
        turns: what the model server answered.
        client: what the client got, raw.
        meta: where it comes from.
    """

    request: Any
    turns: tuple[RecordedTurn, ...]
    client: bytes
    meta: Meta = field(default_factory=dict)


def whole(body: bytes) -> Iterable[bytes]:
    """Send a body in one piece."""
    return (body,)


def byte_by_byte(body: bytes) -> Iterable[bytes]:
    """Send each byte alone."""
    return (body[i : i + 1] for i in range(len(body)))


def frame_by_frame(body: bytes) -> Iterable[bytes]:
    """Send each server-sent event alone."""
    return filter(None, _FRAME_END.split(body))


def split_at(*points: int) -> Chunks:
    """Return a way to cut bodies at these offsets; negative ones count from the end."""

    def cut(body: bytes) -> Iterable[bytes]:
        offsets = sorted(range(len(body))[point] for point in points if -len(body) <= point < len(body))
        return (body[i:j] for i, j in zip([0, *offsets], [*offsets, len(body)], strict=True))

    return cut


class ReplayApp:
    """An ASGI app that answers the n-th POST with the n-th recorded turn.

    A request that is no JSON is a 400, any other method a 404, and a POST after the last turn a
    500, all in OpenAI's error envelope; neither of the first two uses up a turn.

    Args:
        turns: what to answer, in order.
        chunks: cuts the bodies into the pieces that are sent.
        final: answers every request after the last turn.

    Attributes:
        requests: the parsed bodies of all POSTs, in order.
    """

    def __init__(
        self, turns: Iterable[RecordedTurn], *, chunks: Chunks = whole, final: RecordedTurn | None = None
    ) -> None:
        self.requests: list[Any] = []
        self._turns = tuple(turns)
        self._chunks = chunks
        self._final = final

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: `http` or `lifespan`."""
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
        elif scope["type"] != "http":
            raise NotImplementedError(f"ReplayApp knows no ASGI scope of type {scope['type']!r}")
        elif scope["method"] != "POST":
            await _fail(send, 404, f"Only POST requests were recorded, and this is a {scope['method']}.")
        else:
            await self._post(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            data = (await read_body(scope, receive, _MAX_BODY)).data
            self.requests.append(loads(data or b""))
        except (RequestError, ValueError):
            await _fail(send, 400, "The request body must be JSON.")
            return
        asked, recorded = len(self.requests), len(self._turns)
        turn = self._turns[asked - 1] if asked <= recorded else self._final
        if turn is None:
            await _fail(
                send, 500, f"This is request {asked}, but the recording has no more than {recorded} turns."
            )
        else:
            await self._play(turn, send)

    async def _play(self, turn: RecordedTurn, send: Send) -> None:
        headers = [(name, value) for name, value in turn.headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": turn.status, "headers": headers})
        for piece in self._chunks(turn.body):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Recorder:
    """ASGI middleware that keeps what the app below answers to each POST, and changes nothing.

    Attributes:
        turns: the answers, in the order in which they began. One that broke off is kept as far as
            it came.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.turns: list[RecordedTurn] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand everything on, and take down the answers to POSTs."""
        if scope["type"] == "http" and scope["method"] == "POST":
            await _Answer(self.turns, send).record(self._app, scope, receive)
        else:
            await self._app(scope, receive, send)


class _Answer:
    """One answer while it is being given."""

    def __init__(self, turns: list[RecordedTurn], send: Send) -> None:
        self._turns = turns
        self._send = send
        self._place: int | None = None
        self._pieces: list[bytes] = []

    async def record(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        try:
            await app(scope, receive, self._keep)
        finally:
            self._note()

    async def _keep(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._place = len(self._turns)
            headers = tuple((bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ()))
            self._turns.append(RecordedTurn(b"", message["status"], headers))
        elif message["type"] == "http.response.body":
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._note()  # an app may go on after its answer, and the next turn does not wait for it
        await self._send(message)

    def _note(self) -> None:
        if self._place is not None:
            begun = self._turns[self._place]
            self._turns[self._place] = RecordedTurn(b"".join(self._pieces), begun.status, begun.headers)


async def _fail(send: Send, status: int, message: str) -> None:
    await send_json(send, status, error_body(message, kind="replay_error"), [(b"x-should-retry", b"false")])
