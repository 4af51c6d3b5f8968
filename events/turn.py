"""ONE upstream stream, with all its quirks, made into clean events.

Every server's stream goes through the same rules; there are no modes per server. Two thoughts
carry them:

*Identity.* An event belongs to the item whose id it names, if that id is known; else to the open
item of the same kind and index; else of the same call id; else to the one opened last. Any of these may
be absent, collide, lie until the end, or change with every event.

*Truth.* The `type` inside the JSON counts, not the `event:` line; the response's status counts,
not the event's name; what was streamed counts, and the rest of the grammar is made up around it.
"""

from __future__ import annotations

from typing import Any

from .arguments import plain_name
from .endings import beginning, end_call, end_native, has_content, settle, told_error, with_status
from .identity import TurnItems, match_final
from .sse import ServerSentEvent
from .texts import close_texts, part_event, text_event
from .turn_events import (
    CallSettled,
    Closed,
    Delta,
    Loose,
    Opened,
    Source,
    Started,
    TurnEnded,
    TurnEvent,
    TurnItem,
)
from .wire import (
    EVENT_NAMES,
    HEARTBEATS,
    ITEM_EVENTS,
    LOOSE_EVENTS,
    PART_EVENTS,
    TERMINAL,
    TEXT_EVENTS,
    loads,
)

__all__ = ["MAX_ARGUMENTS", "Turn"]

MAX_ARGUMENTS = 256 << 10
"""Bytes of one call's arguments: many times the longest prompt, and far from filling the memory."""

_LIFECYCLE = ("response.created", "response.in_progress", "response.queued")
_NATIVE = "image_generation_call"


