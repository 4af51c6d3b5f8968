"""Both ends of the middleware on ASGI's own calls, and its backend, each told what to do when."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from driving import NOW, paint
from imagecall.events.sse import KEEPALIVE
from imagecall.events.tools.base import ToolCall
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import Image, ImageRequest, OnPartial
from kite import SAID, response, usage
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from transcript import Event, call, encode, event, message, number

__all__ = [
    "HOSTED",
    "JSON",
    "KITE_TURNS",
    "SSE",
    "Answer",
    "Client",
    "ModelServer",
    "Painter",
    "ask",
    "calling",
    "conversation",
    "counted",
    "draw",
    "frames",
    "lifespan",
    "middleware",
    "png",
    "post",
    "saying",
    "settle",
    "silence",
    "whole",
]

Json = dict[str, Any]
Headers = list[tuple[bytes, bytes]]

JSON: Headers = [(b"content-type", b"application/json")]
HOSTED: Json = {"type": "image_generation"}
SSE: Headers = [(b"content-type", b"text/event-stream")]

Step = bytes | asyncio.Event | BaseException | Callable[[Receive, Send], Awaitable[None]]
"""Send a piece of the body, wait, raise, or do something else."""


def frames(*items: Iterable[Event], response_id: str = "resp_up1", status: str = "completed") -> list[bytes]:
    """Make a turn of the model server, one element for each frame; `items` as `transcript` tells them."""
    told = [one for events in items for one in events]
    output = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    opening = [
        event(name, response=response("in_progress", id=response_id)) for name in ("created", "in_progress")
    ]
    whole = response(status, id=response_id, output=output, usage=usage(100, 10))
    return [encode([one]) for one in number([*opening, *told, event(status, response=whole)])]


def calling(*prompts: str, arguments: str | None = None, response_id: str = "resp_up1") -> list[bytes]:
    """Make a turn that calls the tool once for each prompt."""
    calls = []
    for index, prompt in enumerate(prompts):
        item = {
            "id": f"fc_{index}",
            "type": "function_call",
            "call_id": f"call_{index}",
            "name": "image_generation",
            "arguments": json.dumps({"prompt": prompt}) if arguments is None else arguments,
            "status": "completed",
        }
        calls.append(call(index, item, item["arguments"]))
    return frames(*calls, response_id=response_id)


def saying(*deltas: str, response_id: str = "resp_up2") -> list[bytes]:
    """Make a turn that says something, and no more."""
    return frames(message(0, "msg_1", *deltas), response_id=response_id)


KITE_TURNS = (calling("a red kite over a harbour"), saying(*SAID))


def whole(turn: Sequence[bytes]) -> bytes:
    """Make the body with which the same server answers who does not stream."""
    last: Json = json.loads(turn[-1].split(b"data: ")[1])
    return json.dumps(last["response"]).encode()


def png(prompt: str) -> bytes:
    """Paint a small PNG whose colour depends on the prompt."""
    return base64.b64decode(paint(ToolCall("", {"prompt": prompt})).data)


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


async def settle() -> None:
    """Let every task go on until it waits for something."""
    for _ in range(30):
        await asyncio.sleep(0)


class _News:
    """Lets others wait until something has changed."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def tell(self) -> None:
        self._news.set()

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            self._news.clear()
            await self._news.wait()


# -- the model server ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model server does with one request.

    Attributes:
        steps: what it does after the head, in order.
        status: of its head; 0 for no head at all.
        headers: of its head.
        complete: whether it ends the body after the steps.
        afterwards: what it still does then.
    """

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Headers = field(default_factory=lambda: [*SSE])
    complete: bool = True
    afterwards: Sequence[Step] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One request as the model server got it."""

    scope: Scope
    body: bytes
    receive: Receive
    send: Send
    task: asyncio.Task[Any]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.scope["headers"])


class ModelServer:
    """The inner application: gives the n-th request the n-th answer, and has a lifespan.

    Attributes:
        asked: the requests, in order.
        cancelled: set when the application was cancelled in the midst of an answer.
    """

    def __init__(self, *answers: Answer | Sequence[Step]) -> None:
        self.asked: list[Asked] = []
        self.cancelled = asyncio.Event()
        self._news = _News()
        self._answers = [answer if isinstance(answer, Answer) else Answer(answer) for answer in answers]

    async def was_asked(self, times: int) -> None:
        await self._news.until(lambda: len(self.asked) >= times)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                assert await receive() == {"type": f"lifespan.{phase}"}
                await send({"type": f"lifespan.{phase}.complete"})
            return
        task = asyncio.current_task()
        assert task is not None
        message = await receive()
        assert (message["type"], message["more_body"]) == ("http.request", False)
        self.asked.append(Asked(scope, message["body"], receive, send, task))
        self._news.tell()
        answer = self._answers[len(self.asked) - 1]
        try:
            if answer.status:
                head = {"status": answer.status, "headers": answer.headers}
                await send({"type": "http.response.start", **head})
            await _take(answer.steps, receive, send)
            if answer.complete:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            await _take(answer.afterwards, receive, send)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def _take(steps: Sequence[Step], receive: Receive, send: Send) -> None:
    for step in steps:
        if isinstance(step, bytes):
            await send({"type": "http.response.body", "body": step, "more_body": True})
        elif isinstance(step, asyncio.Event):
            await step.wait()
        elif isinstance(step, BaseException):
            raise step
        else:
            await step(receive, send)


