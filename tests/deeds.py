"""What a model did in a turn, and how a well-behaved server tells each of these things."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from transcript import Event, added, call, event, message, reasoning

__all__ = ["Did", "called", "life", "refused", "said", "thought"]

Kind = Literal["message", "refusal", "reasoning", "thought", "function_call", "custom_tool_call", "picture"]


@dataclass(frozen=True, slots=True)
class Did:
    """One thing a model did: what it said, thought (in a summary, or `thought` in full) or called."""

    kind: Kind
    pieces: tuple[str, ...]
    name: str = ""

    @property
    def whole(self) -> str:
        return "".join(self.pieces)


def said(*pieces: str) -> Did:
    return Did("message", pieces)


def thought(*pieces: str) -> Did:
    return Did("thought", pieces)


def called(arguments: Mapping[str, Any], name: str = "image_generation") -> Did:
    """Call a function with arguments that arrive in three pieces."""
    words = json.dumps(arguments)
    return Did("function_call", (words[:1], words[1:12], words[12:]), name)


def refused(*pieces: str) -> Did:
    return Did("refusal", pieces)


def life(deed: Did, index: int, turn: int) -> list[Event]:
    """Tell an item as a well-behaved server does, all by itself."""
    mark = f"{turn}{chr(97 + index)}"
    match deed.kind:
        case "message":
            return message(index, f"msg_{mark}", *deed.pieces)
        case "reasoning":
            return reasoning(index, f"rs_{mark}", *deed.pieces)
        case "refusal" | "thought":
            return _text(deed, index, mark)
        case "function_call":
            item = {"id": f"fc_{mark}", "type": "function_call", "call_id": f"call_{mark}", "name": deed.name}
            return call(index, {**item, "arguments": deed.whole, "status": "completed"}, *deed.pieces)
        case "custom_tool_call":
            return _custom(deed, index, mark)
        case _:
            return _picture(deed, index, mark)


def _text(deed: Did, index: int, mark: str) -> list[Event]:
    refusal = deed.kind == "refusal"
    key, kind = ("refusal", "refusal") if refusal else ("text", "reasoning_text")
    item_id = f"{'msg' if refusal else 'rs'}_{mark}"
    place: Event = {"index": index, "item_id": item_id, "content_index": 0}
    part = {"type": kind, key: deed.whole}
    item: Event = {"id": item_id, "type": "reasoning", "summary": []}
    begun = item = item if not refusal else {"id": item_id, "type": "message", "role": "assistant"}
    if refusal:
        begun, item = {**item, "status": "in_progress"}, {**item, "status": "completed"}
    return [
        event("output_item.added", index, item={**begun, "content": []}),
        event("content_part.added", **place, part={**part, key: ""}),
        *(event(f"{kind}.delta", **place, delta=delta) for delta in deed.pieces),
        {**event(f"{kind}.done", **place), key: deed.whole},
        event("content_part.done", **place, part=part),
        event("output_item.done", index, item={**item, "content": [part]}),
    ]


def _custom(deed: Did, index: int, mark: str) -> list[Event]:
    item = {"id": f"ctc_{mark}", "type": "custom_tool_call", "call_id": f"call_{mark}", "name": deed.name}
    place: Event = {"index": index, "item_id": item["id"]}
    return [
        added(index, item, input=""),
        *(event("custom_tool_call_input.delta", **place, delta=delta) for delta in deed.pieces),
        event("custom_tool_call_input.done", **place, input=deed.whole),
        event("output_item.done", index, item={**item, "input": deed.whole, "status": "completed"}),
    ]


def _picture(deed: Did, index: int, mark: str) -> list[Event]:
    """A picture that the model server makes itself."""
    item = {"id": f"ig_{mark}", "type": "image_generation_call"}
    done = {**item, "status": "completed", "result": deed.whole}
    place: Event = {"index": index, "item_id": item["id"]}
    steps = ("in_progress", "generating", "completed")
    return [
        added(index, item),
        *(event(f"image_generation_call.{step}", **place) for step in steps),
        event("output_item.done", index, item=done),
    ]
