#!/usr/bin/env python3
"""Runs the blocks of README.md and docs/ that are marked as runnable: `.ci/try_docs.py [PAGE …]`.

They run as a new user would run them, page by page, in one copy of the checkout whose `.venv` the first of
them makes; its commands are then on the path. A mark stands on the line before its block:

    <!-- runnable -->                run it: sh or python
    <!-- runnable: server -->        start it, wait for its address, ask it; it is stopped at the page's end
    <!-- runnable: server NAME -->   the same in the terminal NAME, where the one before it is stopped first
    <!-- runnable: file NAME -->     write it to the file NAME
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^<!-- runnable(?:: (?P<how>[^>]+?))? -->\n```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ADDRESS = re.compile(rb"https?://(?:127\.0\.0\.1|localhost):\d+")
_PATIENCE = 900
"""Seconds for one block: some install packages."""
_BEGINNING = 60
"""Seconds in which a server that told its address must answer."""


class Block(NamedTuple):
    """One marked block of a page."""

    page: str
    line: int
    how: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Find the marked blocks of a page."""
    text = page.read_text()
    name = str(page.relative_to(ROOT))
    found = [
        Block(name, text.count("\n", 0, m.start()) + 1, m["how"] or "", m["language"], m["text"])
        for m in _BLOCK.finditer(text)
    ]
    if len(re.findall(r"^<!-- runnable", text, flags=re.MULTILINE)) != len(found):
        raise SystemExit(f"{name}: a mark `runnable` stands before no block")
    return found


class Terminals:
    """The servers of a page, one in each terminal; they are stopped with the page."""

    def __init__(self) -> None:
        self._servers: dict[str, ExitStack] = {}

    def start(self, terminal: str, server: AbstractContextManager[None]) -> None:
        """Start a server in a terminal; one that runs there is stopped first."""
        self._servers.pop(terminal, ExitStack()).close()
        with ExitStack() as stack:
            stack.enter_context(server)
            self._servers[terminal] = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for server in self._servers.values():
                stack.push(server)


def run(block: Block, folder: Path, terminals: Terminals) -> None:
    """Run one block."""
    kind, _, name = block.how.partition(" ")
    if kind == "file":
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(block.text)
    elif kind == "server":
        terminals.start(name, served(block, folder))
    elif block.language == "python":
        subprocess.run(
            ["python", "-c", block.text], cwd=folder, env=env(folder), check=True, timeout=_PATIENCE
        )
    else:
        subprocess.run(shell(block), cwd=folder, env=env(folder), check=True, timeout=_PATIENCE)


def shell(block: Block) -> list[str]:
    """Return the command that runs a block of sh."""
    return ["bash", "-euo", "pipefail", "-c", block.text]


def env(folder: Path) -> dict[str, str]:
    """Return the variables of a shell whose virtualenv is active."""
    return {**os.environ, "PATH": f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}


@contextmanager
def served(block: Block, folder: Path) -> Iterator[None]:
    """Start a server, ask it once it listens, stop it in the end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(
        shell(block), cwd=folder, env=env(folder), start_new_session=True, **pipes
    ) as process:
        try:
            for line in process.stdout:
                show(line)
                if found := _ADDRESS.search(line):
                    ask(found[0].decode())
                    break
            else:
                raise SystemExit(f"the server ended with code {process.wait()} before it told its address")
            rest = threading.Thread(target=lambda: [show(line) for line in process.stdout])
            rest.start()  # a full pipe would hold the server up
            yield
        finally:
            stop(process)
        rest.join()


def show(line: bytes) -> None:
    """Show a line that a server wrote."""
    sys.stdout.buffer.write(b"  | " + line)
    sys.stdout.flush()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server as Ctrl+C does, or by force if it does not listen."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def ask(address: str) -> None:
    """Ask a server for its root: it must answer, be it only that there is none.

    One that has another server behind it, which may be away, must then say by `/healthz` that itself is well.
    """
    status = answered(address)
    print(f"  {address} answers {status}", flush=True)
    if status >= 500 and answered(f"{address}/healthz") != 200:
        raise SystemExit(f"{address} answered {status}")


def answered(url: str) -> int:
    """Return the status of a server's answer; one that has just told its address may not listen yet."""
    until = time.monotonic() + _BEGINNING
    while True:
        try:
            with urllib.request.urlopen(url, timeout=_BEGINNING) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError as error:
            if time.monotonic() > until:
                raise SystemExit(f"{url} does not answer: {error}") from error
            time.sleep(0.2)


def copy(folder: Path) -> None:
    """Copy what the repository holds, and nothing that was built from it."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    for name in {Path(os.fsdecode(name)) for name in names if name}:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def main(chosen: list[str]) -> None:
    """Run all pages, or the chosen ones."""
    pages = [ROOT / name for name in chosen] or [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
    pages = list(dict.fromkeys([ROOT / "docs" / "index.md", *pages]))  # it makes the virtualenv
    with tempfile.TemporaryDirectory() as name:
        copy(Path(name))
        count = 0
        for page in pages:
            with Terminals() as terminals:
                for block in blocks(page):
                    print(f"== {block.page}:{block.line} {block.how or block.language}", flush=True)
                    run(block, Path(name), terminals)
                    count += 1
    print(f"{count} blocks")


if __name__ == "__main__":
    main(sys.argv[1:])
