"""One valid stream with everything in it, and the ways to break it."""

from __future__ import annotations

import base64
import copy
import io
from typing import Any

from PIL import Image
from rules import check_stream
from transcript import Event, call, event, message, number, picture, preview_event, reasoning

TOOLS: list[Event] = [
    {"type": "image_generation", "partial_images": 1},
    {"type": "function", "name": "get_weather", "parameters": {}, "strict": False},
]


def paint(colour: str) -> str:
    file = io.BytesIO()
    Image.new("RGB", (4, 2), colour).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 7,
}
IMAGE = {
    "id": "ig_1",
    "type": "image_generation_call",
    "status": "completed",
    "result": paint("red"),
    "revised_prompt": "a kite",
    "action": "generate",
    "background": "opaque",
    "output_format": "png",
    "quality": "auto",
    "size": "4x2",
}
ERROR = {"type": "image_generation_error", "code": "timeout", "message": "Too slow.", "param": None}
PREVIEW = preview_event(0, paint("blue"), output_format="png", size="4x2")
PART = {"type": "output_text", "text": "Here.", "annotations": [], "logprobs": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [PART]}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city":"Oslo"}',
    "status": "completed",
}


def response(status: str, **fields: Any) -> Event:
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "m",
        "output": [],
        "tools": TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "metadata": {},
        "usage": None,
        "error": None,
        "incomplete_details": None,
    }
    return {**whole, **fields}


def say(index: int) -> list[Event]:
    return message(index, "msg_1", "He", "re.")


def ask(index: int) -> list[Event]:
    return call(index, CALL, '{"city":', '"Oslo"}')


def stream(*items: list[Event], end: Event | None = None) -> list[Event]:
    told = [one for events in items for one in events]
    done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    completed = event("completed", response=response("completed", output=done, usage=USAGE))
    opening = [event(name, response=response("in_progress")) for name in ("created", "in_progress")]
    return number([*opening, *told, end or completed])


def valid() -> list[Event]:
    whole = stream(reasoning(0, "rs_1", "Hm."), picture(1, IMAGE, PREVIEW), say(2), ask(3))
    return copy.deepcopy(whole)


def check(body: bytes, **known: Any) -> list[str]:
    return check_stream(
        body, **{"tools": TOOLS, "tool_choice": "auto", "client_functions": {"get_weather"}, **known}
    )


def get(events: list[Event], name: str, count: int = 0) -> Event:
    return [one for one in events if one["type"] == f"response.{name}"][count]


def drop(events: list[Event], name: str, count: int = 0) -> None:
    events.remove(get(events, name, count))
    number(events)


def twice(events: list[Event], name: str, count: int = 0) -> None:
    one = get(events, name, count)
    events.insert(events.index(one), copy.deepcopy(one))
    number(events)


def put_last(events: list[Event], name: str, count: int = 0) -> None:
    """Move an event behind its item's done."""
    one = get(events, name, count)
    events.remove(one)
    ends = [i for i, e in enumerate(events) if e.get("output_index") == one["output_index"]]
    events.insert(ends[-1] + 1, one)
    number(events)


def done_item(events: list[Event], index: int, **fields: Any) -> None:
    """Change an item where it is done and in the final output alike."""
    for item in (get(events, "output_item.done", index)["item"], events[-1]["response"]["output"][index]):
        item.update(fields)


def fail_image(events: list[Event], **fields: Any) -> None:
    drop(events, "image_generation_call.completed")
    failed = {"id": "ig_1", "type": "image_generation_call", "status": "failed", "result": "", "error": ERROR}
    for item in (get(events, "output_item.done", 1)["item"], events[-1]["response"]["output"][1]):
        item.clear()
        item.update(copy.deepcopy({**failed, **fields}))


def without_field(one: Event, key: str) -> None:
    del one[key]


def all_responses(events: list[Event], **fields: Any) -> None:
    for one in events:
        if "response" in one:
            one["response"].update(fields)


def failed_stream(*, finished_picture: bool = False) -> list[Event]:
    error = {
        "type": "server_error",
        "code": "server_error",
        "message": "The model server broke off.",
        "param": None,
    }
    said = picture(0, IMAGE) if finished_picture else say(0)
    output = [said[-1]["item"]]
    failure = {"code": "server_error", "message": "The model server broke off."}
    flat = {key: error[key] for key in ("code", "message", "param")}
    end = event("failed", response=response("failed", output=output, error=failure))
    return number([*stream(said)[:-1], {"type": "error", **flat, "error": error}, end])
