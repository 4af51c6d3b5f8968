"""The last spans and measurements leave before the process ends: a signal's end runs no exit handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from opentelemetry import metrics, trace
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Flushing", "flush"]

_PATIENCE = 5_000
"""Milliseconds for each provider: whoever stops the process does not wait for long."""


def flush() -> None:
    """Let the process's providers export what they still hold, if they are an SDK's."""
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        export: Callable[[int], bool] | None = getattr(provider, "force_flush", None)
        if export is not None:
            export(_PATIENCE)


class Flushing:
    """Calls an application, and flushes once it has shut down.

    Args:
        app: the application.
        flush: does it, in a thread; may raise nothing.

    Attributes:
        app: the application.
    """

    def __init__(self, app: ASGIApp, flush: Callable[[], None] = flush) -> None:
        self.app = app
        self._flush = flush

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return

        async def flushing(message: Message) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                await asyncio.to_thread(self._flush)
            await send(message)

        await self.app(scope, receive, flushing)
