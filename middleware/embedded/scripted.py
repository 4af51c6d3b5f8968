"""A model server without a model: a script answers `/v1/responses` in OpenAI's own event grammar.

It stands in where the language model is not installed, and in tests, since it answers the same
request the same way and refuses whatever a strict server would refuse.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, assert_never

from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ...events.errors import RequestError
from ...events.wire import dumps, loads
from ..answers import error_body
from .scripted_turns import Call, Say, Step, Think, plan_turn
from .strict_request import check_request

__all__ = ["Pace", "scripted_app"]

Json = dict[str, Any]
Pace = Callable[[], Awaitable[None]]
"""Awaited before each event of a stream."""

_MODEL = "scripted"
_ECHOED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "model": _MODEL,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""The request's fields that a response shows again, and what stands there when they are absent."""


def scripted_app(
    *,
    pace: Pace | None = None,
    new_id: Callable[[str], str] = lambda prefix: f"{prefix}_{secrets.token_hex(24)}",
    now: Callable[[], float] = time.time,
) -> Starlette:
    """Build the application: `POST /v1/responses` and `GET /v1/models`.

    Args:
        pace: awaited before each event, so that people can watch a stream; None streams at once.
        new_id: makes an id that begins with the given prefix and an underscore.
        now: seconds since the epoch.
    """

    async def create_response(request: Request) -> Response:
        try:
            body = check_request(_parsed(await request.body()))
        except RequestError as error:
            content = error_body(
                error.message, kind="invalid_request_error", param=error.param, code=error.code
            )
            return Response(content, error.status, media_type="application/json")
        answer = _Answer(body, new_id, now)
        if body.get("stream"):
            # The separator is LF, as at OpenAI: frames like these travel on as they are.
            return EventSourceResponse(_paced(answer.events(), pace), sep="\n")
        *_, last = answer.events()
        return JSONResponse(last["response"])

    async def list_models(request: Request) -> Response:  # noqa: ARG001  the router passes it
        model = {"id": _MODEL, "object": "model", "created": int(now()), "owned_by": "imagecall"}
        return JSONResponse({"object": "list", "data": [model]})

    return Starlette(
        routes=[
            Route("/v1/responses", create_response, methods=["POST"]),
            Route("/v1/models", list_models, methods=["GET"]),
        ]
    )


def _parsed(data: bytes) -> object:
    try:
        return loads(data)
    except ValueError:
        raise RequestError("The request body is not valid JSON.") from None


async def _paced(events: Iterator[Json], pace: Pace | None) -> AsyncIterator[dict[str, str]]:
    for event in events:
        if pace is not None:
            await pace()
        yield {"event": event["type"], "data": dumps(event).decode()}


class _Answer:
    """One response as it grows: the owner of its ids, numbers and final object."""

    def __init__(self, body: Json, new_id: Callable[[str], str], now: Callable[[], float]) -> None:
        self._body = body
        self._new_id = new_id
        self._now = now
        self._number = 0
        self._output: list[Json] = []
        given = {key: body[key] for key in _ECHOED if body.get(key) is not None}
        self._response: Json = {
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(now()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            **_ECHOED,
            **given,
        }

    def events(self) -> Iterator[Json]:
        """Tell the response from `created` to `completed`, one event after the other."""
        steps = plan_turn(self._body)
        yield self._event("response.created", response=self._snapshot())
        yield self._event("response.in_progress", response=self._snapshot())
        for step in steps:
            yield from self._item(step)
        self._response |= {"status": "completed", "completed_at": int(self._now())}
        yield self._event("response.completed", response=self._snapshot(_usage(self._body, steps)))

    def _snapshot(self, usage: Json | None = None) -> Json:
        return {**self._response, "output": [*self._output], "usage": usage}

    def _event(self, kind: str, **fields: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}

    def _item(self, step: Step) -> Iterator[Json]:
        match step:
            case Think(text):
                return self._reasoning(text)
            case Call(name, arguments):
                return self._call(name, dumps(arguments).decode())
            case Say(text):
                return self._message(text)
            case _:
                assert_never(step)

    def _added(self, item: Json) -> Json:
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _done(self, item: Json) -> Json:
        self._output.append(item)
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _reasoning(self, text: str) -> Iterator[Json]:
        item = {"id": self._new_id("rs"), "type": "reasoning", "summary": []}
        part = {"type": "summary_text", "text": text}
        place = {"item_id": item["id"], "output_index": len(self._output), "summary_index": 0}
        yield self._added(item)
        yield self._event("response.reasoning_summary_part.added", **place, part={**part, "text": ""})
        for piece in _pieces(text):
            yield self._event("response.reasoning_summary_text.delta", **place, delta=piece)
        yield self._event("response.reasoning_summary_text.done", **place, text=text)
        yield self._event("response.reasoning_summary_part.done", **place, part=part)
        yield self._done({**item, "summary": [part]})

    def _call(self, name: str, arguments: str) -> Iterator[Json]:
        item = {
            "id": self._new_id("fc"),
            "type": "function_call",
            "status": "in_progress",
            "arguments": "",
            "call_id": self._new_id("call"),
            "name": name,
        }
        place = {"item_id": item["id"], "output_index": len(self._output)}
        yield self._added(item)
        for piece in _pieces(arguments):
            yield self._event("response.function_call_arguments.delta", **place, delta=piece)
        yield self._event("response.function_call_arguments.done", **place, arguments=arguments)
        yield self._done({**item, "status": "completed", "arguments": arguments})

    def _message(self, text: str) -> Iterator[Json]:
        item = {
            "id": self._new_id("msg"),
            "type": "message",
            "status": "in_progress",
            "content": [],
            "role": "assistant",
        }
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
        place = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        yield self._added(item)
        yield self._event("response.content_part.added", **place, part={**part, "text": ""})
        for piece in _pieces(text):
            yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield self._event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=part)
        yield self._done({**item, "status": "completed", "content": [part]})


def _pieces(text: str) -> list[str]:
    """Cut a text as a tokenizer would, roughly: words with the space before them, and signs."""
    return re.findall(r"\s*\w+|\s*\W", text)


def _usage(body: Json, steps: list[Step]) -> Json:
    asked = len(_pieces(dumps([body["input"], body.get("tools")]).decode()))
    thought = sum(len(_pieces(step.text)) for step in steps if isinstance(step, Think))
    said = sum(len(_pieces(step.text)) for step in steps if isinstance(step, Say))
    called = sum(len(_pieces(dumps(step.arguments).decode())) for step in steps if isinstance(step, Call))
    spent = thought + said + called
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": spent,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": asked + spent,
    }
