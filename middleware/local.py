"""Asks an ASGI application in this process, as a client on a socket would."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Scope

from .headers import Headers

__all__ = ["Answer", "lifespan", "post"]

OnBytes = Callable[[int, bytes], None]
"""Is shown an answer's status and a piece of its body."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: status, headers, body."""

    status: int
    headers: Headers
    body: bytes


async def post(
    app: ASGIApp,
    path: str,
    body: bytes,
    *,
    headers: Headers | None = None,
    on_bytes: OnBytes | None = None,
) -> Answer:
    """POST a JSON body and read the answer to its end.

    Args:
        app: the application.
        path: where to.
        body: JSON.
        headers: more request headers.
        on_bytes: is shown the status and each piece of the body as it comes.
    """
    client = _Client(body, on_bytes)
    await app(_scope(path, len(body), headers or []), client.receive, client.send)
    return Answer(client.status, client.headers, b"".join(client.pieces))


class _Client:
    """The client's end of one request."""

    def __init__(self, body: bytes, on_bytes: OnBytes | None) -> None:
        self._pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._on_bytes = on_bytes
        self._ended = asyncio.Event()
        self.status = 0
        self.headers: Headers = []
        self.pieces: list[bytes] = []

    async def receive(self) -> Message:
        if self._pending:
            return self._pending.pop()
        await self._ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers.extend(message.get("headers", ()))
            return
        piece = message.get("body", b"")
        self.pieces.append(piece)
        if self._on_bytes is not None and piece:
            self._on_bytes(self.status, piece)
        if not message.get("more_body", False):
            self._ended.set()


def _scope(path: str, length: int, headers: Headers) -> Scope:
    own = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [*own, *headers],
        "client": None,
        "server": None,
    }


@contextlib.asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """Start an application and shut it down afterwards.

    Raises:
        RuntimeError: it says that it could not start, in its own words.
    """
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    task = asyncio.create_task(_live(app, to_app, from_app))
    try:
        await to_app.put({"type": "lifespan.startup"})
        started = await from_app.get()
        if started["type"] != "lifespan.startup.complete":
            raise RuntimeError(started.get("message") or "the application could not start")
        yield
        await to_app.put({"type": "lifespan.shutdown"})
        await from_app.get()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _live(app: ASGIApp, to_app: asyncio.Queue[Message], from_app: asyncio.Queue[Message]) -> None:
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    try:
        await app(scope, to_app.get, from_app.put)
    except Exception as error:  # noqa: BLE001  an application that knows no lifespan may just raise
        await from_app.put({"type": "lifespan.startup.failed", "message": str(error)})
