"""Programs that begin at once: a process that has imported them already forks for each start.

Their own imports take a second and more. What a program is here for, its standard input and output and a
process that can be killed, stays as it is.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

__all__ = ["forked"]

_STARTER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as link:
    link.connect(sys.argv[1])
    socket.send_fds(link, [b"start"], [0, 1, 2])
    link.recv(1)  # which comes to nothing when the program has ended
"""


@contextmanager
def forked(module: str) -> Iterator[list[str]]:
    """Import a module whose `main` is the program; yield the command that starts it."""
    with tempfile.TemporaryDirectory(prefix="fork-") as folder:  # a socket's path must be short
        path = f"{folder}/socket"
        command = [sys.executable, __file__, path, module]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
            try:
                assert parent.stdout is not None
                assert parent.stdout.readline() == b"ready\n", f"{module} could not be imported"
                yield [sys.executable, "-S", "-c", _STARTER, path]
            finally:
                parent.kill()


def _serve(path: str, main: Callable[[], None]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, b"ready\n")
        while True:
            link, _ = listener.accept()
            _, files, _, _ = socket.recv_fds(link, 16, 3)
            if not os.fork():
                listener.close()
                _become(files, main)
            link.close()
            for file in files:
                os.close(file)


def _become(files: list[int], main: Callable[[], None]) -> None:
    """Run the program; the link to whoever started it closes with this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    try:
        main()
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    _serve(sys.argv[1], import_module(sys.argv[2]).main)
