"""The requests after the first: what the model said, what became of it, and a second try where one helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .actions import NextTurn
from .calls import Call, Calls
from .items import call_items, output_item, replayed
from .lowering import LoweredRequest
from .turn import Turn
from .wire import dumps

__all__ = ["FollowUp"]

_MAX_DELAY = 10.0
"""Seconds a client is let wait for a busy server; longer ones had better try again themselves."""

_SHOWN = "The picture that was just made:"


class FollowUp:
    """Builds each later turn's request from the client's own and from all turns so far.

    Args:
        lowered: the client's request.
        calls: what became of the calls.
        new_id: makes an id that begins with the given prefix.
        feedback: `text`, `image` or `image_output`: whether the model also sees the picture.
        max_turns: turns before the last one, which may call nothing.
    """

    def __init__(
        self,
        lowered: LoweredRequest,
        calls: Calls,
        new_id: Callable[[str], str],
        feedback: str,
        max_turns: int,
    ) -> None:
        self._lowered = lowered
        self._calls = calls
        self._new_id = new_id
        self._feedback = feedback
        self._turns_left = max_turns
        self._history: list[dict[str, Any]] = []
        self._items: list[dict[str, Any]] = []
        self._done: list[tuple[str, Call]] = []
        self._call_ids: set[str] = set()
        self._last = False
        self._without: frozenset[str] = frozenset()
        self._tried_later = False

    def next(self, turn: Turn) -> NextTurn:
        """Ask again after a turn whose calls have all ended."""
        self._history += [*self._items, *self._outputs()]
        self._items, self._done = [], []
        for item in turn.items:
            if item.hosted:
                call_id = self._own_call_id(item.call_id)
                arguments = dumps(dict(item.slot.given)).decode()
                self._items.append(call_items(call_id, self._lowered.name or "", arguments))
                self._done.append((call_id, item.slot))
            elif (replay := replayed(item.body)) is not None:
                self._items.append(replay)
        self._turns_left -= 1
        self._last = self._calls.next_turn(last=self._turns_left <= 0)
        self._tried_later = False
        return NextTurn(self._body())

    def after_refusal(self, status: int, retry_after: float | None) -> NextTurn | None:
        """Ask once more where that may help: later if the server was busy, plainer if it refused."""
        if status in (408, 429) or status >= 500:
            if self._tried_later:
                return None
            self._tried_later = True
            if status == 500:
                self._feedback = "text"  # some servers say so where their model cannot see pictures
            return NextTurn(self._body(), min(1.0 if retry_after is None else retry_after, _MAX_DELAY))
        before = self._body()
        self._without = frozenset({"reasoning"})
        self._feedback = "text"
        plain = self._body()
        return None if plain == before else NextTurn(plain)

    def owed(self, turn: Turn) -> tuple[dict[str, Any], ...]:
        """Return the outputs of a last turn's calls, which the model server will not be sent any more."""
        return tuple(
            output_item(item.call_id, item.slot.told) for item in turn.items if item.hosted and item.call_id
        )

    def _body(self) -> dict[str, Any]:
        return self._lowered.next_turn(
            [*self._history, *self._items], self._outputs(), last=self._last, without=self._without
        )

    def _outputs(self) -> list[dict[str, Any]]:
        """The function outputs of the turn: plain strings, which every server takes."""
        outputs = [output_item(call_id, call.told) for call_id, call in self._done]
        for number, (_, call) in enumerate(self._done):
            if not call.data or self._feedback == "text":
                continue
            picture = {
                "type": "input_image",
                "image_url": f"data:image/{call.final['output_format']};base64,{call.data.decode()}",
                "detail": "auto",
            }
            if self._feedback == "image_output":
                outputs[number]["output"] = [{"type": "input_text", "text": call.told}, picture]
            else:
                text = {"type": "input_text", "text": _SHOWN}
                outputs.append({"type": "message", "role": "user", "content": [text, picture]})
        return outputs

    def _own_call_id(self, given: str | None) -> str:
        """Keep the server's call id, unless it has none or used it before: pairs must be unambiguous."""
        call_id = given if given and given not in self._call_ids else self._new_id("call")
        self._call_ids.add(call_id)
        return call_id
