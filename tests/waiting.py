"""Waiting for what other tasks do, and for time to pass, without losing any."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Clock", "News", "no_hanging", "settle"]

_HANGS = 30.0
"""Seconds after which a test is hopeless, much longer than any takes."""

_deadlines: set[asyncio.Timeout] = set()


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


class Clock:
    """The running loop's own clock, which a test sets forward; what is due by then happens at once."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._time = loop.time
        self._ahead = 0.0
        loop.time = lambda: self._time() + self._ahead  # type: ignore[method-assign]  # the clock is set

    async def forward(self, seconds: float) -> None:
        self._ahead += seconds
        for deadline in _deadlines:
            when = deadline.when()
            assert when is not None
            deadline.reschedule(when + seconds)
        await settle()


@contextmanager
def no_hanging() -> Iterator[asyncio.Timeout]:
    """Make a deadline that is only for tests which hang; a clock set forward does not count."""
    deadline = asyncio.timeout(_HANGS)
    _deadlines.add(deadline)
    try:
        yield deadline
    finally:
        _deadlines.discard(deadline)
