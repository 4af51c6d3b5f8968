"""The uvicorn that the commands run: when it stops, streams end properly, within bounds and in silence."""

from __future__ import annotations

import asyncio
import math
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp

__all__ = ["Server"]

_HEAD_START = 0.1
"""Seconds for WebSockets to say how their responses end: uvicorn waits for all but them."""
_FAREWELL = 1.0
"""Seconds after the grace in which clients take in the end of what they read."""
_STUBBORN = 10.0
"""Seconds for an application that does not care whether its client has gone; then it is cancelled."""


class Server(uvicorn.Server):
    """A uvicorn that ends open connections, when it stops, as if their clients had left.

    By itself it would cancel the requests: the application could tell nobody, and each would leave a
    traceback in the log.

    Args:
        app: the application.
        grace: seconds that the application needs at most to end what is open.
        **options: of `uvicorn.Config`.
    """

    def __init__(self, app: ASGIApp, grace: float, **options: Any) -> None:
        self._grace = grace + _FAREWELL
        patience = math.ceil(self._grace + _STUBBORN)
        super().__init__(uvicorn.Config(app, timeout_graceful_shutdown=patience, **options))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and wait for what is open, within bounds. A second Ctrl+C means at once."""
        await asyncio.sleep(_HEAD_START)
        cutting = asyncio.get_running_loop().call_later(self._grace, self._cut)
        await super().shutdown(sockets)
        cutting.cancel()
        self._cut()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_FAREWELL)

    def _cut(self) -> None:
        for connection in [*self.server_state.connections]:
            connection.transport.abort()
