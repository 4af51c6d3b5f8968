"""What the client has been told: the one owner of its numbers, its ids and its response object.

`sequence_number` runs over the whole response, `output_index` is the next free integer when an item is
announced, and an id that the server left out, used before or changes is replaced by one of ours, the
same in all events of the item. Where a frame already says just that, its own bytes go out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .response_object import REQUIRED, begun, ended_as, error_of
from .sse import encode
from .turn_events import Source, TurnEnded
from .usage import IMAGE_DETAILS, add_usage, full_usage
from .wire import CLIENT_CALLS, EVENT_NAMES, dumps

__all__ = ["ClientResponse", "Slot"]

_EMPTY_TEXT = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
_PREFIXES = {
    "message": "msg_ig",
    "reasoning": "rs_ig",
    "function_call": "fc_ig",
    "image_generation_call": "ig",
}


@dataclass(slots=True, eq=False)
class Slot:
    """One item as the client knows it."""

    index: int
    id: str
    type: str
    call_id: str | None = None


class ClientResponse:
    """Builds the client's frames, in order.

    Args:
        echo: response fields that must show the client's own values (`tools`, `tool_choice`, …).
        defaults: values from the request for fields that a bare response object lacks.
        new_id: makes an id that begins with the given prefix and an underscore.
        now: seconds since the epoch.
        stream: False builds no frames but only the final object.
        response_id: the id that the client has been told already; else the model server's own.
        claim: takes an id of the model server's; False if an item of another response has it.
    """

    def __init__(
        self,
        *,
        echo: Mapping[str, Any],
        defaults: Mapping[str, Any],
        new_id: Callable[[str], str],
        now: Callable[[], float],
        stream: bool = True,
        response_id: str | None = None,
        claim: Callable[[str], bool] = bool,
    ) -> None:
        self._echo = echo
        self._defaults = {**REQUIRED, **defaults}
        self._new_id = new_id
        self._now = now
        self._stream = stream
        self._response_id = response_id
        self._claim = claim
        self.number = 0
        """The number of the next event."""
        self._ids: set[str] = set()
        self._call_ids: set[tuple[str, str]] = set()
        self._types: list[str] = []
        self._done: dict[int, tuple[bytes, ...]] = {}
        self._bodies: dict[int, dict[str, Any]] = {}
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._tool_usage: dict[str, Any] | None = None
        self.final: tuple[bytes, ...] | None = None
        """The final response object as JSON, once there is one."""
        self.told: dict[str, Any] = {}
        """The same as an object, but for the results of our pictures."""

    @property
    def id(self) -> str:
        """The response's id; "" as long as nobody has said it."""
        return str(self._head.get("id") or self._response_id or "")

    @property
    def started(self) -> bool:
        """Whether `response.created` has been sent."""
        return bool(self._head)

    def lacks_message(self, item_type: str) -> bool:
        """Whether nothing follows the last item of this type that an agent takes for an answer or a task.

        Agent SDKs then ask again, up to their turn limit.
        """
        if item_type not in self._types:
            return False
        last = len(self._types) - 1 - self._types[::-1].index(item_type)
        return not any(kind == "message" or kind in CLIENT_CALLS for kind in self._types[last:])

    def has_finished(self, item_type: str) -> bool:
        """Tell whether any item of this type was completed."""
        done = (body for body in self._bodies.values() if body["type"] == item_type)
        return any(body.get("status") == "completed" for body in done)

    def begin(self, response: Mapping[str, Any]) -> list[bytes]:
        """Send `created` and `in_progress`, made whole from a perhaps bare or empty response object."""
        head = begun(response, self._defaults)
        identifier = self._response_id or head.get("id")
        created = head.get("created_at")
        head["id"] = identifier if isinstance(identifier, str) and identifier else self._new_id("resp")
        head["created_at"] = created if isinstance(created, int | float) else int(self._now())
        self._head = {**head, **self._echo}
        return [
            self._frame({"type": name, "response": self._head})
            for name in ("response.created", "response.in_progress")
        ]

    def open(self, body: dict[str, Any], source: Source | None = None) -> tuple[Slot, bytes]:
        """Announce an item; its number and id are fixed from here on."""
        kind = body["type"]
        slot = Slot(len(self._types), self._own_id(kind, body.get("id")), kind)
        if "call_id" in body or kind in ("function_call", "custom_tool_call"):
            slot.call_id = self._own_call_id(kind, body.get("call_id"))
        self._types.append(kind)
        own = self._owned(slot, body)
        name = "response.output_item.added"
        raw = self._raw(slot, source) if own is body else None
        return slot, raw or self._frame({"type": name, "output_index": slot.index, "item": own})

    def event(
        self, slot: Slot, payload: dict[str, Any], raw: bytes | None = None, data: bytes = b""
    ) -> bytes:
        """Send an event about an open item. `data` is base64 that becomes its `partial_image_b64`."""
        number = self.number
        if (
            raw is not None
            and payload.get("sequence_number") == number
            and payload.get("output_index") == slot.index
            and payload.get("item_id") == slot.id
        ):
            self.number = number + 1
            return raw
        payload["item_id"] = slot.id
        payload["output_index"] = slot.index
        tail = (b',"partial_image_b64":"', data, b'"}') if data else ()
        return self._frame(payload, *tail)

    def close(
        self, slot: Slot, body: dict[str, Any], source: Source | None = None, *, data: bytes = b""
    ) -> bytes:
        """Send the final item. `data` is base64 that becomes its `result`, moved but never copied again."""
        own = self._owned(slot, body)
        head = dumps(own)
        done = (head[:-1], b',"result":"', data, b'"}') if data else (head,)
        self._done[slot.index] = done
        self._bodies[slot.index] = own
        raw = self._raw(slot, source) if own is body else None
        payload = {"type": "response.output_item.done", "output_index": slot.index}
        return raw or self._frame(payload, b',"item":', *done, b"}")

    def empty_message(self) -> list[bytes]:
        """Send a whole assistant's message that says nothing."""
        body = {"type": "message", "status": "in_progress", "role": "assistant", "content": []}
        slot, opened = self.open(body)
        place = {"content_index": 0}
        part = _EMPTY_TEXT
        done = {"type": "response.output_text.done", **place, "text": "", "logprobs": []}
        return [
            opened,
            self.event(slot, {"type": "response.content_part.added", **place, "part": part}),
            self.event(slot, done),
            self.event(slot, {"type": "response.content_part.done", **place, "part": part}),
            self.close(slot, {**body, "status": "completed", "content": [part]}),
        ]

    def loose(self, payload: dict[str, Any], raw: bytes | None) -> bytes:
        """Send an event that belongs to no item."""
        if raw is not None and payload.get("sequence_number") == self.number:
            self.number += 1
            return raw
        return self._frame(payload)

    def spent(self, usage: object) -> None:
        """Add one turn's usage. A turn without usage adds nothing."""
        if isinstance(usage, dict) and usage:
            self._usage = add_usage(self._usage or {}, full_usage(usage))

    def tool_spent(self, usage: Mapping[str, Any] | None) -> None:
        """Add what a backend says it spent on one picture."""
        if usage:
            self._tool_usage = add_usage(self._tool_usage or {}, full_usage(usage, IMAGE_DETAILS))

    def error(self, ended: TurnEnded) -> bytes:
        """Send the `error` frame in both its shapes at once: SDKs read the nested one or the flat one."""
        fields = {"type": "server_error", **error_of(ended), "param": None}
        return self._frame({**fields, "type": "error", "error": fields})

    def end(self, status: str, ended: TurnEnded) -> bytes:
        """Send the terminal event, and keep its response object in `final` and `told`.

        Args:
            status: the response's. A `cancelled` one ends with `response.failed`: the SDKs know no event of
                its own.
            ended: how its last turn ended.
        """
        whole = {**ended_as(status, ended, self._head), **self._echo, "usage": self._usage}
        whole |= {"id": self._head["id"], "created_at": self._head["created_at"]}
        if self._tool_usage is not None:
            own = ended.response.get("tool_usage")
            whole["tool_usage"] = {**(own if isinstance(own, dict) else {}), "image_gen": self._tool_usage}
        self.told = {**whole, "output": [self._bodies[index] for index in sorted(self._bodies)]}
        items: list[bytes] = []
        for index in sorted(self._done):
            items += (b",", *self._done[index]) if items else self._done[index]
        self.final = (dumps(whole)[:-1], b',"output":[', *items, b"]}")
        event = "failed" if status == "cancelled" else status
        return self._frame({"type": f"response.{event}", **ended.extra}, b',"response":', *self.final, b"}")

    def _own_id(self, kind: str, given: object) -> str:
        if not (isinstance(given, str) and given and given not in self._ids and self._claim(given)):
            given = self._new_id(_PREFIXES.get(kind, "item_ig"))
        self._ids.add(given)
        return given

    def _own_call_id(self, kind: str, given: object) -> str:
        """Keep the server's call id, unless it used it for another such call: each must be answerable."""
        call_id = given if isinstance(given, str) and given else self._new_id("call")
        if (kind, call_id) in self._call_ids:
            call_id = self._new_id("call")
        self._call_ids.add((kind, call_id))
        return call_id

    def _owned(self, slot: Slot, body: dict[str, Any]) -> dict[str, Any]:
        """Return the item with the ids the client knows; the same object if it has them."""
        if body.get("id") == slot.id and (slot.call_id is None or body.get("call_id") == slot.call_id):
            return body
        own = {**body, "id": slot.id}
        if slot.call_id is not None:
            own["call_id"] = slot.call_id
        return own

    def _raw(self, slot: Slot, source: Source | None) -> bytes | None:
        """Return the server's own frame about an item, if it says just what the client must read."""
        if source is None:
            return None
        payload, raw = source
        if payload.get("sequence_number") != self.number or payload.get("output_index") != slot.index:
            return None
        self.number += 1
        return raw

    def _frame(self, payload: dict[str, Any], *tail: bytes) -> bytes:
        """Number an event and build its frame; `tail` replaces the closing brace of its JSON."""
        payload["sequence_number"] = self.number
        self.number += 1
        if not self._stream:
            return b""
        name = EVENT_NAMES[payload["type"]]
        if not tail:
            return encode(name, dumps(payload))
        return b"".join((b"event: ", name, b"\ndata: ", dumps(payload)[:-1], *tail, b"\n\n"))
