#!/usr/bin/env python3
"""Runs the blocks of README.md and docs/ that are marked as runnable: `.ci/try_docs.py [PAGE …]`.

They run as a new user would run them, page by page, in one copy of the checkout whose `.venv` the first of
them makes; its commands are then on the path. A mark stands on the line before its block:

    <!-- runnable -->              run it: sh or python
    <!-- runnable: server -->      start it, wait for its address, ask it; it is stopped at the page's end
    <!-- runnable: file NAME -->   write it to the file NAME
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
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^<!-- runnable(?:: (?P<how>[^>]+?))? -->\n```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ADDRESS = re.compile(rb"https?://(?:127\.0\.0\.1|localhost):\d+")
_PATIENCE = 900
"""Seconds for one block: some install packages."""


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


def run(block: Block, folder: Path, servers: ExitStack) -> None:
    """Run one block."""
    kind, _, name = block.how.partition(" ")
    if kind == "file":
        (folder / name).write_text(block.text)
    elif kind == "server":
        servers.enter_context(served(block, folder))
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
                sys.stdout.buffer.write(b"  | " + line)
                sys.stdout.flush()
                if found := _ADDRESS.search(line):
                    ask(found[0].decode())
                    break
            else:
                raise SystemExit(f"the server ended with code {process.wait()} before it told its address")
            rest = threading.Thread(target=process.stdout.read)  # a full pipe would hold it up
            rest.start()
            yield
        finally:
            stop(process)
        rest.join()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server as Ctrl+C does, or by force if it does not listen."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def ask(address: str) -> None:
    """Ask a server for its root: it must answer, be it only that there is none."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    print(f"  {address} answers {status}", flush=True)
    if status >= 500:
        raise SystemExit(f"{address} answered {status}")


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
            with ExitStack() as servers:
                for block in blocks(page):
                    print(f"== {block.page}:{block.line} {block.how or block.language}", flush=True)
                    run(block, Path(name), servers)
                    count += 1
    print(f"{count} blocks")


if __name__ == "__main__":
    main(sys.argv[1:])