# -- the client ------------------------------------------------------------------------------------


class Client:
    """The web server's side of one request. As with uvicorn, a complete response ends in a disconnect.

    Attributes:
        messages: what the client was sent, in order.
        reads: while it is not set, sends are held up, as they are by a slow client.
        left: what sends raise once the client has gone, where the server raises at all.
        pauses: how often each send gives way to other tasks.
        raised: what came out of the application.
    """

    def __init__(self, app: ASGIApp, request: Any, scope: Scope) -> None:
        self.messages: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.left: OSError | None = None
        self.pauses = 0
        self.raised: BaseException | None = None
        self._app = app
        self._scope = scope
        self._news = _News()
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        pieces = request if isinstance(request, list) else [request]
        for count, piece in enumerate(pieces, 1):
            body = piece if isinstance(piece, bytes) else json.dumps(piece).encode()
            self._said.put_nowait({"type": "http.request", "body": body, "more_body": count < len(pieces)})

    async def run(self) -> None:
        try:
            await self._app(self._scope, self._said.get, self.send)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  `conversation` judges it
            self.raised = error

    async def send(self, message: Message) -> None:
        for _ in range(self.pauses):
            await asyncio.sleep(0)
        await self.reads.wait()
        if self.left is not None:
            raise self.left
        assert not self.complete, f"{message} after the end"
        assert (message["type"] == "http.response.start") == (not self.messages), message
        self.messages.append(message)
        self._news.tell()
        if self.complete:
            self.leave()

    def leave(self) -> None:
        """Close the connection."""
        self._said.put_nowait({"type": "http.disconnect"})

    async def heard(self, needle: bytes) -> None:
        """Wait until the body holds `needle`."""
        await self._news.until(lambda: needle in self.body)

    async def heard_all(self) -> None:
        """Wait until the response is complete."""
        await self._news.until(lambda: self.complete)

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


_HANGS = 30
"""Seconds after which a conversation is hopeless."""


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
    async with asyncio.timeout(_HANGS), asyncio.TaskGroup() as group:
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
    async with asyncio.timeout(_HANGS), asyncio.TaskGroup() as group:
        group.create_task(app({"type": "lifespan", "state": {}}, said.get, heard.put))
        for phase in ("startup", "shutdown"):
            said.put_nowait({"type": f"lifespan.{phase}"})
            assert await heard.get() == {"type": f"lifespan.{phase}.complete"}
            if phase == "startup":
                yield


# -- the backend -----------------------------------------------------------------------------------


class Painter:
    """A backend that paints as soon as it may.

    Args:
        waits: whether it waits for `may_finish`, after the previews.
        makes: what to make of a prompt; something else than `png` for a bad backend.

    Attributes:
        asked: the requests, in order.
        cancelled: the prompts of those that were cancelled.
        may_preview: set unless a test clears it; each call then shows as many previews as are wanted.
        may_finish: lets all calls finish.
    """

    def __init__(self, *, waits: bool = False, makes: Callable[[str], bytes | Image] = png) -> None:
        self.asked: list[ImageRequest] = []
        self.cancelled: list[str] = []
        self.may_preview = asyncio.Event()
        self.may_preview.set()
        self.may_finish = asyncio.Event()
        if not waits:
            self.may_finish.set()
        self._makes = makes
        self._news = _News()

    async def was_asked(self, times: int = 1) -> None:
        await self._news.until(lambda: len(self.asked) >= times)

    async def was_cancelled(self, times: int = 1) -> None:
        await self._news.until(lambda: len(self.cancelled) >= times)

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes | Image:
        self.asked.append(request)
        self._news.tell()
        try:
            await self.may_preview.wait()
            for count in range(request.partial_images):
                await on_partial(png(f"{request.prompt} {count}"))
            await self.may_finish.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.prompt)
            self._news.tell()
            raise
        return self._makes(request.prompt)


async def silence(seconds: float) -> None:
    """Wait, by the middleware's own clock, until another client has been kept alive for so long."""
    painter = Painter(waits=True)
    client = Client(middleware(ModelServer(*KITE_TURNS), painter, keepalive=seconds / 3), draw(), post())
    async with asyncio.TaskGroup() as group:
        group.create_task(client.run())
        await client.heard(KEEPALIVE * 3)
        painter.may_finish.set()
