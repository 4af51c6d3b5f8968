"""What a server process holds: counted from outside by /proc, and its tasks by a question."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import aiohttp

from .served import CENSUS

__all__ = ["Census", "census", "levels", "settled"]

_POLL = 0.5
_IDLE = 3.5
"""Seconds without a change after which nothing changes any more: idle connections are kept for two."""
_PATIENCE = 30.0
"""Seconds that a server may take to let go of everything."""


@dataclass(frozen=True, slots=True)
class Census:
    """What a process holds at a moment.

    Attributes:
        tasks: asyncio's, by the name of what they run.
        objects: parts of requests that are still in memory, by the name of their type.
        sockets: open ones.
        descriptors: open ones of any kind, sockets included.
        threads: of the operating system.
    """

    tasks: Mapping[str, int]
    objects: Mapping[str, int]
    sockets: int
    descriptors: int
    threads: int

    def same(self, other: Census) -> bool:
        """Tell whether the other one holds as much; threads are pooled, and do not count."""
        return self._counted() == other._counted()

    def _counted(self) -> tuple[Mapping[str, int], Mapping[str, int], int, int]:
        return self.tasks, self.objects, self.sockets, self.descriptors


async def census(pid: int, origin: str) -> Census:
    """Count what a server holds.

    Args:
        pid: of its process.
        origin: where it listens.
    """
    async with aiohttp.ClientSession() as session, session.get(f"{origin}{CENSUS}") as answer:
        inside = await answer.json()
    await asyncio.sleep(0.1)  # the connection of the question is no finding
    kinds = _descriptors(pid)
    return Census(inside["tasks"], inside["objects"], kinds["socket"], kinds.total(), _threads(pid))


def _threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def _descriptors(pid: int) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            kinds[re.split(r"[:\[]", str(entry.readlink()))[0]] += 1
        except FileNotFoundError:  # closed a moment ago
            continue
    return kinds


async def settled(pid: int, origin: str, before: Census | None = None) -> Census:
    """Wait until a server holds as much as before, or at first until nothing changes any more."""
    clock = asyncio.get_running_loop().time
    end = clock() + _PATIENCE
    last, since = await census(pid, origin), clock()
    while clock() < end and not (last.same(before) if before else clock() - since > _IDLE):
        await asyncio.sleep(_POLL)
        now = await census(pid, origin)
        if not now.same(last):
            since = clock()
        last = now
    return last


def levels(samples: list[int]) -> list[float]:
    """Tell the level of memory in the second half of some samples: the median of each fifth of it.

    Pictures on their way come and go; what they leave behind would raise the level.
    """
    half = samples[len(samples) // 2 :]
    size = max(1, len(half) // 5)
    return [median(half[start : start + size]) for start in range(0, len(half), size)] or [0]
