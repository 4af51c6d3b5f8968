"""The inner application's end of a WebSocket: offered to it, accepted or refused by it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Scope

__all__ = ["InnerSocket"]

log = logging.getLogger("imagecall")

_NO_CLOSE_FRAME = 1006
_WAITING = 8
"""Messages that wait for the application; then the client is not read any further."""


class InnerSocket:
    """Runs the inner application on a WebSocket.

    Args:
        app: the inner application.
        scope: the server's own.
        on_message: takes what the application sends from the acceptance on.

    Attributes:
        answered: set once it is known whether the application takes the WebSocket.
        accepted: whether it does.
        error: what it raised after it had accepted.
    """

    def __init__(self, app: ASGIApp, scope: Scope, on_message: Callable[[Message], Awaitable[None]]) -> None:
        self._app = app
        self._scope = scope
        self._on_message = on_message
        self._messages: asyncio.Queue[Message] = asyncio.Queue(_WAITING)
        self.answered = asyncio.Event()
        self.accepted = False
        self.error: Exception | None = None

    async def hear(self, message: Message) -> None:
        """Give the application a message of the client, as soon as it has read those before."""
        await self._messages.put(message)

    async def run(self) -> None:
        """Call the application. Whatever way it ends without accepting is a refusal."""
        try:
            await self._app(self._scope, self._messages.get, self._send)
        except Exception as error:  # noqa: BLE001  raised again by whoever waits, if the client saw it begin
            if self.accepted:
                self.error = error
            else:
                log.info("the inner application takes no WebSocket: %r", error)
        finally:
            self.answered.set()

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if self.accepted:
            await self._on_message(message)
        elif kind == "websocket.accept" and not self.answered.is_set():
            self.accepted = True
            await self._on_message(message)
            self.answered.set()
        elif not self.answered.is_set():
            # It closes, or answers over HTTP; either way this is all that it has to say.
            self.answered.set()
            await self.hear({"type": "websocket.disconnect", "code": _NO_CLOSE_FRAME})
