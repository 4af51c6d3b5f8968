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

from .assembly import Assembly
from .endings import has_content, told_error
from .identity import TurnItems
from .sse import ServerSentEvent
from .turn_events import Loose, Started, TurnEnded, TurnEvent
from .wire import EVENT_NAMES, HEARTBEATS, ITEM_EVENTS, LOOSE_EVENTS, PART_EVENTS, TERMINAL, loads

__all__ = ["MAX_ARGUMENTS", "Turn"]

MAX_ARGUMENTS = 256 << 10
"""Characters of one call's arguments: many times the longest prompt, and far from filling the memory."""

_LIFECYCLE = ("response.created", "response.in_progress", "response.queued")
_MAX_NOTES = 20
_REPORTED = "it reported an error"


class Turn:
    """Reads one answer of the model server.

    Args:
        name: the name under which our tool was offered, None if none was.
        declared: the client's own function names; a call that bears one exactly is the client's.
        max_arguments: characters a call's arguments may have before it fails.
    """

    def __init__(
        self, *, name: str | None, declared: frozenset[str] = frozenset(), max_arguments: int = MAX_ARGUMENTS
    ) -> None:
        self._assembly = Assembly(name=name, declared=declared, max_arguments=max_arguments, note=self._note)
        self.notes: list[str] = []
        """What was dropped, for the log; each kind of thing once."""
        self.started = False
        self.ended: TurnEnded | None = None
        self.sentinel = False
        """Whether the server sent `[DONE]`."""

    @property
    def items(self) -> TurnItems:
        """The turn's items, in the order in which they began."""
        return self._assembly.items

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
        name, raw = payload.get("type"), frame.raw
        if not isinstance(name, str):
            if payload.get("error"):
                return self._fail_with(payload["error"])
            name = payload["type"] = (frame.event or b"").decode(errors="replace")
            raw = None
        elif EVENT_NAMES.get(name) != frame.event:
            raw = None
        if payload.get("error") and name != "error":
            # The official SDKs take any event with this key for an error.
            del payload["error"]
            raw = None
        kind = ITEM_EVENTS.get(name)
        if kind is None:
            return self._other(name, payload, raw)
        if not self.started:
            return [*self._start(None), *self._assembly.content(name, kind, payload, raw)]
        return self._assembly.content(name, kind, payload, raw)

    def receive_response(self, response: dict[str, Any]) -> list[TurnEvent]:
        """Take a whole response object, the answer of a server that did not stream.

        Its items count as done one after the other, just as in a stream that ends like it.
        """
        payload = {"response": response}
        ended = _ending("response.completed", payload)
        if ended.status == "failed":
            return self._terminal("response.failed", payload)
        made = self._start(response)
        for index, body in enumerate(_items(response)):
            if has_content(body):
                made += self._assembly.done(body, index, None)
        return made + self._end(ended)

    def close(self, told: str = "") -> list[TurnEvent]:
        """The server's body has ended. Without a terminal event the turn has failed."""
        return self.abandon("the model server's stream ended without a terminal event", told=told)

    def abandon(self, reason: str, code: str = "server_error", *, told: str = "") -> list[TurnEvent]:
        """End the turn from outside, if it has not ended: what is open closes incomplete."""
        return [] if self.ended else self._fail(reason, code, told)

    # -- events --------------------------------------------------------------------------------

    def _other(self, name: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
        if name in PART_EVENTS:
            return self._part(name, payload, raw)
        if name in _LIFECYCLE:
            return self._start(payload.get("response"))
        if name in ("response.output_item.added", "response.output_item.done"):
            return self._item(name, payload, raw)
        if name in TERMINAL:
            return self._terminal(name, payload)
        if name == "error":
            return self._fail_with(payload.get("error") or payload)
        if name in LOOSE_EVENTS:
            return [*self._start(None), Loose(payload, raw)]
        if name not in HEARTBEATS:
            self._note(f"dropped events of the unknown type {name[:80]!r}")
        return []

    def _part(self, name: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
        part = payload.get("part")
        if not isinstance(part, dict):
            self._note(f"dropped a {name} without a part")
            return []
        thought = "reasoning" in name or part.get("type") in ("reasoning_text", "summary_text")
        kind = "reasoning" if thought else "message"
        return [*self._start(None), *self._assembly.content(name, kind, payload, raw)]

    def _item(self, name: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
        body = payload.get("item")
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            self._note(f"dropped a {name} without an item")
            return []
        act = self._assembly.added if name.endswith(".added") else self._assembly.done
        source = None if raw is None else (payload, raw)
        return [*self._start(None), *act(body, payload.get("output_index"), source)]

    def _start(self, response: object) -> list[TurnEvent]:
        if self.started:
            return []
        self.started = True
        return [Started(response if isinstance(response, dict) else {})]

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(note)

    # -- the end -------------------------------------------------------------------------------

    def _terminal(self, name: str, payload: dict[str, Any]) -> list[TurnEvent]:
        ended = _ending(name, payload)
        complete = ended.status == "completed"
        made = self._start(ended.response)
        made += self._assembly.final(_items(ended.response), complete=complete)
        return made + self._end(ended)

    def _end(self, ended: TurnEnded) -> list[TurnEvent]:
        made = self._assembly.end(complete=ended.status == "completed")
        self.ended = ended
        return [*made, ended]

    def _fail_with(self, error: object) -> list[TurnEvent]:
        words, code = told_error(error)
        return self._start(None) + self._end(TurnEnded("failed", {}, {}, _REPORTED, code, words=words))

    def _fail(self, reason: str, code: str = "server_error", told: str = "") -> list[TurnEvent]:
        return self._end(TurnEnded("failed", {}, {}, reason, code, broken=True, told=told))


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        payload = loads(data)
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None


def _ending(name: str, payload: dict[str, Any]) -> TurnEnded:
    """Read a terminal event: the response's own status is truth, if it is a final one."""
    response = payload.get("response")
    if not isinstance(response, dict):
        response = {}
    status = TERMINAL.get(f"response.{response.get('status')}", TERMINAL[name])
    extra = {k: v for k, v in payload.items() if k not in ("type", "response", "sequence_number", "error")}
    words, code = told_error(response.get("error"))
    return TurnEnded(status, response, extra, _REPORTED, code, words=words)


def _items(response: dict[str, Any]) -> list[dict[str, Any]]:
    output = response.get("output")
    bodies = output if isinstance(output, list) else []
    return [body for body in bodies if isinstance(body, dict) and isinstance(body.get("type"), str)]
