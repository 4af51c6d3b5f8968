"""The client that asked for a response in the background, as long as it listens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Receive

__all__ = ["Follower"]


class Follower:
    """Hands the client what the response's own task has for it, and takes note when the client leaves.

    Attributes:
        left: set once the client has gone.
    """

    def __init__(self) -> None:
        self._deliveries: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._error: BaseException | None = None
        self.left = asyncio.Event()

    def tell(self, deliver: Callable[[], Awaitable[None]]) -> None:
        """Let something be sent, after all that was told before; nothing waits for it."""
        if not self.left.is_set():
            self._deliveries.put_nowait(deliver)

    def end(self, error: BaseException | None = None) -> None:
        """Let the client go, after all that was told; `error` comes out of its request."""
        self._error = self._error or error
        self._deliveries.put_nowait(None)

    async def serve(self, receive: Receive) -> None:
        """Send what is told until that is all, or the client goes."""
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._watch(receive))
                await self._deliver()
                watcher.cancel()
        finally:
            self.left.set()
        if self._error is not None:
            raise self._error

    async def _deliver(self) -> None:
        while (deliver := await self._deliveries.get()) is not None:
            try:
                await deliver()
            except OSError:  # how servers tell that the client has gone
                return

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._deliveries.put_nowait(None)
