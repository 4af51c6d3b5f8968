"""A client's stream, and what the model was asked, without all that may differ from server to server.

Ids and fields that servers choose freely go; deltas are joined; messages that say nothing are no messages;
what each item went through and ended as is kept, item by item in the order of their indexes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rules import read_events
from transcript import Event

__all__ = ["plain_item", "plain_output", "plain_requests", "plain_stream"]

_KEPT = (
    "type",
    "role",
    "name",
    "arguments",
    "input",
    "result",
    "revised_prompt",
    "action",
    "size",
    "error",
    "status",
)
_NO_STATUS = ("reasoning",)


def plain_stream(body: bytes) -> list[Any]:
    """Say what a client was told."""
    events = read_events(body)
    items: dict[int, list[Event]] = {}
    for one in events:
        if "output_index" in one:
            items.setdefault(one["output_index"], []).append(one)
    told = [_life(items[index]) for index in sorted(items)]
    last = events[-1]["response"]
    return [
        [one["type"] for one in events if "output_index" not in one],
        *(life for life in told if not _is_blank(life)),
        plain_output(last),
        last["status"],
        last["error"] and last["error"]["message"],
    ]


def _life(events: list[Event]) -> list[Any]:
    told: list[Any] = []
    for one in events:
        name, delta = one["type"], one.get("delta")
        if isinstance(delta, str):
            if told[-1][0] == name:
                told[-1][1] += delta
            else:
                told.append([name, delta])
            continue
        words = [plain_item(one[key]) for key in ("item", "part") if key in one]
        told.append(
            [name, *words, *(one[key] for key in ("text", "refusal", "arguments", "input") if key in one)]
        )
    return told


def plain_item(item: Mapping[str, Any]) -> Event:
    """Say what an item or a part of one holds."""
    shown = {key: item[key] for key in _KEPT if item.get(key) is not None}
    if item["type"] in _NO_STATUS:
        shown.pop("status", None)
    for key in ("content", "summary"):
        if isinstance(item.get(key), str):
            shown[key] = item[key]
        elif item.get(key):
            shown[key] = [plain_item(part) for part in item[key]]
    for key in ("text", "refusal"):
        if key in item:
            shown[key] = item[key]
    return shown


def _is_blank(life: list[Any]) -> bool:
    return _says_nothing(life[-1][1])


def _says_nothing(item: Event) -> bool:
    if item["type"] != "message":
        return False
    return not any(
        (part.get("text") or part.get("refusal") or "").strip() for part in item.get("content", [])
    )


def plain_output(response: Mapping[str, Any]) -> list[Event]:
    """Say what a response holds."""
    return [item for item in map(plain_item, response["output"]) if not _says_nothing(item)]


def plain_requests(asked: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Say what the model was asked, turn by turn; call ids are numbered in the order of their calls."""
    return [_request(body) for body in asked]


def _request(body: Mapping[str, Any]) -> Any:
    names: dict[str, str] = {}
    items = []
    for item in body["input"] if isinstance(body["input"], list) else [body["input"]]:
        if not isinstance(item, dict):
            items.append(item)
            continue
        shown = plain_item({"type": "message", **item})
        if "call_id" in item:
            shown["call_id"] = names.setdefault(item["call_id"], f"call {len(names)}")
        if "output" in item:
            shown["output"] = item["output"]
        items.append(shown)
    return json.loads(json.dumps({**body, "input": items}))
