"""Requests that are changed a little on their way to the demo's model server."""

from __future__ import annotations

from abc import ABC, abstractmethod

from starlette.types import ASGIApp, Receive, Scope, Send

from ..body import read_body, with_body
from ..turns import rewritten_scope

__all__ = ["Rewriting"]

_MAX_BODY = 1 << 30


class Rewriting(ABC):
    """Stands before an application; changes the bodies of POST requests, and nothing else.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @abstractmethod
    def rewrite(self, data: bytes) -> bytes | None:
        """Return the body that the application gets; None if it gets the client's own."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope. A client that leaves before its body is whole asks nothing."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await read_body(scope, receive, _MAX_BODY)
        if body.messages[-1]["type"] == "http.disconnect":
            return
        changed = self.rewrite(body.data or b"")
        if changed is None:
            await self._app(scope, body.replay(receive), send)
            return
        await self._app(rewritten_scope(scope, len(changed)), with_body(changed, receive), send)
