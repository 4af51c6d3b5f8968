"""Many small waits side by side, but never all of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from itertools import islice
from typing import TypeVar

__all__ = ["together"]

T = TypeVar("T")

_AT_ONCE = 50
"""Other requests get their turn in between, however many items one request has."""


async def together(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Await all, some at a time, and return what they give in their order.

    Args:
        awaitables: best a generator: then they too are made some at a time.

    Raises:
        Exception: the first that one of them raises; those behind it are not begun any more.
    """
    given = iter(awaitables)
    results: list[T] = []
    while some := list(islice(given, _AT_ONCE)):
        results += await asyncio.gather(*some)
    return results
