"""Child processes on a core of their own, and what the operating system says they have used."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["LOAD_CORE", "SERVER_CORE", "Process", "free_port", "listener"]

_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = _CORES[0]
LOAD_CORE = _CORES[-1]
"""The server is measured alone on its core; upstream and clients share another one."""


class Process:
    """A child process and its children.

    Args:
        command: its words.
        core: the core it may use.
        log: the file that takes its output.
    """

    def __init__(
        self, command: Sequence[str], core: int, log: Path, *, pass_fds: Sequence[int] = (), **env: str
    ) -> None:
        self._log = log
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                ["taskset", "-c", str(core), *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=pass_fds,
                env={**os.environ, **env},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return the id of the command's own process."""
        return self._popen.pid

    def _pids(self) -> Iterator[int]:
        group = self._popen.pid
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    if int(fields[3]) == group:
                        yield int(entry.name)

    def cpu(self) -> float:
        """Return the CPU seconds used so far: Linux gives every process a clock of its own."""
        total = 0.0
        for pid in self._pids():
            with contextlib.suppress(OSError):
                total += time.clock_gettime((~pid << 3) | 2)
        return total

    def memory(self) -> int:
        """Return the resident bytes."""
        return sum(self._status(pid, "VmRSS") for pid in self._pids())

    def peak(self) -> int:
        """Return the most resident bytes since the last `forget_peak`."""
        return sum(self._status(pid, "VmHWM") for pid in self._pids())

    def forget_peak(self) -> None:
        """Let `peak` begin anew."""
        for pid in self._pids():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    @staticmethod
    def _status(pid: int, name: str) -> int:
        with contextlib.suppress(OSError):
            found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
            return int(found[1]) * 1024 if found else 0
        return 0

    def wait_until_up(self, url: str, seconds: float = 120) -> None:
        """Wait until something answers at a URL, with whatever status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._popen.poll() is not None:
                break
            try:
                urllib.request.urlopen(url, timeout=2).close()
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"{self._popen.args!r} is not up:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Kill it with all its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def listener() -> socket.socket:
    """Listen on a free port, for a child to inherit."""
    made = socket.create_server(("127.0.0.1", 0), backlog=4096)
    made.set_inheritable(True)
    return made
