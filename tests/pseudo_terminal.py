"""A terminal without a screen: takes down what it is sent, and has its answers typed beforehand.

What a program asks a terminal it must be told within a tenth of a second, which a busy machine may not
keep. Typed ahead, the answers are there whenever they are wanted.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["KITTY", "PLAIN", "SIXEL", "Terminal", "terminal"]

_COLUMNS, _LINES = 80, 24
_CELL = (8, 16)

_COLOURS = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
_NO_SAY = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")

SIXEL = b"\x1b[?62;4c"
"""What a terminal that knows sixels says of itself."""

PLAIN = b"\x1b[?62c\x1b_Gi=1;ENOTSUP\x1b\\"
"""What one says that knows neither sixels nor kitty's protocol."""

KITTY = b"\x1b[?62c\x1b_Gi=1;OK\x1b\\"


class Terminal:
    """One end is a program's, and this is the other.

    Attributes:
        output: all that came so far.
    """

    def __init__(self, typed: bytes) -> None:
        self._master, self.slave = os.openpty()
        size = struct.pack("HHHH", _LINES, _COLUMNS, _COLUMNS * _CELL[0], _LINES * _CELL[1])
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, size)
        modes = termios.tcgetattr(self.slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.output = b""
        self._came = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name="terminal")
        self._reader.start()
        self.type(typed)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def wait_for(self, words: bytes) -> None:
        """Wait until this has come."""
        with self._came:
            assert self._came.wait_for(lambda: words in self.output or self._ended, 60)
            assert words in self.output

    def run(self, *command: str, env: Mapping[str, str] = {}, **streams: Any) -> subprocess.Popen[bytes]:
        """Start a command whose controlling terminal this is; streams may go elsewhere."""
        inherited = {name: value for name, value in os.environ.items() if name not in _NO_SAY}
        return subprocess.Popen(
            # A session's leader that opens a terminal gets it as its own.
            ["sh", "-c", ': <"$0"; exec "$@"', os.ttyname(self.slave), *command],
            **{"stdin": self.slave, "stdout": self.slave, "stderr": self.slave, **streams},
            start_new_session=True,
            env={**inherited, **_COLOURS, **env},
        )

    def ask(self, *words: str, **how: Any) -> int:
        """Run `imagecall ask` to its end; return its exit code."""
        with self.run(str(Path(sys.executable).with_name("imagecall")), "ask", *words, **how) as process:
            return process.wait(60)

    @contextmanager
    def attached(self) -> Iterator[pytest.MonkeyPatch]:
        """Make it this process's terminal, and let it be asked anew what it can."""
        with (
            open(self.slave, "w", encoding="utf-8", closefd=False) as screen,
            open(self.slave, encoding="utf-8", closefd=False) as keys,
            pytest.MonkeyPatch.context() as patch,
        ):
            for name in [name for name in sys.modules if name.partition(".")[0] == "textual_image"]:
                patch.delitem(sys.modules, name)
            for name in _NO_SAY:
                patch.delenv(name, raising=False)
            for name, value in {**_COLOURS, "COLUMNS": str(_COLUMNS), "LINES": str(_LINES)}.items():
                patch.setenv(name, value)
            for name in ("stdout", "__stdout__", "stderr"):
                patch.setattr(sys, name, screen)
            patch.setattr(sys, "__stdin__", keys)
            patch.setattr(os, "tcgetpgrp", lambda terminal: os.getpgrp())
            yield patch

    def close(self) -> None:
        """Let everything come that is still under way."""
        os.close(self.slave)
        self._reader.join()
        os.close(self._master)

    def _read(self) -> None:
        while data := self._piece():
            with self._came:
                self.output += data
                self._came.notify_all()
        with self._came:
            self._ended = True
            self._came.notify_all()

    def _piece(self) -> bytes:
        try:
            return os.read(self._master, 1 << 16)
        except OSError:  # how Linux tells that nobody has the other end any more
            return b""


@contextmanager
def terminal(typed: bytes = PLAIN) -> Iterator[Terminal]:
    """Open a terminal at which somebody has typed this; at the end all that it was sent is there."""
    opened = Terminal(typed)
    try:
        yield opened
    finally:
        opened.close()
