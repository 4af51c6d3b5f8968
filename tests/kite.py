"""What the cases have in common: their server's response objects, the kite, and how an exchange is judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from accumulator import accumulate, accumulate_events
from case_files import read_request, read_turns
from driving import Driven, Turn, drive, paint
from imagecall.events.tools.base import ToolCall
from rules import check_stream, read_events
from transcript import Event, event, message, number, picture

KITE = "a red kite over a harbour"
SAID = ("Here is the kit", "e you asked for.")
HOSTED = {"type": "image_generation"}


def run(
    request: dict[str, Any],
    turns: Sequence[Turn],
    *,
    internal: str = "image_generation",
    **how: Any,
) -> Driven:
    """Drive an exchange and hold its stream against everything that all streams must keep."""
    driven = drive(request, turns, **how)
    own = {tool.get("name") for tool in request["tools"]}
    known = {"tools": request["tools"], "tool_choice": request.get("tool_choice", "auto")}
    wrong = check_stream(driven.body, **known, internal_names=(internal,), client_functions=own)
    assert wrong == []
    last = read_events(driven.body)[-1]
    if last["type"] == "response.completed":
        assert [item.type for item in accumulate(driven.body).output] == kinds(last["response"])
    else:
        accumulate_events(driven.body)
    assert driven.finish is not None
    assert json.loads(driven.finish.response or b"null") == last["response"]
    return driven


def run_case(case: str, variant: str = "", **how: Any) -> Driven:
    return run(read_request(case), read_turns(case, variant), **how)


def kinds(response: Event) -> list[str]:
    return [item["type"] for item in response["output"]]


def usage(input_tokens: int, output_tokens: int) -> Event:
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + output_tokens,
    }


def response(status: str, **fields: Any) -> Event:
    """Make the response object that the fixtures' server sends, with the client's own words in it."""
    whole = {
        "id": "resp_up1",
        "object": "response",
        "created_at": 1790000000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "local-model",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [HOSTED],
        "top_p": 1.0,
        "usage": None,
    }
    return {**whole, **fields}


def stream(*items: Iterable[Event], spent: Event, **fields: Any) -> list[Event]:
    """Make a whole completed stream; `fields` are those of all its response objects."""
    told = [one for events in items for one in events]
    done = {e["output_index"]: e["item"] for e in told if e["type"] == "response.output_item.done"}
    output = [done[index] for index in sorted(done)]
    opening = [event(name, response=response("in_progress", **fields)) for name in ("created", "in_progress")]
    end = event("completed", response=response("completed", output=output, usage=spent, **fields))
    return number([*opening, *told, end])


def painted(item_id: str = "ig_1", prompt: str = KITE, **options: Any) -> Event:
    """Make the finished item of a picture as `driving.paint` paints it."""
    outcome = paint(ToolCall(item_id, {"prompt": prompt, **options}))
    return {
        "id": item_id,
        "type": "image_generation_call",
        "status": "completed",
        "result": outcome.data.decode(),
        "revised_prompt": prompt,
        "action": "generate",
        "quality": options.get("quality", "auto"),
        **outcome.facts,
    }


def pair(asked: Any, position: int = 1) -> tuple[Event, Event]:
    """Take a call and its output out of a follow-up request's input."""
    made, output = asked["input"][position : position + 2]
    assert list(made) == ["type", "call_id", "name", "arguments"]
    assert list(output) == ["type", "call_id", "output"]
    assert (made["type"], output["type"]) == ("function_call", "function_call_output")
    assert made["call_id"] == output["call_id"]
    return made, output


def kite_stream(**fields: Any) -> list[Event]:
    """Make the stream that most cases must lead to, however their server puts it."""
    return stream(picture(0, painted()), message(1, "msg_1", *SAID), **{"spent": usage(310, 30), **fields})


def answers(driven: Driven) -> list[Event]:
    return read_events(driven.body)
