"""A client of the middleware on ASGI's own calls: what it says, when, and each message that it hears."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from driving import NOW
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.headers import Headers
from model_server import HOSTED
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from waiting import News, no_hanging

__all__ = ["Client", "ask", "conversation", "draw", "lifespan", "middleware", "post"]

Json = dict[str, Any]


def counted() -> Callable[[str], str]:
    """Make ids that count: `ig_1`, `ig_2`, …"""
    ids: Counter[str] = Counter()

    def new_id(prefix: str) -> str:
        ids[prefix] += 1
        return f"{prefix}_{ids[prefix]}"

    return new_id


def middleware(app: ASGIApp, backend: Any, **settings: Any) -> ImageGenerationMiddleware:
    """Build the middleware with ids that count and a clock that stands still."""
    return ImageGenerationMiddleware(app, backend, new_id=counted(), now=lambda: NOW, **settings)


def draw(*, stream: bool = True, **more: Any) -> Json:
    """Make a request for a picture; `more` replaces any of its fields."""
    return {"model": "local-model", "input": "Draw a kite.", "tools": [HOSTED], "stream": stream, **more}


def post(path: str = "/v1/responses", headers: Sequence[tuple[bytes, bytes]] = (), **more: Any) -> Scope:
    """Build the scope of a request as uvicorn builds it; `more` replaces any of its keys."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    } | more


class Client:
    """The web server's side of one request. As with uvicorn, a complete response ends in a disconnect.

    Args:
        app: the application.
        request: the body: bytes, anything else as JSON, a list piece by piece.
        scope: of the request.
        unfinished: whether the body never ends.

    Attributes:
        messages: what the client was sent, in order.
        said: what it has said itself.
        reads: while it is not set, sends are held up, as they are by a slow client.
        sent_to: set as soon as something is on its way to it.
        left: what sends raise once the client has gone, where the server raises at all.
        pauses: how often each send gives way to other tasks, before it is done and after.
        raised: what came out of the application.
    """

    def __init__(self, app: ASGIApp, request: Any, scope: Scope, *, unfinished: bool = False) -> None:
        self.messages: list[Message] = []
        self.said: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.sent_to = asyncio.Event()
        self.left: OSError | None = None
        self.pauses = 0
        self.raised: BaseException | None = None
        self._app = app
        self._scope = scope
        self._news = News()
        self._queue: asyncio.Queue[Message] = asyncio.Queue()
        # Bound once, so that they can be told by identity.
        self.receive: Receive = self._queue.get
        self.send: Send = self._hear
        pieces = request if isinstance(request, list) else [request]
        for count, piece in enumerate(pieces, 1):
            body = piece if isinstance(piece, bytes) else json.dumps(piece).encode()
            more = unfinished or count < len(pieces)
            self.say({"type": "http.request", "body": body, "more_body": more})

    async def run(self) -> None:
        try:
            await self._app(self._scope, self.receive, self.send)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  `conversation` judges it
            self.raised = error

    def say(self, message: Message) -> None:
        self.said.append(message)
        self._queue.put_nowait(message)

    async def _hear(self, message: Message) -> None:
        for _ in range(self.pauses):
            await asyncio.sleep(0)
        self.sent_to.set()
        await self.reads.wait()
        if self.left is not None:
            raise self.left
        assert not self.complete, f"{message} after the end"
        assert (message["type"] == "http.response.start") == (not self.messages), message
        self.messages.append(message)
        self._news.tell()
        if self.complete:
            self.leave()
        for _ in range(self.pauses):
            await asyncio.sleep(0)

    def leave(self) -> None:
        """Close the connection."""
        self.say({"type": "http.disconnect"})

    async def heard(self, needle: bytes) -> None:
        """Wait until the body holds `needle`."""
        await self._news.until(lambda: needle in self.body)

    async def heard_all(self) -> None:
        """Wait until the response is complete."""
        await self._news.until(lambda: self.complete)

    @property
    def unread(self) -> int:
        """How many of its messages nobody has received."""
        return self._queue.qsize()

    @property
    def complete(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("more_body") is False

    @property
    def status(self) -> int:
        status: int = self.messages[0]["status"]
        return status

    @property
    def headers(self) -> Headers:
        return list(self.messages[0]["headers"])

    @property
    def pieces(self) -> list[bytes]:
        """The bodies of all messages behind the head."""
        return [message["body"] for message in self.messages[1:]]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@asynccontextmanager
async def conversation(
    app: ASGIApp,
    request: Any,
    scope: Scope | None = None,
    *,
    raises: BaseException | None = None,
    owners: int = 0,
) -> AsyncIterator[Client]:
    """Make one request while the body of the `with` goes on; then nothing of it may be left running.

    Args:
        app: the application.
        request: the body: bytes, anything else as JSON, a list piece by piece.
        scope: of the request, `post()` unless told otherwise.
        raises: what must come out of the application.
        owners: how many backends are opened meanwhile, each of which is left in a task of its own.
    """
    before = asyncio.all_tasks()
    with no_hanging() as deadline:
        async with deadline, asyncio.TaskGroup() as group:
            client = Client(app, request, post() if scope is None else scope)
            group.create_task(client.run())
            yield client
    if client.raised is not raises:
        raise AssertionError(f"{client.raised!r} instead of {raises!r}") from client.raised
    assert len(asyncio.all_tasks() - before) == owners


async def ask(app: ASGIApp, request: Any, scope: Scope | None = None, **how: Any) -> Client:
    """Make one whole request."""
    async with conversation(app, request, scope, **how) as client:
        pass
    return client


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """Start an application as a server does, and shut it down at the end."""
    said: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()
    with no_hanging() as deadline:
        async with deadline, asyncio.TaskGroup() as group:
            group.create_task(app({"type": "lifespan", "state": {}}, said.get, heard.put))
            for phase in ("startup", "shutdown"):
                said.put_nowait({"type": f"lifespan.{phase}"})
                assert await heard.get() == {"type": f"lifespan.{phase}.complete"}
                if phase == "startup":
                    yield
