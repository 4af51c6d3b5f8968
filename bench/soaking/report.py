"""What came out of a soak: the promises it broke, and a table in Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .tally import Tally
from .watch import Census, levels

__all__ = ["MOST_DRIFT", "Soaked", "broken_promises", "table"]

MOST_DRIFT = 0.05
"""How far the level of resident memory may go apart in the second half."""
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Soaked:
    """What was seen.

    Attributes:
        clients: at a time.
        seconds: how long they went on asking.
        tally: what they saw.
        before: what the server held before.
        after: what it held when all had gone.
        memory: resident bytes, second by second.
        judges_memory: whether it went on for long enough to say something of it.
        trouble: lines of the server's log that should not be there.
    """

    clients: int
    seconds: float
    tally: Tally
    before: Census
    after: Census
    memory: list[int]
    judges_memory: bool
    trouble: list[str]


def broken_promises(soaked: Soaked) -> list[str]:
    """Return a line for each promise that was not kept."""
    return [*_streams(soaked), *_leaks(soaked), *_memory(soaked), *_trouble(soaked)]


def _streams(soaked: Soaked) -> Iterator[str]:
    tally = soaked.tally
    if tally.wrong_streams:
        yield f"{tally.wrong_streams} of {tally.streams} streams are wrong; the first: {tally.wrong[0]}"
    if not tally.whole or not tally.pictures:
        yield f"Only {tally.whole} whole streams and {tally.pictures} pictures came; nothing was tried."


def _leaks(soaked: Soaked) -> Iterator[str]:
    before, after = soaked.before, soaked.after
    for what, one, two in (("tasks", before.tasks, after.tasks), ("objects", before.objects, after.objects)):
        if two != one:
            yield f"The {what} are not those of before: {_difference(one, two)}."
    for what, was, now in (
        ("sockets", before.sockets, after.sockets),
        ("descriptors", before.descriptors, after.descriptors),
    ):
        if was != now:
            yield f"{now} {what} are open afterwards, {was} were before."


def _difference(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    names = sorted(before.keys() | after.keys())
    changes = ((name, before.get(name, 0), after.get(name, 0)) for name in names)
    return ", ".join(f"{name} {was} → {now}" for name, was, now in changes if was != now)


def _memory(soaked: Soaked) -> Iterator[str]:
    level = levels(soaked.memory)
    apart = _apart(level)
    if soaked.judges_memory and apart > MOST_DRIFT:
        yield (
            f"The level of resident memory goes from {min(level) / _MB:.1f} to {max(level) / _MB:.1f} MB in "
            f"the second half: {apart:.1%}, above {MOST_DRIFT:.0%}."
        )


def _apart(level: list[float]) -> float:
    return max(level) / min(level) - 1 if min(level) else 0.0


def _trouble(soaked: Soaked) -> Iterator[str]:
    if soaked.trouble:
        yield f"The server's log has {len(soaked.trouble)} lines of trouble; the first: {soaked.trouble[0]}"


def table(soaked: Soaked) -> str:
    """Write the figures."""
    tally, before, after = soaked.tally, soaked.before, soaked.after
    level = levels(soaked.memory)
    half = soaked.memory[len(soaked.memory) // 2 :]
    least, most = min(half, default=0), max(half, default=0)
    left = ", ".join(f"{where} {count:,}" for where, count in sorted(tally.left.items()))
    kinds = ", ".join(f"{name} {count:,}" for name, count in sorted(tally.situations.items()))
    judged = "" if soaked.judges_memory else " (too short to judge)"
    rows = {
        "streams at a time": f"{soaked.clients}",
        "duration": f"{soaked.seconds:,.0f} s, {tally.streams / soaked.seconds:.1f} streams a second",
        "streams checked": f"{tally.streams:,}",
        "… whole": f"{tally.whole:,}",
        "… left early": f"{tally.left.total():,} ({left or 'none'})",
        "… wrong": f"{tally.wrong_streams:,}",
        "conversations": kinds,
        "pictures": f"{tally.pictures:,}, {tally.previews:,} previews, {tally.failures:,} failed as told to",
        "events": f"{tally.events:,}",
        "bytes": f"{tally.size / _MB:,.1f} MB",
        "tasks": f"{sum(before.tasks.values())} before, {sum(after.tasks.values())} after",
        "exchanges in memory": f"{sum(before.objects.values())} before, {sum(after.objects.values())} after",
        "sockets": f"{before.sockets} before, {after.sockets} after",
        "descriptors": f"{before.descriptors} before, {after.descriptors} after",
        "threads": f"{before.threads} before, {after.threads} after",
        "resident memory": f"level {min(level) / _MB:.1f}–{max(level) / _MB:.1f} MB in the second half, "
        f"{_apart(level):.1%} apart{judged}; all samples {least / _MB:.1f}–{most / _MB:.1f} MB",
        "lines of trouble in the log": f"{len(soaked.trouble)}",
        "machine": _machine(),
    }
    lines = [f"| {what} | {figure} |" for what, figure in rows.items()]
    return "\n".join(["| what | figure |", "| --- | --- |", *lines]) + "\n"


def _machine() -> str:
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = f"{names[0].partition(':')[2].strip()}, " if names else ""
    return (
        f"{model}{os.cpu_count()} cores, {platform.machine()}, CPython {platform.python_version()}, "
        f"uvicorn {version('uvicorn')}, aiohttp {version('aiohttp')}"
    )
