"""One request to the inner application: its scope, its `receive`, its `send`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from .answers import Headers

__all__ = ["InnerTurn", "turn_scope"]

_REQUEST_DROPPED = {
    b"content-length",
    b"transfer-encoding",
    b"content-encoding",
    b"accept-encoding",
    # Names the image deployment to Azure; the tool it speaks of does not travel on.
    b"x-ms-oai-image-generation-deployment",
}
_EXTENSIONS_DROPPED = {"http.response.pathsend", "http.response.zerocopysend", "http.response.trailers"}
"""Ways to send a body past the translator."""


def turn_scope(scope: Scope, length: int, number: int) -> Scope:
    """Make a turn's own scope: the body's new length, no compression, a state of its own."""
    headers: Headers = []
    for name, value in scope["headers"]:
        if name in _REQUEST_DROPPED:
            continue
        if name == b"idempotency-key" and number > 1:
            # The same key with another body would be answered with turn one's response, or refused.
            value = b"%b-%d" % (value, number)  # noqa: PLW2901
        headers.append((name, value))
    headers += [(b"content-length", str(length).encode()), (b"accept-encoding", b"identity")]
    own: dict[str, Any] = {**scope, "headers": headers}
    if "state" in scope:
        own["state"] = dict(scope["state"])
    if scope.get("extensions"):
        extensions = scope["extensions"].items()
        own["extensions"] = {name: value for name, value in extensions if name not in _EXTENSIONS_DROPPED}
    return own


class InnerTurn:
    """Runs the inner application once.

    Args:
        app: the inner application.
        scope: the turn's own scope.
        body: the request body.
        number: 1 for the client's own request.
        on_message: takes what the application sends, in the application's own task.

    Attributes:
        over: set once the application's response is complete or nobody wants the rest of it; from
            then on its `receive` tells it that the client has gone.
        silent: what the application sends is dropped.
        error: what the application raised.
        heard: when it last sent something, in the loop's time.
    """

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        body: bytes,
        number: int,
        on_message: Callable[[InnerTurn, Message], Awaitable[None]],
    ) -> None:
        self._app = app
        self._scope = scope
        self._body: bytes | None = body
        self._on_message = on_message
        self.number = number
        self.over = asyncio.Event()
        self.silent = False
        self.error: Exception | None = None
        self.heard = asyncio.get_running_loop().time()
        self.task: asyncio.Task[None] | None = None

        self.status = 0
        self.headers: Headers = []
        self.mode = ""
        self.pieces: list[bytes] = []
        self.size = 0

    async def run(self) -> None:
        """Call the application; what it raises is kept in `error` for whoever waits for it."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001  it is raised again, unwrapped, by the exchange
            self.error = error

    def leave(self) -> None:
        """Tell the application that nobody listens any more."""
        self.silent = True
        self.over.set()

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if not self.silent:
            await self._on_message(self, message)
