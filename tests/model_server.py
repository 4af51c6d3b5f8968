"""A model server on ASGI's own calls: recorded turns, told what to do when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kite import SAID, response, usage
from starlette.types import Receive, Scope, Send
from transcript import Event, call, encode, event, message, number
from waiting import News

__all__ = [
    "HOSTED",
    "JSON",
    "KITE_TURNS",
    "SSE",
    "Answer",
    "Asked",
    "ModelServer",
    "calling",
    "frames",
    "saying",
    "whole",
]

Json = dict[str, Any]

Headers = list[tuple[bytes, bytes]]

HOSTED: Json = {"type": "image_generation"}

JSON: Headers = [(b"content-type", b"application/json")]

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
        self._news = News()
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
