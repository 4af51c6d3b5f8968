"""Waiting for what happens in other tasks, without looking at a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["News", "settle"]


async def settle() -> None:
    """Let every task go on until it waits for something."""
    for _ in range(30):
        await asyncio.sleep(0)


class News:
    """Lets others wait until something has changed."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def tell(self) -> None:
        self._news.set()

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            self._news.clear()
            await self._news.wait()
