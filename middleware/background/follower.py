"""The client that asked for a response in the background, as long as it listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.types import Receive

from ..settings import Settings

__all__ = ["Follower", "cut_off_late"]

log = logging.getLogger("imagecall")


@asynccontextmanager
async def cut_off_late(settings: Settings, response_id: str) -> AsyncGenerator[None, None]:
    """Give a client that follows a response as long as the response itself may take to be made and told.

    What serves the client is cancelled then, and a line in the log tells so: a client that takes nothing
    and does not go would hold it for ever. The response is somebody else's and goes on.

    Args:
        settings: the limits.
        response_id: which response it follows.
    """
    limit = asyncio.timeout(settings.client_patience)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():  # it is the inner application's own
            raise
        log.warning(
            "A client that follows %s had not taken all of it when its time was long over; it was cut off.",
            response_id,
        )


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
