"""One page of a list, as all of OpenAI's lists are cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...events.errors import RequestError
from .query import Query

__all__ = ["list_page"]

_MOST = 100
_USUAL = 20


def list_page(items: Sequence[Any], query: Query) -> dict[str, Any]:
    """Cut a page out of items that stand in the order in which they came.

    Args:
        items: objects with an `id`.
        query: `limit` (1 to 100, usually 20), `order` (`desc` unless it is `asc`) and `after`, an id.

    Raises:
        RequestError: a parameter is wrong.
    """
    limit = query.number("limit", _USUAL, 1, _MOST)
    ordered = list(items) if query.choice("order", "desc", "asc") == "asc" else list(items)[::-1]
    after = query.text("after")
    start = 0
    if after:
        start = next((place for place, item in enumerate(ordered, 1) if _id(item) == after), 0)
        if not start:
            raise RequestError(f"No item with id '{after}' found in this list.", param="after")
    page = ordered[start : start + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": _id(page[0]) if page else None,
        "last_id": _id(page[-1]) if page else None,
        "has_more": start + limit < len(ordered),
    }


def _id(item: Any) -> Any:
    return item.get("id") if isinstance(item, dict) else None
