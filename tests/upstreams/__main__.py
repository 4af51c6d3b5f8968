"""Runs the matrix: `python -m tests.upstreams`; what it is stands in the package's docstring."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

import aiohttp
from servers import ServerError

from .asking import Broken, ask
from .situations import SITUATIONS, Situation
from .table import Cell, Row, draw, tally
from .upstreams import UPSTREAMS, Upstream, in_front

TRIES = 3
"""A free model need not answer a question twice in the same way: rounding depends on what is cached."""


def say(text: str) -> None:
    """Print a line, and show it at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def try_situation(url: str, model: str, situation: Situation) -> Cell:
    """Ask until the model does what the situation is about; a broken answer is never asked again."""
    made: dict[str, int] = {}
    for _ in range(TRIES):
        try:
            made = await ask(url, model, situation)
        except (Broken, aiohttp.ClientError, TimeoutError, LookupError, ValueError, RuntimeError) as error:
            return Cell("broken", f"{type(error).__name__}: {error}")
        if all(made.get(kind, 0) >= number for kind, number in situation.wanted.items()):
            return Cell("good")
        if not situation.free:
            break
    told = ", ".join(f"{number} {kind}" for kind, number in made.items()) or "nothing"
    return Cell("free" if situation.free else "broken", f"the model made {told}")


async def run_row(
    upstream: Upstream, place: str, start: Callable[[], AbstractAsyncContextManager[str]], only: str | None
) -> Row:
    """Start a server in one place and go through the situations."""
    row = Row(upstream.title, place)
    try:
        async with start() as url:
            for situation in SITUATIONS:
                if only in (None, situation.name):
                    cell = await try_situation(url, upstream.model, situation)
                    row.cells[situation.name] = cell
                    say(f"{upstream.name} {place}, {situation.name}: {cell.told()}")
            row.versions = upstream.versions()
    except (ServerError, LookupError, OSError, subprocess.SubprocessError) as error:
        row.trouble = str(error)
        say(f"{upstream.name} {place}: {error}")
    return row


async def run(upstreams: list[Upstream], places: list[str], only: str | None) -> list[Row]:
    """Run the servers one after the other: they share the machine's cores."""
    rows = []
    for upstream in upstreams:
        if upstream.alone is not None and "in front" in places:
            rows.append(await run_row(upstream, "in front", partial(_fronted, upstream), only))
        if upstream.inside is not None and "inside" in places:
            rows.append(await run_row(upstream, "inside", upstream.inside, only))
    return rows


@asynccontextmanager
async def _fronted(upstream: Upstream) -> AsyncIterator[str]:
    assert upstream.alone is not None
    async with upstream.alone() as behind, in_front(behind) as url:
        yield url


def main() -> int:
    """Do what the command line says; return the exit code."""
    names = [upstream.name for upstream in UPSTREAMS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.upstreams", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--server", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("--place", choices=("in front", "inside"), help="only there")
    parser.add_argument("--only", choices=[one.name for one in SITUATIONS], metavar="SITUATION")
    parser.add_argument("--table", type=Path, metavar="FILE", help="where the table is also written")
    parser.add_argument("--list", action="store_true", help="name the servers and situations, and do nothing")
    options = parser.parse_args()
    if options.list:
        servers = (f"{one.name} (extra)" if one.extra else one.name for one in UPSTREAMS)
        say(f"servers: {', '.join(servers)}")
        say(f"situations: {', '.join(one.name for one in SITUATIONS)}")
        return 0
    chosen = [one for one in UPSTREAMS if (one.name in options.server if options.server else not one.extra)]
    places = [options.place] if options.place else ["in front", "inside"]
    rows = asyncio.run(run(chosen, places, options.only))
    names = [one.name for one in SITUATIONS if options.only in (None, one.name)]
    head = f"imagecall {version('imagecall')}, {datetime.now(UTC).date()}, Python {sys.version.split()[0]}"
    table = draw(head, names, rows)
    say(f"\n{table}")
    if options.table:
        options.table.write_text(table, "utf-8")
    passed, failed = tally(names, rows)
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
