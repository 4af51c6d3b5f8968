"""Answers of `imagecall serve` to those who watch it: whether it lives, and whether it can do its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from ..events.wire import dumps
from .answers import send_json

__all__ = ["Check", "Health"]

Check = Callable[[], Awaitable[str]]
"""Says in a sentence what is wrong, without a secret or an address; "" if nothing is."""

_FRESH = 1.0
"""Seconds for which an answer holds, so that many who ask cost no more than one."""

_PATIENCE = 3.0
"""Seconds for one check."""

_NO_STORE = [(b"cache-control", b"no-store")]


class Health:
    """Answers `GET /healthz` and `GET /readyz`; the rest is for the application.

    `/healthz` is 200 as long as the process answers at all. `/readyz` is 200, or 503 with
    `{"status":"not ready","reasons":{"store":"…"}}`: then requests should go to another worker.

    Args:
        app: the application.
        checks: by the names under which their sentences are shown.

    Attributes:
        app: the application.
    """

    def __init__(self, app: ASGIApp, checks: Mapping[str, Check]) -> None:
        self.app = app
        self._checks = checks
        self._lock = asyncio.Lock()
        self._checked = float("-inf")
        self._reasons: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            if scope["path"] == "/healthz":
                await send_json(send, 200, b'{"status":"alive"}', _NO_STORE)
                return
            if scope["path"] == "/readyz":
                await self._tell(send)
                return
        await self.app(scope, receive, send)

    async def _tell(self, send: Send) -> None:
        async with self._lock:
            await self._look()
        if self._reasons:
            told = {"status": "not ready", "reasons": self._reasons}
            await send_json(send, 503, dumps(told), _NO_STORE)
        else:
            await send_json(send, 200, b'{"status":"ready"}', _NO_STORE)

    async def _look(self) -> None:
        """Make the checks, unless that was done just now."""
        clock = asyncio.get_running_loop().time
        if clock() - self._checked < _FRESH:
            return
        said = await asyncio.gather(*(_said(check) for check in self._checks.values()))
        self._reasons = {name: words for name, words in zip(self._checks, said, strict=True) if words}
        self._checked = clock()


async def _said(check: Check) -> str:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await check()
    except TimeoutError:
        return f"There was no answer within {_PATIENCE:g} seconds."
