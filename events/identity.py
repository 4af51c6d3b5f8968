"""Which item an event speaks of: the identities of one turn's items.

Ids may be absent (so the index decides), indexes may collide or lie (so the id decides), and both may
change from event to event (so the order decides). The rules stand in `TurnItems.of_event`,
`TurnItems.of_done` and `match_final`, each from the surest mark to the weakest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .arguments import plain_name
from .turn_events import TurnItem
from .wire import CLIENT_CALLS

__all__ = ["TurnItems", "match_final"]


class TurnItems:
    """The items of one turn, in the order in which they began."""

    __slots__ = ("_by_id", "_items")

    def __init__(self) -> None:
        self._items: list[TurnItem] = []
        self._by_id: dict[str, TurnItem] = {}

    def __iter__(self) -> Iterator[TurnItem]:
        return iter(self._items)

    @property
    def client_called(self) -> bool:
        """Whether an item waits for the client: the model cannot go on before it was answered."""
        return any(item.kind in CLIENT_CALLS and not item.hosted for item in self._items)

    def open(self, kind: str | None = None) -> list[TurnItem]:
        """Return the items that have not closed, of one kind or of all."""
        return [item for item in self._items if not item.closed and kind in (None, item.kind)]

    def add(self, body: dict[str, Any], key: object) -> TurnItem:
        """Begin an item. From now on its id, if it has one, means this item."""
        item = TurnItem(
            body["type"],
            id=_text(body.get("id")),
            key=key,
            call_id=_text(body.get("call_id")),
            name=_text(body.get("name")),
        )
        self._items.append(item)
        if item.id is not None:
            self._by_id[item.id] = item
        return item

    def drop(self, item: TurnItem) -> None:
        """Forget an item that nobody was told of."""
        self._items.remove(item)

    def announced(self, body: dict[str, Any]) -> TurnItem | None:
        """Find the item of the same id and kind, unless another call id says that the id was used again."""
        item = self._by_id.get(_text(body.get("id")) or "")
        if item is None or item.kind != body["type"]:
            return None
        call_id = _text(body.get("call_id"))
        return None if call_id and item.call_id and call_id != item.call_id else item

    def of_event(self, kind: str, payload: dict[str, Any]) -> TurnItem | None:
        """Find the item whose content an event carries; None if it must be a new one."""
        item_id = payload.get("item_id")
        if isinstance(item_id, str):
            item = self._by_id.get(item_id)
            if item is not None and item.kind == kind:
                return item
        candidates = self.open(kind)
        if not candidates:
            return None
        key = payload.get("output_index")
        for mark, value in (("key", key), ("call_id", payload.get("call_id")), ("call_id", item_id)):
            for item in reversed(candidates):
                if value is not None and getattr(item, mark) == value:
                    return item
        last = candidates[-1]
        if last.implicit and _differ(item_id, last.id) and _differ(key, last.key):
            return None
        return last

    def of_done(self, body: dict[str, Any], key: object) -> TurnItem | None:
        """Find the item that a done event ends, closed ones included; None if it was never announced."""
        kind, item_id, call_id = body["type"], _text(body.get("id")), _text(body.get("call_id"))
        known = self.announced(body)
        if known is not None:
            return known
        same = [item for item in self._items if item.kind == kind]
        for item in reversed(same):
            if call_id and item.call_id == call_id:
                return item
        candidates = [item for item in same if not item.closed]
        for item in reversed(candidates):
            if key is not None and item.key == key:
                return item
        if candidates and not _is_other(candidates[-1], item_id, call_id, key):
            return candidates[-1]
        if key is None and item_id:
            return None
        repeated = (item for item in same if item.key == key and not _differ(call_id, item.call_id))
        return next((item for item in repeated if _essence(item.body) == _essence(body)), None)


def _is_other(item: TurnItem, item_id: str | None, call_id: str | None, key: object) -> bool:
    """Whether a done event ends another item than this open one; ids alone may have changed."""
    if not _differ(item_id, item.id):
        return False
    return _differ(key, item.key) or (key is None and _differ(call_id, item.call_id))


def match_final(
    items: TurnItems, output: list[dict[str, Any]]
) -> tuple[list[tuple[TurnItem, dict[str, Any]]], list[dict[str, Any]]]:
    """Pair the final response's items with those of the stream; return the pairs and what is new.

    Servers that parse their text twice mint new ids for the final output; then the order among items
    of one kind and name decides.
    """
    bodies = output
    streamed = list(items)
    matched: list[tuple[TurnItem, dict[str, Any]]] = []
    for same in (_same_identity, _same_name):
        left = []
        for body in bodies:
            item = next((item for item in streamed if same(item, body)), None)
            if item is None:
                left.append(body)
            else:
                streamed.remove(item)
                matched.append((item, body))
        bodies = left
    return matched, bodies


def _same_identity(item: TurnItem, body: dict[str, Any]) -> bool:
    if item.kind != body["type"]:
        return False
    call_id = _text(body.get("call_id"))
    if call_id and item.call_id:
        return call_id == item.call_id
    return item.id is not None and item.id == body.get("id")


def _same_name(item: TurnItem, body: dict[str, Any]) -> bool:
    name = _text(body.get("name"))
    return item.kind == body["type"] and (
        not item.name or not name or plain_name(item.name) == plain_name(name)
    )


def _differ(told: object, known: object) -> bool:
    return told is not None and known is not None and told != known


def _essence(body: dict[str, Any]) -> tuple[object, ...]:
    return tuple(body.get(key) for key in ("name", "arguments", "content", "summary"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
