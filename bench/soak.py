"""`python -m bench.soak`: many clients for a long time, who come and go as they like.

`imagecall serve` stands between the scripted model and a painter, each a process of its own behind real
sockets. Every stream is checked, whole or left early, and in the end the server must hold what it held
before. The figures are printed as a table, and one line for each broken promise; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import re
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .process import Process
from .soaking.report import Soaked, broken_promises, table
from .soaking.site import SERVED, STORE, Site
from .soaking.situations import SITUATIONS, Visitor, fill_store
from .soaking.talk import Client, open_session
from .soaking.tally import Tally
from .soaking.watch import settled

__all__ = ["Options", "main", "soak"]

_PATIENCE = 180.0
"""Seconds for one conversation, on however slow a machine."""
_LONG = 20.0
"""Seconds from which on the store is full in the second half, and memory can be judged."""
_RECENT = 200
_TROUBLE = re.compile(r"Traceback|ERROR|CRITICAL|Warning: |never retrieved|never awaited")


@dataclass(frozen=True, slots=True)
class Options:
    """What to do.

    Attributes:
        seconds: how long clients begin new conversations, the warm-up excluded.
        warm_up: seconds of the same before, until the store is full and memory has found its level; 0 where
            memory is of no interest.
        streams: clients at a time.
        folder: takes logs and wrong streams.
        pace: how slow model and painter are; 1 is like real ones.
        seed: decides what the clients do.
        served: the command of the server under test.
        long: seconds from which on memory is judged.
    """

    seconds: float
    streams: int
    folder: Path
    warm_up: float = 0.0
    pace: float = 1.0
    seed: int = 0
    served: Sequence[str] = SERVED
    long: float = _LONG


def soak(options: Options) -> Soaked:
    """Start everything, let the clients do as they like, and count what is left."""
    options.folder.mkdir(parents=True, exist_ok=True)
    site = Site(options.folder, options.served, options.pace)
    try:
        return asyncio.run(_Soak(options, site).run())
    finally:
        site.stop()


class _Soak:
    def __init__(self, options: Options, site: Site) -> None:
        self._options = options
        self._site = site
        self._tally = Tally(options.folder)
        self._ids: deque[tuple[str, str]] = deque(maxlen=_RECENT)
        self._tags = (f"tag-{number}" for number in itertools.count(1))

    async def run(self) -> Soaked:
        options, server = self._options, self._site.server
        async with open_session() as session, open_session(slow=True) as slow:
            visitors = [
                self._visitor(Client(session, slow, self._site.origin, f"client-{number}", chance))
                for number, chance in enumerate(self._chances())
            ]
            if options.warm_up:
                await fill_store(visitors[0].client, STORE)
            await self._begin(visitors)
            before = await settled(server.pid, self._site.origin)
            begun = time.monotonic()
            memory: list[tuple[float, int]] = []
            end = begun + options.warm_up + options.seconds
            async with asyncio.TaskGroup() as group:
                sampling = group.create_task(_sample(server, memory))
                await asyncio.gather(*(self._go_on(visitor, end) for visitor in visitors))
                sampling.cancel()
            took = time.monotonic() - begun
        series = "".join(f"{moment - begun:.1f} {size}\n" for moment, size in memory)
        (options.folder / "memory.txt").write_text(series)
        after = await settled(server.pid, self._site.origin, before)
        return Soaked(
            clients=options.streams,
            seconds=took,
            tally=self._tally,
            before=before,
            after=after,
            memory=[size for moment, size in memory if begun + options.warm_up <= moment < end],
            judges_memory=options.seconds >= options.long,
            trouble=[*_trouble(self._site.log)],
        )

    def _chances(self) -> Iterator[random.Random]:
        return (random.Random(self._options.seed + number) for number in range(self._options.streams))

    def _visitor(self, client: Client) -> Visitor:
        return Visitor(client, self._tally, self._ids)

    async def _begin(self, visitors: list[Visitor]) -> None:
        """Let each kind of conversation be held once, so that whatever is opened at first use is open."""
        firsts = (
            visitor.visit(situation, next(self._tags), _PATIENCE)
            for visitor, situation in zip(itertools.cycle(visitors), SITUATIONS, strict=False)
        )
        await asyncio.gather(*firsts)

    async def _go_on(self, visitor: Visitor, end: float) -> None:
        names = [*SITUATIONS]
        weights = [SITUATIONS[name][0] for name in names]
        await asyncio.sleep(visitor.client.chance.uniform(0, 1))
        while time.monotonic() < end:
            situation = visitor.client.chance.choices(names, weights)[0]
            await visitor.visit(situation, next(self._tags), _PATIENCE)


async def _sample(server: Process, memory: list[tuple[float, int]]) -> None:
    while True:
        memory.append((time.monotonic(), server.memory()))
        await asyncio.sleep(1)


def _trouble(log: Path) -> Iterator[str]:
    with log.open(errors="replace") as lines:
        yield from (line.strip() for line in lines if _TROUBLE.search(line))


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: 600)")
    parser.add_argument("--warm-up", type=float, default=30, help="seconds before that (default: 30)")
    parser.add_argument("--streams", type=int, default=200, help="how many at a time (default: 200)")
    parser.add_argument("--pace", type=float, default=1.0, help="how slow model and painter are (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="decides what the clients do (default: 0)")
    parser.add_argument("--folder", type=Path, help="takes logs and wrong streams (default: a new one)")
    parser.add_argument("--table", type=Path, help="a file for the table, in Markdown")
    chosen = parser.parse_args(arguments)
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="imagecall-soak-"))
    soaked = soak(
        Options(
            chosen.seconds,
            chosen.streams,
            folder,
            warm_up=chosen.warm_up,
            pace=chosen.pace,
            seed=chosen.seed,
        )
    )
    written = table(soaked)
    print(written)
    if chosen.table:
        chosen.table.write_text(written)
    broken = broken_promises(soaked)
    for sentence in soaked.tally.wrong:
        print(f"wrong: {sentence}", file=sys.stderr)
    for promise in broken:
        print(f"BROKEN: {promise}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
