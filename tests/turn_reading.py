"""Reads one turn of a model server and writes down, a line for each event, what came of it.

A line begins with the item's number, in the order in which items were opened: `0 + message` opens it,
`0 output_text.delta Hi` is an event about it, `0 settled {…}` settles our call, `0 - message completed
Hi` closes it. `started`, `loose …` and `ended …` are about no item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from imagecall.events.sse import ServerSentEvent
from imagecall.events.turn import Turn
from imagecall.events.turn_events import (
    CallSettled,
    Closed,
    Delta,
    Loose,
    Opened,
    Started,
    TurnEnded,
    TurnEvent,
    TurnItem,
)
from transcript import Event, event

__all__ = [
    "COMPLETED",
    "CREATED",
    "HELLO",
    "OSLO",
    "ROME",
    "SAID",
    "Reading",
    "arguments",
    "begun",
    "call_item",
    "canonical",
    "closed",
    "closed_body",
    "deltas",
    "final",
    "message_item",
    "opened",
    "read",
    "text",
    "told",
]

CREATED = event("created", response={"id": "resp_1", "status": "in_progress"})
COMPLETED = event("completed", response={"id": "resp_1", "status": "completed", "output": []})


def message_item(item_id: str | None, *texts: str, status: str = "completed") -> Event:
    """Make a message of text parts."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}


def call_item(item_id: str | None, name: str | None, arguments: str | None = "", **fields: Any) -> Event:
    """Make a function call."""
    item = {"id": item_id, "type": "function_call", "call_id": f"call_{item_id}", "name": name}
    return {**item, "arguments": arguments, "status": "completed", **fields}


HELLO = message_item("msg_a", "Hello")
OSLO = call_item("fc_o", "weather", '{"city":"Oslo"}')
ROME = call_item("fc_r", "weather", '{"city":"Rome"}')
SAID = [
    "0 content_part.added",
    "0 output_text.delta Hello",
    "0 output_text.done Hello",
    "0 content_part.done Hello",
    "0 - message completed Hello",
]
"""What is told of `HELLO`, however little of it was streamed, once it is opened."""


def begun(item: Event) -> Event:
    """Make of a finished item the one that is announced."""
    empty: Event = {"content": []} if item["type"] == "message" else {"arguments": ""}
    return {**item, **empty, "status": "in_progress"}


def opened(item: Event, index: int | None = None) -> Event:
    """Announce an item that is given as it will be finished."""
    return event("output_item.added", index, item=begun(item))


def closed(item: Event, index: int | None = None) -> Event:
    """End an item."""
    return event("output_item.done", index, item=item)


def final(*items: Event, status: str = "completed") -> Event:
    """Make a terminal event with an output."""
    return event(status, response={"status": status, "output": items})


def arguments(delta: object, **place: Any) -> Event:
    """Make a delta of a call's arguments, with whatever place its server gives it."""
    return {**event("function_call_arguments.delta", delta=delta), **place}


def text(delta: object, **place: Any) -> Event:
    """Make a text delta, with whatever place its server gives it."""
    return event("output_text.delta", delta=delta, **place)


def canonical(payload: Event) -> ServerSentEvent:
    """Make the event that a well-behaved server sends."""
    name, data = payload["type"].encode(), json.dumps(payload).encode()
    return ServerSentEvent(name, data, b"event: %b\ndata: %b\n\n" % (name, data))


class Reading:
    """One turn, read event by event."""

    def __init__(self, *, name: str | None = "draw", declared: Iterable[str] = (), **limits: int) -> None:
        self.turn = Turn(name=name, declared=frozenset(declared), **limits)
        self.events: list[TurnEvent] = []
        self._items: list[TurnItem] = []

    def take(self, *payloads: Event | bytes | ServerSentEvent) -> list[str]:
        """Take data-only frames; return the lines."""
        told: list[str] = []
        for payload in payloads:
            if isinstance(payload, dict):
                payload = json.dumps(payload).encode()  # noqa: PLW2901  the same, as bytes
            if isinstance(payload, bytes):
                payload = ServerSentEvent(None, payload, None)  # noqa: PLW2901  the same, read
            told += self.lines(self.turn.receive(payload))
        return told

    def lines(self, events: list[TurnEvent]) -> list[str]:
        """Write events down."""
        self.events += events
        return [self._line(one) for one in events]

    def _line(self, one: TurnEvent) -> str:
        words: list[Any]
        match one:
            case Started():
                return f"started {one.response.get('id', '')}".strip()
            case Loose():
                return f"loose {one.payload['type'].removeprefix('response.')}"
            case TurnEnded():
                return f"ended {one.status}"
            case Opened():
                self._items.append(one.item)
                words = ["+", one.item.kind, one.body.get("name"), "(ours)" if one.item.hosted else ""]
            case CallSettled():
                settled = json.dumps(one.arguments) if one.arguments is not None else one.problem
                words = ["settled", settled]
            case Closed():
                words = ["-", one.item.kind, one.body.get("status"), _content(one.body)]
            case Delta():
                words = [one.payload["type"].removeprefix("response."), _content(one.payload)]
        return " ".join([str(self._items.index(one.item)), *(str(word) for word in words if word)])


def _content(told: Event) -> str:
    """Find the words in an event or item."""
    keys = ("delta", "text", "refusal", "arguments", "input", "code", "result")
    if isinstance(told.get("part"), dict):
        told = told["part"]
    parts = [*(told.get("content") or []), *(told.get("summary") or [])]
    words = [str(told[key]) for key in keys if told.get(key)]
    return "|".join([*words, *(_content(part) for part in parts if isinstance(part, dict))])


def read(*payloads: Event | bytes | ServerSentEvent, **options: Any) -> list[str]:
    """Read a whole turn, its end included; return the lines."""
    reading = Reading(**options)
    return [*reading.take(*payloads), *reading.lines(reading.turn.close())]


def told(*payloads: Event, end: Event = COMPLETED, **options: Any) -> list[str]:
    """Read what stands between a turn's first and last event; return its lines."""
    return read(CREATED, *payloads, end, **options)[1:-1]


def deltas(*payloads: Event, name: str) -> list[Event]:
    """Read a turn; return the events of one name about its items."""
    reading = Reading()
    reading.take(CREATED, *payloads)
    events = [one.payload for one in reading.events if isinstance(one, Delta)]
    return [one for one in events if one["type"] == f"response.{name}"]


def closed_body(*payloads: Event) -> Event:
    """Read a turn; return its first item as it was closed."""
    reading = Reading()
    reading.take(CREATED, *payloads)
    return next(one.body for one in reading.events if isinstance(one, Closed))
