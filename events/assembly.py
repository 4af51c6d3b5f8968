"""Assembles the items of one turn from the events that speak of them.

An item begins when it is announced, or when its content comes unannounced; it is held back while it is
unknown whose it is (a call without a name) or whether it is new (a message under an old id); it ends
once, at the latest with its turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arguments import plain_name
from .endings import (
    beginning,
    end_call,
    end_streamed,
    has_content,
    opening,
    settle,
    streamed_event,
    with_status,
)
from .identity import TurnItems, match_final
from .native import NATIVE, end_native, native_event
from .texts import close_texts, part_event, text_event
from .turn_events import CallSettled, Closed, Delta, Opened, Source, TurnEvent, TurnItem
from .wire import PART_EVENTS, STREAMED_FIELDS, TEXT_EVENTS

__all__ = ["Assembly"]

_TEXTUAL = ("message", "reasoning")
_NAMED = ("function_call", "custom_tool_call")
_CUT_OFF = "The call was cut off before its arguments were complete."


class Assembly:
    """The items of one turn, from their beginnings to their ends.

    Args:
        name: the name under which our tool was offered, None if none was.
        declared: the client's own function names; a call that bears one exactly is the client's.
        max_arguments: characters a call's arguments may have before it fails.
        note: takes words for the log.
    """

    def __init__(
        self,
        *,
        name: str | None,
        declared: frozenset[str],
        max_arguments: int,
        note: Callable[[str], None],
    ) -> None:
        self._name = name
        self._declared = declared
        self._max_arguments = max_arguments
        self._note = note
        self.items = TurnItems()

    # -- how items begin -----------------------------------------------------------------------

    def added(self, body: dict[str, Any], key: object, source: Source | None) -> list[TurnEvent]:
        """Take an item's announcement; `key` is the server's own index."""
        known = self.items.announced(body)
        if known is not None and (not known.closed or known.kind not in _TEXTUAL):
            return []  # announced twice
        made = self._close_implicit(body["type"])
        item = self.items.add(body, key)
        item.twin = known
        item.body = body
        return made + self._introduce(item, source)

    def _introduce(self, item: TurnItem, source: Source | None = None) -> list[TurnEvent]:
        """Open the item, or hold it back while it is unknown."""
        if item.twin is not None or not self._is_known(item):
            item.held = []
            return []
        return self._open(item, source)

    def _is_known(self, item: TurnItem) -> bool:
        """Whether it is known whose item it is, and by which call id the client can answer it."""
        if item.kind not in _NAMED:
            return True
        return bool(item.name) and (not item.implicit or self._is_ours(item.name))

    def _is_ours(self, name: object) -> bool:
        return (
            isinstance(name, str)
            and self._name is not None
            and name not in self._declared
            and plain_name(name) == self._name
        )

    def _open(self, item: TurnItem, source: Source | None = None) -> list[TurnEvent]:
        item.hosted = item.kind == "function_call" and self._is_ours(item.name)
        body = opening(item.body)
        return [Opened(item, body, source if body is item.body else None)]

    def _reveal(self, item: TurnItem) -> list[TurnEvent]:
        """A held item turns out to be real: open it and let out what was held."""
        held, item.held, item.twin = item.held or [], None, None
        if item.kind in _NAMED:
            item.body = {**item.body, "name": item.name}
        opened = self._open(item)
        return opened if item.hosted else [*opened, *held]

    def _close_implicit(self, kind: str) -> list[TurnEvent]:
        """An item that nobody announced ends when something else begins."""
        made: list[TurnEvent] = []
        for item in self.items.open():
            if item.implicit and item.kind not in (kind, *_NAMED):
                made += self._close(item, {})
        return made

    # -- what they hold ------------------------------------------------------------------------

    def content(self, name: str, kind: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
        """Take an event about an item of this kind."""
        item = self.items.of_event(kind, payload)
        made: list[TurnEvent] = []
        if item is None:
            made = self._close_implicit(kind)
            item = self.items.add({"type": kind, "id": payload.get("item_id")}, payload.get("output_index"))
            item.implicit = True
            item.body = beginning(item)
            made += self._introduce(item)
        if item.closed:
            return made
        family = TEXT_EVENTS.get(name)
        if family is not None:
            events = text_event(item, family, payload, raw)
        elif kind == "function_call":
            events = self._arguments(item, name, payload, raw)
        elif name in PART_EVENTS:
            events = part_event(item, payload, raw)
        elif kind == NATIVE:
            events = native_event(item, payload, raw)
        else:
            events = streamed_event(item, name, payload, raw)
        if item.held is None:
            return made + events if made else events
        item.held += events
        if item.twin is not None and item.text and not item.twin.text.startswith(item.text):
            made += self._reveal(item)
        return made

    def _arguments(
        self, item: TurnItem, name: str, payload: dict[str, Any], raw: bytes | None
    ) -> list[TurnEvent]:
        if name.endswith(".delta"):
            delta = payload.get("delta")
            if not isinstance(delta, str) or item.arguments_done:
                return []
            item.arguments_size += len(delta)
            if item.arguments_size <= self._max_arguments or not item.hosted:
                item.arguments.append(delta)
            return [] if item.hosted else [Delta(item, payload, raw)]
        made: list[TurnEvent] = []
        if item.held is not None and isinstance(payload.get("name"), str) and payload["name"]:
            item.name = payload["name"]
            made = self._reveal(item) if self._is_known(item) else []
        whole = payload.get("arguments")
        if item.hosted:
            return made + settle(item, whole, self._max_arguments)
        if item.arguments_done:
            return made
        events, body = end_call(item, {**item.body, "arguments": whole}, "completed")
        if body["arguments"] == whole:
            events[-1] = Delta(item, payload, raw)
        return made + events

    # -- how they end --------------------------------------------------------------------------

    def done(self, body: dict[str, Any], key: object, source: Source | None) -> list[TurnEvent]:
        """Take an item's end, which may be the first that is heard of it, or be heard again."""
        item = self.items.of_done(body, key)
        if item is not None:
            return self._close(item, body, source)
        made = self._close_implicit(body["type"])
        return made + self._whole(self.items.add(body, key), body, source)

    def final(self, output: list[dict[str, Any]], *, complete: bool) -> list[TurnEvent]:
        """Take the final response's items: the last word about open ones, the first about some."""
        made: list[TurnEvent] = []
        matched, left = match_final(self.items, output)
        for item, body in matched:
            if item.hosted and complete:
                made += settle(item, body.get("arguments"), self._max_arguments)
            made += self._close(item, body, complete=complete)
        for body in left:
            if has_content(body) and (complete or not self._is_ours(body.get("name"))):
                made += self._whole(self.items.add(body, None), body, complete=complete)
        return made

    def end(self, *, complete: bool) -> list[TurnEvent]:
        """End all items that are still open, and all calls that are not settled."""
        made: list[TurnEvent] = []
        for item in self.items.open():
            made += self._close(item, {}, complete=complete)
        for item in self.items:
            if item.hosted and complete:
                made += settle(item, None, self._max_arguments, last=True)
            elif item.hosted and not item.settled:
                item.settled = True
                made.append(CallSettled(item, None, _CUT_OFF))
        return made

    def _whole(
        self, item: TurnItem, body: dict[str, Any], source: Source | None = None, *, complete: bool = True
    ) -> list[TurnEvent]:
        """Take an item that comes all at once."""
        item.body = beginning(item)
        made = self._introduce(item)
        return made + self._close(item, body, source, complete=complete)

    def _close(
        self, item: TurnItem, body: dict[str, Any], source: Source | None = None, *, complete: bool = True
    ) -> list[TurnEvent]:
        """Close an item once. An empty body stands for what is known of it.

        Args:
            item: the item.
            body: its final shape, as the server tells it.
            source: the event that does.
            complete: False if the response breaks off; nothing is run for it any more.
        """
        if item.closed:
            return []
        made: list[TurnEvent] = []
        if item.held is not None:
            if isinstance(body.get("name"), str) and body["name"]:
                item.name = body["name"]
            for key in ("id", "call_id"):
                if item.body.get(key) is None and key in body:
                    item.body = {**item.body, key: body[key]}
            if self._is_nothing(item, body):
                item.closed = True
                self.items.drop(item)
                return []
            made = self._reveal(item)
        item.closed = True
        if item.hosted:
            if not body or not complete:
                return made
            item.body = body
            return made + settle(item, body.get("arguments"), self._max_arguments)
        events, item.body = self._ending(item, body, "completed" if complete else "incomplete")
        return [*made, *events, Closed(item, item.body, source if item.body is body else None)]

    def _is_nothing(self, item: TurnItem, body: dict[str, Any]) -> bool:
        """Whether a held item ends without having become real."""
        if item.twin is None:
            if not item.name:
                self._note("dropped a call that has no name")
            return not item.name
        assert item.held is not None
        item.held += close_texts(item, body)[0]
        return item.text in ("", item.twin.text)

    def _ending(
        self, item: TurnItem, body: dict[str, Any], status: str
    ) -> tuple[list[TurnEvent], dict[str, Any]]:
        """What an item lacks when it closes, and its final body."""
        if not body:
            body = {**item.body, "status": "in_progress"}
        if item.kind == "function_call":
            return end_call(item, body, status)
        events, body = close_texts(item, body)
        more: list[TurnEvent] = []
        if item.kind == NATIVE:
            more, body = end_native(item, body)
        elif item.kind in STREAMED_FIELDS:
            more, body = end_streamed(item, body, status)
        elif item.kind == "message" and body.get("role") != "assistant":
            body = {**body, "role": "assistant"}
        if item.kind == "message" or "status" in body:
            body = with_status(body, status)
        return events + more, body