class Turn:
    """Reads one answer of the model server.

    Args:
        name: the name under which our tool was offered, None if none was.
        declared: the client's own function names; a call that bears one exactly is the client's.
        max_arguments: bytes a call's arguments may have before it fails.
    """

    def __init__(
        self, *, name: str | None, declared: frozenset[str] = frozenset(), max_arguments: int = MAX_ARGUMENTS
    ) -> None:
        self.name = name
        self.declared = declared
        self.max_arguments = max_arguments
        self.items = TurnItems()
        self.notes: list[str] = []
        self.started = False
        self.ended: TurnEnded | None = None
        self.sentinel = False
        """Whether the server sent `[DONE]`."""

    def receive(self, frame: ServerSentEvent) -> list[TurnEvent]:
        """Take one event. After the terminal one everything but `[DONE]` is ignored."""
        data = frame.data
        if len(data) < 16 and data.strip() == b"[DONE]":
            self.sentinel = True
            return []
        if self.ended:
            return []
        payload = _parsed(data)
        if payload is None:
            if data.lstrip()[:1] == b"{":
                return self._fail("the model server sent an event that is not JSON")
            self._note("dropped data that is no JSON object")
            return []
        name = payload.get("type")
        if not isinstance(name, str):
            if payload.get("error"):
                return self._fail_with(payload["error"])
            name = payload["type"] = (frame.event or b"").decode(errors="replace")
        raw = frame.raw if frame.event is not None and EVENT_NAMES.get(name) == frame.event else None
        kind = ITEM_EVENTS.get(name)
        if kind is not None:
            return self._content(name, kind, payload, raw)
        return self._other(name, payload, raw)

    def receive_response(self, response: dict[str, Any]) -> list[TurnEvent]:
        """Take a whole response object, the answer of a server that did not stream."""
        return self._terminal("response.completed", {"response": response})

    def close(self) -> list[TurnEvent]:
        """The server's body has ended. Without a terminal event the turn has failed."""
        return [] if self.ended else self._fail("the model server's stream ended without a terminal event")

    def abandon(self, reason: str, code: str) -> list[TurnEvent]:
        """End the turn from outside: what is open closes incomplete."""
        return [] if self.ended else self._fail(reason, code)

    # -- events that are not about one item's content ------------------------------------------

    def _other(self, name: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
        if name in PART_EVENTS:
            part = payload.get("part")
            if not isinstance(part, dict):
                return []
            kind = "reasoning" if part.get("type") == "reasoning_text" else "message"
            return self._content(name, kind, payload, raw)
        if name in _LIFECYCLE:
            return self._start(payload.get("response"))
        if name in ("response.output_item.added", "response.output_item.done"):
            body = payload.get("item")
            if not isinstance(body, dict) or not isinstance(body.get("type"), str):
                self._note(f"dropped a {name} without an item")
                return []
            act = self._added if name.endswith(".added") else self._done
            source = None if raw is None else (payload, raw)
            return [*self._start(None), *act(body, payload.get("output_index"), source)]
        if name in TERMINAL:
            return self._terminal(name, payload)
        if name == "error":
            return self._fail_with(payload.get("error") or payload)
        if name in LOOSE_EVENTS:
            return [*self._start(None), Loose(payload, raw)]
        if name not in HEARTBEATS:
            self._note(f"dropped events of the unknown type {name[:80]!r}")
        return []

    def _start(self, response: object) -> list[TurnEvent]:
        if self.started:
            return []
        self.started = True
        return [Started(response if isinstance(response, dict) else {})]

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < 20:
            self.notes.append(note)

    # -- items ---------------------------------------------------------------------------------

    def _added(self, body: dict[str, Any], key: object, source: Source | None) -> list[TurnEvent]:
        known = self.items.announced(body)
        if known is not None and (not known.closed or "call_id" in body):
            return []  # announced twice
        made = self._close_implicit(body["type"])
        item = self.items.add(body, key)
        item.twin = known
        item.body = body
        return made + self._introduce(item, source)

    def _introduce(self, item: TurnItem, source: Source | None = None) -> list[TurnEvent]:
        """Open the item, or hold it back while its name or its being new is unknown."""
        if item.twin is not None:
            item.held = []
            return []
        if item.kind == "function_call":
            if not item.name:
                item.held = []
                return []
            item.hosted = self._is_ours(item.name)
        if item.body.get("status", "in_progress") is None:
            item.body, source = {**item.body, "status": "in_progress"}, None
        return [Opened(item, item.body, source)]

    def _is_ours(self, name: str) -> bool:
        return self.name is not None and name not in self.declared and plain_name(name) == self.name

    def _reveal(self, item: TurnItem) -> list[TurnEvent]:
        """A held item turns out to be real: open it and let out what was held."""
        held, item.held, item.twin = item.held or [], None, None
        item.body = {**item.body, **({"name": item.name} if item.kind == "function_call" else {})}
        opened = self._introduce(item)
        return opened if item.hosted else [*opened, *held]

    def _content(self, name: str, kind: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
        item = self.items.of_event(kind, payload)
        made: list[TurnEvent] = []
        if item is None:
            made = [*self._start(None), *self._close_implicit(kind)]
            item = self.items.add({"type": kind, "id": payload.get("item_id")}, payload.get("output_index"))
            item.implicit = True
            item.body = beginning(item)
            made += self._introduce(item)
        if item.closed:
            return made
        if kind == "function_call":
            events = self._arguments(item, name, payload, raw)
        elif name in TEXT_EVENTS:
            events = text_event(item, payload, raw)
        elif name in PART_EVENTS:
            events = part_event(item, payload, raw)
        else:
            item.seen.add(name)
            events = [Delta(item, payload, raw)]
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
            if item.arguments_size <= self.max_arguments or not item.hosted:
                item.arguments.append(delta)
            return [] if item.hosted else [Delta(item, payload, raw)]
        made: list[TurnEvent] = []
        if item.held is not None and isinstance(payload.get("name"), str) and payload["name"]:
            item.name = payload["name"]
            made = self._reveal(item)
        whole = payload.get("arguments")
        if item.hosted:
            return made + self._settle(item, whole)
        if item.arguments_done:
            return made
        events, body = end_call(item, {**item.body, "arguments": whole}, "completed")
        if events and body["arguments"] == whole:
            events[-1] = Delta(item, payload, raw)
        return made + events

    def _settle(self, item: TurnItem, whole: object = None, *, last: bool = False) -> list[TurnEvent]:
        return settle(item, whole, self.max_arguments, last=last)

    def _done(self, body: dict[str, Any], key: object, source: Source | None) -> list[TurnEvent]:
        item = self.items.of_done(body, key)
        if item is not None:
            return self._close(item, body, source)
        made = self._close_implicit(body["type"])
        return made + self._whole(self.items.add(body, key), body, source)

    def _whole(self, item: TurnItem, body: dict[str, Any], source: Source | None = None) -> list[TurnEvent]:
        """Take an item that comes all at once."""
        item.body = beginning(item)
        made = self._introduce(item)
        return made + self._close(item, body, source)

    def _close(
        self, item: TurnItem, body: dict[str, Any], source: Source | None = None, *, status: str = "completed"
    ) -> list[TurnEvent]:
        if item.closed:
            return []
        made: list[TurnEvent] = []
        if item.held is not None:
            if isinstance(body.get("name"), str) and body["name"]:
                item.name = body["name"]
            if item.twin is not None or not item.name:
                item.held += close_texts(item, body)[0]
            if (item.twin is not None and item.text in ("", item.twin.text)) or (
                item.kind == "function_call" and not item.name
            ):
                if item.twin is None:
                    self._note("dropped a function call that has no name")
                item.closed = True
                self.items.drop(item)
                return []
            made = self._reveal(item)
        item.closed = True
        if item.hosted:
            return made + (self._settle(item, body.get("arguments")) if body else [])
        events, final = self._ending(item, body, status)
        item.body = final
        return [*made, *events, Closed(item, final, source if final is body else None)]

    def _ending(
        self, item: TurnItem, body: dict[str, Any], status: str
    ) -> tuple[list[TurnEvent], dict[str, Any]]:
        """What an item lacks when it closes, and its final body."""
        if not body:
            body = {**item.body, "status": status}
        if item.kind == "function_call":
            return end_call(item, body, status)
        events, body = close_texts(item, body)
        if item.kind == _NATIVE:
            more, body = end_native(item, body)
            events += more
        if item.kind == "message" or "status" in body:
            body = with_status(body, status)
        return events, body

    def _close_implicit(self, kind: str) -> list[TurnEvent]:
        """An item that nobody announced ends when something else begins."""
        made: list[TurnEvent] = []
        for item in self.items.open():
            if item.implicit and item.kind not in (kind, "function_call"):
                made += self._close(item, {})
        return made

    # -- the end -------------------------------------------------------------------------------

    def _terminal(self, name: str, payload: dict[str, Any]) -> list[TurnEvent]:
        response = payload.get("response")
        if not isinstance(response, dict):
            response = {}
        told = response.get("status")
        status = TERMINAL.get(f"response.{told}", TERMINAL[name]) if isinstance(told, str) else TERMINAL[name]
        made = self._start(response)
        output = response.get("output")
        matched, left = match_final(self.items, output if isinstance(output, list) else [])
        for item, body in matched:
            if item.hosted and not item.settled and status == "completed":
                made += self._settle(item, body.get("arguments"))
            made += self._close(item, body, status=status)
        for body in left:
            if status == "completed" and has_content(body):
                made += self._whole(self.items.add(body, None), body)
        extra = {
            k: v for k, v in payload.items() if k not in ("type", "response", "sequence_number", "error")
        }
        error = response.get("error")
        ended = (
            TurnEnded(status, response, extra, *told_error(error))
            if error
            else TurnEnded(status, response, extra)
        )
        return made + self._end(ended)

    def _end(self, ended: TurnEnded) -> list[TurnEvent]:
        made: list[TurnEvent] = []
        whole = ended.status == "completed"
        for item in self.items.open():
            made += self._close(item, {}, status="completed" if whole else "incomplete")
        for item in list(self.items):
            if item.hosted and not item.settled:
                if whole:
                    made += self._settle(item, last=True)
                else:
                    item.settled = True
                    made.append(
                        CallSettled(item, None, "The call was cut off before its arguments were complete.")
                    )
        self.ended = ended
        return [*made, ended]

    def _fail_with(self, error: object) -> list[TurnEvent]:
        reason, code = told_error(error)
        return self._start(None) + self._end(TurnEnded("failed", {}, {}, reason, code))

    def _fail(self, reason: str, code: str = "server_error") -> list[TurnEvent]:
        return self._end(TurnEnded("failed", {}, {}, reason, code, broken=True))


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        payload = loads(data)
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None
