"""What a recorded turn tells of the request that it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ...events.sse import SSEDecoder
from ...events.wire import loads
from ..replay import RecordedTurn

__all__ = ["objections"]

_EVENT_STREAM = b"text/event-stream"


def objections(turns: Sequence[RecordedTurn], requests: Sequence[Any]) -> Iterator[str]:
    """Tell what is wrong with the last request; each is the rest of a sentence about it.

    The model server knows no hosted tool, can call only what it was offered, streams only when asked to,
    and wants an output for each call that it made in the turn before.
    """
    number, request = len(requests), requests[-1]
    if number > len(turns):
        yield f"is one too many: the recording has {len(turns)} turns"
        return
    if not isinstance(request, dict):
        yield "is no JSON object"
        return
    tools = {tool.get("type") for tool in _objects(request.get("tools"))}
    if "image_generation" in tools:
        yield "declares the hosted tool image_generation, which the model server does not know"
    turn = turns[number - 1]
    if _calls(turn) and "function" not in tools:
        yield "offers no function, but the model called one"
    if _streamed(turn) and request.get("stream") is not True:
        yield "asks for no stream, but the answer is one"
    outputs = [item for item in _objects(request.get("input")) if item.get("type") == "function_call_output"]
    answered = {output.get("call_id") for output in outputs}
    before = _calls(turns[number - 2]) if number > 1 else []
    yield from (f"has no output for call {call_id}" for call_id in before if call_id not in answered)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _calls(turn: RecordedTurn) -> list[str]:
    """List the ids of the calls that the model made in a turn, each once."""
    return list(dict.fromkeys(found for event in _events(turn) for found in _call_ids(event)))


def _call_ids(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _call_ids(inner)
    elif isinstance(value, dict):
        if value.get("type") == "function_call" and value.get("call_id"):
            yield value["call_id"]
        for inner in value.values():
            yield from _call_ids(inner)


def _events(turn: RecordedTurn) -> Iterator[Any]:
    if _streamed(turn):
        decoder = SSEDecoder()
        payloads = [frame.data for frame in decoder.feed(turn.body) + decoder.close()]
    else:
        payloads = [turn.body]
    for payload in payloads:
        with suppress(ValueError):  # `[DONE]`, and what servers in trouble say
            yield loads(payload)


def _streamed(turn: RecordedTurn) -> bool:
    return any(name == b"content-type" and _EVENT_STREAM in value for name, value in turn.headers)
