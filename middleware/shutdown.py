"""The server's end: learnt from its own signals, and told to all that is still open.

Servers wait for open connections first and tell the application last (`lifespan.shutdown`). A stream that
is to end properly in between must learn of it by itself. So the handlers that the server has for its
signals are called as before, but by handlers of ours, which take note.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from types import FrameType
from typing import Any
from weakref import WeakSet

__all__ = ["STOPPING", "STOPPING_CODE", "Shutdown"]

log = logging.getLogger("imagecall")

STOPPING = "The server is shutting down; ask again."
"""All that a client is told of it, …"""
STOPPING_CODE = "server_shutting_down"
"""… and its machine-readable reason, where the answer is an error."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGBREAK] if hasattr(signal, "SIGBREAK") else []))
_LAST_WORDS = 2.0
"""Seconds in which ended responses get out what they still have to say; a client may read slowly."""


class Shutdown:
    """Whether the server stops, and what is still open then.

    Args:
        grace: seconds that open responses may go on; then they are told to end.

    Attributes:
        begun: whether the server stops. No new response is begun any more.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._open: dict[Callable[[], None], bool] = {}
        self._left = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._deadline: asyncio.TimerHandle | None = None
        self._over = False
        self._listens = False
        self.begun = False

    def watch(self) -> None:
        """Learn of the server's signals from now on. To be called in its loop, any number of times."""
        loop = asyncio.get_running_loop()
        if self._listens and loop is self._loop:
            return
        self._loop = loop
        if threading.current_thread() is threading.main_thread():  # elsewhere there are no signals
            self._listens = _listen(self)

    def reopen(self) -> None:
        """Begin anew: the application starts, maybe not for the first time."""
        self.begun = self._over = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.watch()

    def hear(self, number: int) -> None:
        """Learn of a signal, in whatever thread or signal handler. A further Ctrl+C ends the grace."""
        begin = self._end if self.begun and number == signal.SIGINT else self.begin
        with suppress(RuntimeError):  # its loop is closed: it has stopped long since
            # In no request's own context, whichever of them the signal has come in the midst of.
            self._loop.call_soon_threadsafe(begin, context=Context())

    def begin(self) -> None:
        """Let what is open end by itself within the grace, and let nothing else begin."""
        if self.begun:
            return
        self.begun = True
        patient = sum(not at_once for at_once in self._open.values())
        if patient:
            log.warning("Shutting down; open responses (%d) have %g s to end.", patient, self._grace)
        self._tell(at_once_only=True)
        self._deadline = asyncio.get_running_loop().call_later(self._grace, self._end)

    @contextmanager
    def holding(self, stop: Callable[[], None], *, at_once: bool = False) -> Iterator[None]:
        """Keep note of something open.

        Args:
            stop: tells it to end; called once at most, in the loop.
            at_once: whether it is told so without any grace.
        """
        self.watch()
        self._open[stop] = at_once
        try:
            if self._over or (at_once and self.begun):
                stop()
            yield
        finally:
            del self._open[stop]
            self._left.set()

    async def close(self) -> None:
        """Learn that the application ends: after what is left of the grace nothing may be open.

        Without a signal before it there is no grace: the server has waited for its connections already.
        """
        left = 0.0
        if self._deadline is not None:
            left = self._deadline.when() - asyncio.get_running_loop().time()
        self.begin()
        await self._until_empty(left)
        self._end()
        await self._until_empty(_LAST_WORDS)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._over = True
            self._tell()

    def _tell(self, *, at_once_only: bool = False) -> None:
        for stop, at_once in [*self._open.items()]:
            if at_once == at_once_only:
                stop()

    async def _until_empty(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._open:
                    self._left = asyncio.Event()
                    await self._left.wait()


class _Handler:
    """Takes a signal, tells of it, and does what the handler before it did.

    Attributes:
        told: who wants to know.
    """

    def __init__(self, before: Callable[[int, FrameType | None], Any]) -> None:
        self._before = before
        self.told: WeakSet[Shutdown] = WeakSet()
        # By this sse-starlette, for one, finds uvicorn's server behind its handler.
        self.__self__ = getattr(before, "__self__", None)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        for shutdown in [*self.told]:
            shutdown.hear(number)
        self._before(number, frame)


def _listen(shutdown: Shutdown) -> bool:
    """Let a shutdown hear of the signals, if there is a server that takes them; tell whether there is.

    A process that nobody asked to treat SIGTERM is not a server's, or dies of it at once: there is nothing
    to wait for, and its handlers are its own.
    """
    if not callable(signal.getsignal(signal.SIGTERM)):
        return False
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if not isinstance(handler, _Handler):
            if not callable(handler):
                continue
            handler = _Handler(handler)
            signal.signal(number, handler)
        handler.told.add(shutdown)
    return True
