"""A real redis-server of one's own, on a socket in a folder of its own, keeping nothing on disk."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parts import require

__all__ = ["RedisServer", "redis_server"]


class RedisServer:
    """A server that can be killed, started again, and stopped in its tracks."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[str] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        """Start, and return when it answers."""
        where = ["--port", "0", "--unixsocket", str(self._socket), "--dir", str(self._socket.parent)]
        command = ["redis-server", *where, "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        lines = iter(self._process.stdout.readline, "")
        assert any("eady to accept connections" in line for line in lines), "redis-server did not start"

    def kill(self) -> None:
        """Kill it, and all that it knows with it."""
        assert self._process is not None
        with self._process as process:
            process.kill()
        self._process = None

    def hang(self) -> None:
        """Let it hold its connections and answer nothing."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill it, if it is alive."""
        if self._process is not None:
            self.kill()

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Run a server; skip the test where there is none."""
    require(shutil.which("redis-server") is not None, "There is no redis-server: apt install redis-server")
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:  # a socket's path must be short
        server = RedisServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.close()
