"""The processes of a soak: the scripted model, a painter, and the server under test."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..process import LOAD_CORE, SERVER_CORE, Process, free_port, listener

__all__ = ["SERVED", "STORE", "Site"]

SERVED = (sys.executable, "-W", "always::ResourceWarning", "-m", "bench.soaking.served")
"""The server under test: the command itself, with a census."""

STORE = 64 << 20
_ENTRIES = 8_000
"""Bytes and entries of the store. It is filled before anything is measured, so that memory can be flat; then
what is kept lasts for half a minute, and second turns come sooner. A quarter of the bytes is for logs."""
_AT_ONCE = 64
"""Pictures made at a time; by default a process makes 8, and the clients would mostly wait."""


class Site:
    """Starts everything.

    Args:
        folder: takes the logs.
        served: the command of the server under test.
        pace: how slow model and painter are; 1 is like real ones.

    Attributes:
        server: its process.
        origin: where it listens.
        log: the file with what it said.
    """

    def __init__(self, folder: Path, served: Sequence[str] = SERVED, pace: float = 1.0) -> None:
        self._folder = folder
        self._pace = pace
        self._running: list[Process] = []
        try:
            upstream = self._inherited("upstream")
            painter = self._inherited("painter")
            self.origin = f"http://127.0.0.1:{(port := free_port())}"
            self.log = folder / "server.log"
            options = {
                "upstream": upstream,
                "port": port,
                "backend": "openai",
                "backend-url": f"{painter}/v1",
                "concurrency": _AT_ONCE,
                "backend-concurrency": _AT_ONCE,
                "store-bytes": STORE,
                "store-entries": _ENTRIES,
            }
            words = [f"--{name}={value}" for name, value in options.items()]
            self.server = Process([*served, "serve", *words], SERVER_CORE, self.log)
            self._running.append(self.server)
            self.server.wait_until_up(f"{self.origin}/v1/models")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill them all."""
        for process in self._running:
            process.stop()

    def _inherited(self, name: str) -> str:
        """Start a module of this package that serves on a socket it is given."""
        with listener() as own:
            command = [sys.executable, "-m", f"bench.soaking.{name}", str(own.fileno()), str(self._pace)]
            process = Process(command, LOAD_CORE, self._folder / f"{name}.log", pass_fds=(own.fileno(),))
            self._running.append(process)
            return f"http://127.0.0.1:{own.getsockname()[1]}"
