"""The uvicorn that the commands run: when it stops, streams end properly, within bounds and in silence."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors.multiprocess import Multiprocess, Process

__all__ = ["Config", "Server", "Worker", "Workers"]

_HEAD_START = 0.1
"""Seconds for WebSockets to say how their responses end: uvicorn waits for all but them."""
_FAREWELL = 1.0
"""Seconds after the grace in which clients take in the end of what they read."""
_STUBBORN = 10.0
"""Seconds for an application that does not care whether its client has gone; then it is cancelled."""


class Config(uvicorn.Config):
    """How a `Server` serves.

    Args:
        app: the application, or where it is to be imported from.
        grace: seconds that the application needs at most to end what is open.
        **options: of `uvicorn.Config`.

    Attributes:
        grace: seconds until what is still open is cut.
    """

    def __init__(self, app: ASGIApp | str, grace: float, **options: Any) -> None:
        self.grace = grace + _FAREWELL
        patience = math.ceil(self.grace + _STUBBORN) if self.grace < math.inf else None
        super().__init__(app, timeout_graceful_shutdown=patience, **options)


class Server(uvicorn.Server):
    """A uvicorn that ends open connections, when it stops, as if their clients had left.

    By itself it would cancel the requests: the application could tell nobody, and each would leave a
    traceback in the log.

    Args:
        config: how it serves.
    """

    def __init__(self, config: Config) -> None:
        self._grace = config.grace
        self._interrupts = 0  # that uvicorn has taken, and will pass on
        super().__init__(config)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop. To be called in the main thread of a process that ends then."""
        signal.signal(signal.SIGINT, lambda *_: self._interrupted())
        super().run(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal."""
        self._interrupts += sig == signal.SIGINT
        super().handle_exit(sig, frame)

    def _interrupted(self) -> None:
        """Take what uvicorn passes on at its end; a Ctrl+C behind that ends the process at once.

        All has been told then, and only threads may still be waited for. Python's own handler would leave
        a traceback of what it interrupts.
        """
        if self._interrupts:
            self._interrupts -= 1
            return
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and wait for what is open, within bounds. A second Ctrl+C means at once."""
        await asyncio.sleep(_HEAD_START)
        cutting = asyncio.get_running_loop().call_later(self._grace, self._cut)
        await super().shutdown(sockets)
        cutting.cancel()
        await self._ended()  # after a second Ctrl+C they were told to end only just now
        self._cut()
        await self._ended()

    async def _ended(self) -> None:
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_FAREWELL)

    def _cut(self) -> None:
        for connection in [*self.server_state.connections]:
            connection.transport.abort()


class Worker(Process):
    """One of several processes, with such a server in it. Its `config` is a `Config`."""

    @property
    def server(self) -> uvicorn.Server:
        """The server, in the worker's own process."""
        if self._server is None:
            assert isinstance(self.config, Config)
            self._server = Server(self.config)
        return self._server


class Workers(Multiprocess):
    """Several such processes. Once they are told to stop nobody can connect any more."""

    def terminate_all(self) -> None:
        """Tell them to stop. At this process's own end of the port clients would wait in vain."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()
