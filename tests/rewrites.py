"""What some model servers do to a turn that no knob of a `Manner` can say: events in, events out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transcript import Event, event, message

__all__ = [
    "blank_message_first",
    "call_id_as_id",
    "calls_in_progress",
    "late_reasoning",
    "message_again",
    "response_ids",
    "stray_keys",
]

Events = list[Event]
_DONE = "response.output_item.done"


def _items(events: Events, change: Callable[[Event, Event], Event]) -> Events:
    """Change every item, those of the final output included; `change` gets the item and its event."""
    told = []
    for one in events:
        changed = dict(one)
        if "item" in one:
            changed["item"] = change(one["item"], one)
        if one.get("response", {}).get("output"):
            output = [change(item, one) for item in one["response"]["output"]]
            changed["response"] = {**one["response"], "output": output}
        told.append(changed)
    return told


def call_id_as_id(events: Events) -> Events:
    """Give each call one id for everything."""
    return _items(
        events, lambda item, _: {**item, "call_id": item["id"]} if "call_id" in item else dict(item)
    )


def stray_keys(events: Events) -> Events:
    """Put the event's own place and a number into each finished item."""
    return _items(
        events,
        lambda item, one: (
            {**item, "output_index": 7, "sequence_number": -1} if one["type"] == _DONE else dict(item)
        ),
    )


def response_ids(make: Callable[[str, int], str]) -> Callable[[Events], Events]:
    """Give the response another id in each event, made of its own and the event's place."""

    def rewrite(events: Events) -> Events:
        return [
            {**one, "response": {**one["response"], "id": make(one["response"]["id"], count)}}
            if "response" in one
            else one
            for count, one in enumerate(events)
        ]

    return rewrite


def message_again(events: Events) -> Events:
    """Tell the message once more behind the call and under the call's index, or an empty one."""
    done: list[Any] = [one for one in events if one["type"] == _DONE]
    spoken = next((one["item"] for one in done if one["item"]["type"] == "message"), None)
    text = spoken["content"][0]["text"] if spoken else ""
    again = message(done[-1]["output_index"], spoken["id"] if spoken else "msg_empty", text)
    return [*events[:-1], *(one for one in again if not one["type"].endswith(".delta")), events[-1]]


def blank_message_first(events: Events) -> Events:
    """Let a message of one line end begin before everything else, and end last of all."""
    blank = [
        {key: value for key, value in one.items() if key != "output_index"}
        for one in message(0, "msg_blank", "\n")
    ]
    heads = [one for one in blank if not one["type"].endswith(".done")]
    tails = [one for one in blank if one["type"].endswith(".done")]
    return [*events[:2], *heads, *events[2:-1], *tails, events[-1]]


def late_reasoning(events: Events) -> Events:
    """Let what was thought end last of all."""
    thoughts = {
        one["item"]["id"] for one in events if one["type"] == _DONE and one["item"]["type"] == "reasoning"
    }

    def late(one: Event) -> bool:
        about = one.get("item_id") or one.get("item", {}).get("id")
        return about in thoughts and str(one["type"]).endswith(".done")

    middle = events[:-1]
    return [*(one for one in middle if not late(one)), *(one for one in middle if late(one)), events[-1]]


def calls_in_progress(events: Events) -> Events:
    """Announce calls by a response in progress that holds them all, again before each event."""
    response = events[-1]["response"]
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    told = event("in_progress", response={**response, "status": "in_progress", "output": calls})
    return [events[0], *(other for one in events[1:-1] for other in (told, one)), events[-1]]
