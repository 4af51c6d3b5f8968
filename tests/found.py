"""Turns at which the fuzzing once found a stream that some client could not have read, one for each fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import example
from manners import frames
from strategies import TOOLS, Exchange
from transcript import Event, event, number

__all__ = ["FOUND", "found_cases"]

_START = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": "m"}
_TEXT = {"type": "output_text", "text": "Hi", "annotations": []}
_SAID = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [_TEXT]}
_SQL = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}
_OSLO = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
_THOUGHT: Event = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
_KITE = {"id": "ig_x", "type": "image_generation_call", "status": "generating", "result": "/9j/AA=="}


def _added(item: Event) -> Event:
    return event("output_item.added", 0, item=item)


def _done(item: Event) -> Event:
    return event("output_item.done", 0, item=item)


def _input(end: str, **fields: Any) -> Event:
    return event(f"custom_tool_call_input.{end}", 0, "ctc_1", **fields)


def _turn(*told: Event, ending: str = "completed", **fields: Any) -> Exchange:
    events = [
        event("created", response=_START),
        *told,
        event(ending, response={**_START, "status": ending, **fields}),
    ]
    request = {"model": "m", "input": "Draw.", "stream": True, "tools": TOOLS}
    return Exchange(request, [frames(number([dict(one) for one in events]))])


FOUND: dict[str, Exchange] = {
    "reasoning is announced with its summary": _turn(
        _added(_THOUGHT),
        event(
            "reasoning_summary_part.added",
            0,
            "rs_1",
            summary_index=0,
            part={**_THOUGHT["summary"][0], "text": ""},
        ),
        event("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="Hm."),
        _done(_THOUGHT),
    ),
    "an item ends with a status that is none": _turn(_done({**_SAID, "status": "generating"})),
    "an item begins with a status that is none": _turn(_added({**_SQL, "input": "", "status": "x"})),
    "a custom call's input goes on after its end": _turn(
        _added({**_SQL, "input": ""}),
        _input("delta", delta="ls"),
        *[_input("done", input="ls")] * 2,
        _input("delta", delta="ls"),
        _done(_SQL),
    ),
    "a custom call is announced by its input": _turn(_input("delta", delta="ls"), _done(_SQL)),
    "a custom call is announced without a call id": _turn(
        _added({key: _SQL[key] for key in ("id", "type", "name")}), _done(_SQL)
    ),
    "a call has another name in the end": _turn(
        _added({**_SQL, "input": ""}), _done({**_SQL, "name": "sql"})
    ),
    "arguments are told by their end and then forgotten": _turn(
        _added({**_OSLO, "arguments": ""}),
        event("function_call_arguments.done", 0, "fc_1", arguments="{}"),
        _done({**_OSLO, "arguments": ""}),
    ),
    "an empty object is all the arguments of a failed response": _turn(
        event("function_call_arguments.delta", 0, "fc_1", delta="{}"),
        ending="failed",
        output=[{**_OSLO, "status": "completed"}],
    ),
    "a call of an incomplete response says that it is complete": _turn(
        ending="incomplete", output=[{**_OSLO, "arguments": "", "status": "completed"}]
    ),
    "the first part has the index 3": _turn(
        _added({**_SAID, "content": []}),
        event("output_text.delta", 0, "msg_1", content_index=3, delta="Hi", logprobs=[]),
        event("output_text.delta", 0, "msg_1", content_index=0, delta="Ho", logprobs=[]),
        _done(_SAID),
    ),
    "the final content is in another order than it was streamed": _turn(
        event("output_text.delta", 0, "msg_1", content_index=2, delta="Hi", logprobs=[]),
        event("refusal.delta", 0, "msg_1", content_index=1, delta="No"),
        _done({**_SAID, "content": [{"type": "refusal", "refusal": "No."}, _TEXT]}),
    ),
    "a part has no text, another is no part": _turn(
        _done(
            {**_SAID, "content": [{"type": "output_text"}, 7, {"type": 7}, {"type": "reasoning_text"}, _TEXT]}
        )
    ),
    "a message has no content": _turn(_done({**_SAID, "content": 7})),
    "reasoning holds more than was streamed": _turn(
        event("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="Hm."),
        _done({**_THOUGHT, "summary": [*_THOUGHT["summary"], {"type": "summary_text", "text": "So."}]}),
    ),
    "parts of a summary are of no type": _turn(
        _added({**_THOUGHT, "summary": []}),
        event("reasoning_summary_part.added", 0, "rs_1", summary_index=0, part={"type": "x", "text": ""}),
        event("content_part.added", 0, "rs_1", content_index=0, part={"type": "summary_text", "text": ""}),
        _done(_THOUGHT),
    ),
    "a part ends under another type than it began with": _turn(
        _added({**_SAID, "content": []}),
        event("content_part.added", 0, "msg_1", content_index=0, part={**_TEXT, "text": ""}),
        event("content_part.done", 0, "msg_1", content_index=0, part={"type": "x", "text": "Hi"}),
        event("content_part.done", 0, "msg_1", content_index=1, part={"type": "x", "text": "Hi"}),
        event("content_part.added", 0, "msg_1", content_index=1, part={"text": "Hi"}),
        _done(_SAID),
    ),
    "a picture of the server's begins with its preview": _turn(
        event("image_generation_call.partial_image", partial_image_b64="/9j/AA=="),
        event("image_generation_call.in_progress"),
        event("image_generation_call.generating"),
        event("image_generation_call.partial_image", partial_image_b64=7),
        _done(_KITE),
    ),
    "a picture of the server's is completed and is none": _turn(
        _added(_KITE),
        event("image_generation_call.completed", 0, "ig_x"),
        _done({**_KITE, "result": None, "error": {}}),
    ),
    "a response fails after a picture of the server's": _turn(_done(_KITE), ending="failed"),
    "the response has no model": _turn(model=7),
    "the model wants a background that there is not": _turn(
        _done({**_OSLO, "name": "image_generation", "arguments": '{"prompt": "a kite", "background": "sky"}'})
    ),
}


def found_cases(test: Callable[..., Any]) -> Callable[..., Any]:
    """Let a test of exchanges try all of them each time."""
    for case in FOUND.values():
        test = example(case)(test)
    return test
