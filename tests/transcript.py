"""Expected streams, written down as a transcript: items in order, numbered as a whole."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["added", "call", "encode", "event", "message", "number", "picture", "preview_event", "reasoning"]

Event = dict[str, Any]


def event(kind: str, /, index: int | None = None, item_id: str | None = None, **fields: Any) -> Event:
    """Make one event of the response, without its number."""
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{kind}", **place, **({"item_id": item_id} if item_id else {}), **fields}


def added(index: int, item: Event, **fields: Any) -> Event:
    """Announce an item with the fields that it has from the start."""
    keys = ("id", "type", "role", "call_id", "name")
    started = {**{key: item[key] for key in keys if key in item}, "status": "in_progress", **fields}
    return event("output_item.added", index, item=started)


def message(index: int, item_id: str, *deltas: str) -> list[Event]:
    """Tell a message of one text part, delta by delta."""
    place: Event = {"index": index, "item_id": item_id, "content_index": 0}
    part = {"type": "output_text", "text": "".join(deltas), "annotations": [], "logprobs": []}
    item = {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return [
        added(index, item, content=[]),
        event("content_part.added", **place, part={**part, "text": ""}),
        *(event("output_text.delta", **place, delta=delta, logprobs=[]) for delta in deltas),
        event("output_text.done", **place, text=part["text"], logprobs=[]),
        event("content_part.done", **place, part=part),
        event("output_item.done", index, item=item),
    ]


def reasoning(index: int, item_id: str, *deltas: str, **fields: Any) -> list[Event]:
    """Tell a reasoning item of one summary part; `fields` are the finished item's own."""
    place: Event = {"index": index, "item_id": item_id, "summary_index": 0}
    part = {"type": "summary_text", "text": "".join(deltas)}
    item = {"id": item_id, "type": "reasoning", "summary": [part], **fields}
    announced = {"id": item_id, "type": "reasoning", "summary": []}
    return [
        event("output_item.added", index, item=announced),
        event("reasoning_summary_part.added", **place, part={**part, "text": ""}),
        *(event("reasoning_summary_text.delta", **place, delta=delta) for delta in deltas),
        event("reasoning_summary_text.done", **place, text=part["text"]),
        event("reasoning_summary_part.done", **place, part=part),
        event("output_item.done", index, item=item),
    ]


def picture(index: int, item: Event, *previews: Event) -> list[Event]:
    """Tell an image item, failed or not, with the previews as `preview_event` makes them."""
    place: Event = {"index": index, "item_id": item["id"]}
    steps = [
        added(index, item),
        event("image_generation_call.in_progress", **place),
        event("image_generation_call.generating", **place),
        *(event("image_generation_call.partial_image", **place, **preview) for preview in previews),
    ]
    if item["status"] == "completed":
        steps.append(event("image_generation_call.completed", **place))
    return [*steps, event("output_item.done", index, item=item)]


def preview_event(count: int, data: str, **facts: Any) -> Event:
    """Make the fields of one partial image."""
    return {"partial_image_index": count, "partial_image_b64": data, **facts}


def call(index: int, item: Event, *deltas: str) -> list[Event]:
    """Tell a client's function call, delta by delta."""
    place: Event = {"index": index, "item_id": item["id"]}
    return [
        added(index, item, arguments=""),
        *(event("function_call_arguments.delta", **place, delta=delta) for delta in deltas),
        event("function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"]),
        event("output_item.done", index, item=item),
    ]


def number(events: list[Event]) -> list[Event]:
    """Number events from 0, in place."""
    for count, one in enumerate(events):
        one["sequence_number"] = count
    return events


def encode(events: list[Event]) -> bytes:
    """Write events as frames."""
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
