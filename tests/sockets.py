"""A client of a WebSocket on ASGI's own calls: what it says, when, and each message that it hears."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from model_server import HOSTED
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from waiting import News, no_hanging

__all__ = ["ENDS", "Socket", "connected", "create", "error", "handshake", "payloads", "pieces"]

Json = dict[str, Any]

ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
"""The types of the events after which a client may go on."""


def handshake(path: str = "/v1/responses", headers: Sequence[tuple[bytes, bytes]] = (), **more: Any) -> Scope:
    """Build the scope of a WebSocket as uvicorn builds it; `more` replaces any of its keys."""
    own = [
        (b"host", b"localhost"),
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA=="),
        (b"sec-websocket-version", b"13"),
    ]
    return {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [*own, *headers],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8000),
        "subprotocols": [],
        "state": {},
        "extensions": {"websocket.http.response": {}},
    } | more


def create(**fields: Any) -> Json:
    """Make a message that asks for a picture; `fields` replaces any of its own."""
    body = {"model": "local-model", "input": "Draw a kite.", "tools": [HOSTED]}
    return {"type": "response.create", **body, **fields}


def error(status: int, message: str, **fields: Any) -> Json:
    """Make the event that tells of an error; `fields` replaces any of the error's own."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    told = {"type": kind, "code": None, "message": message, "param": None, **fields}
    return {"type": "error", "status": status, "error": told}


def payloads(body: bytes) -> list[str]:
    """Cut the events' data out of a body of canonical frames."""
    return [frame.split("\ndata: ")[1] for frame in body.decode().split("\n\n") if frame.startswith("event")]


def pieces(body: bytes, *places: int) -> list[bytes]:
    """Cut a body at the given places."""
    return [body[start:end] for start, end in zip((0, *places), (*places, len(body)), strict=True)]


class Socket:
    """The web server's side of one WebSocket.

    Attributes:
        messages: what the client was sent, in order.
        reads: while it is not set, sends are held up, as they are by a slow client.
        stops_at: the type of the event that the client does not take, nor anything behind it.
        sent_to: set as soon as something is on its way to it.
        left: what sends raise once the client has gone, where the server raises at all.
        raised: what came out of the application.
    """

    def __init__(self, app: ASGIApp, scope: Scope) -> None:
        self.messages: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.stops_at = ""
        self.sent_to = asyncio.Event()
        self.left: OSError | None = None
        self.raised: BaseException | None = None
        self._app = app
        self._scope = scope
        self._news = News()
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        self.receive: Receive = self._said.get
        self.send: Send = self._hear
        self._said.put_nowait({"type": "websocket.connect"})

    async def run(self) -> None:
        try:
            await self._app(self._scope, self.receive, self.send)
        except Exception as raised:  # noqa: BLE001  `connected` judges it
            self.raised = raised

    def say(self, message: Json | str | bytes) -> Message:
        """Send a message: text, bytes, or anything else as JSON."""
        kind = "bytes" if isinstance(message, bytes) else "text"
        data = message if isinstance(message, bytes | str) else json.dumps(message)
        said: Message = {"type": "websocket.receive", kind: data}
        self._said.put_nowait(said)
        return said

    def leave(self, code: int = 1000) -> None:
        """Close the connection."""
        self._said.put_nowait({"type": "websocket.disconnect", "code": code, "reason": ""})

    async def _hear(self, message: Message) -> None:
        self.sent_to.set()
        if self.stops_at and json.loads(message.get("text", "{}")).get("type") == self.stops_at:
            self.reads.clear()
        await self.reads.wait()
        if self.left is not None:
            raise self.left
        assert not self.closed, f"{message} after the end"
        assert (message["type"] in ("websocket.accept", "websocket.close")) or self.accepted, message
        self.messages.append(message)
        self._news.tell()

    @property
    def unread(self) -> int:
        """How many of its messages nobody has received."""
        return self._said.qsize()

    @property
    def accepted(self) -> bool:
        return bool(self.messages) and self.messages[0]["type"] == "websocket.accept"

    @property
    def closed(self) -> bool:
        return bool(self.messages) and self.messages[-1]["type"] == "websocket.close"

    @property
    def texts(self) -> list[str]:
        """The text messages, in order."""
        return [message["text"] for message in self.messages if message["type"] == "websocket.send"]

    @property
    def events(self) -> list[Json]:
        return [json.loads(text) for text in self.texts]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    async def heard(self, count: int) -> None:
        """Wait until there are so many messages, the acceptance included."""
        await self._news.until(lambda: len(self.messages) >= count)

    async def heard_of(self, kind: str, times: int = 1) -> None:
        """Wait until an event of a type has come so many times."""
        await self._news.until(lambda: self.types.count(kind) >= times)

    async def heard_ends(self, count: int = 1) -> None:
        """Wait until so many responses have ended, well or not."""
        await self._news.until(lambda: sum(kind in ENDS for kind in self.types) >= count)


@asynccontextmanager
async def connected(
    app: ASGIApp,
    scope: Scope | None = None,
    *,
    raises: BaseException | None = None,
    owners: int = 0,
    stays: bool = False,
    answered: bool = True,
) -> AsyncIterator[Socket]:
    """Open a WebSocket while the body of the `with` goes on; then nothing of it may be left running.

    Args:
        app: the application.
        scope: of the WebSocket, `handshake()` unless told otherwise.
        raises: what must come out of the application.
        owners: how many backends are opened meanwhile, each of which is left in a task of its own.
        stays: whether it is for the application to end the connection; else the client leaves at the end.
        answered: whether to wait first until the application has accepted or refused.
    """
    before = asyncio.all_tasks()
    with no_hanging() as deadline:
        async with deadline, asyncio.TaskGroup() as group:
            socket = Socket(app, handshake() if scope is None else scope)
            group.create_task(socket.run())
            if answered:
                await socket.heard(1)
            yield socket
            if not stays:
                socket.leave()
    if socket.raised is not raises:
        raise AssertionError(f"{socket.raised!r} instead of {raises!r}") from socket.raised
    assert len(asyncio.all_tasks() - before) == owners
