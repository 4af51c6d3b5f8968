"""One backend in the life of the application: opened before its first picture, with a queue before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from ..lifetime import Lifetime
from .base import ImageBackend, ImageError

__all__ = ["BackendOwner"]


class BackendOwner:
    """Opens a backend before its first picture and closes it at shutdown, both in one task of its own.

    A session must be left in the task that entered it, and no request lives long enough.

    Args:
        backend: who makes the pictures.
        concurrency: how many it makes at a time.
        queue: seconds that a picture may wait for its turn.
    """

    def __init__(self, backend: ImageBackend, *, concurrency: int, queue: float) -> None:
        self._backend = backend
        self._places = asyncio.Semaphore(concurrency)
        self._queue = queue
        self._life: Lifetime | None = None

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Take one of the backend's places, first come, first served, and give it back at the end.

        Raises:
            ImageError: no place became free in time (`backend_busy`).
        """
        try:
            async with asyncio.timeout(self._queue):
                await self._places.acquire()
        except TimeoutError:
            message = (
                f"The image backend is busy: it had no place free within the {self._queue:g} seconds that "
                "backend_queue allows."
            )
            raise ImageError(message, code="backend_busy") from None
        try:
            yield
        finally:
            self._places.release()

    async def backend(self) -> ImageBackend:
        """Return the backend, open. A failure to open it is the caller's; the next caller tries again."""
        if not isinstance(self._backend, AbstractAsyncContextManager):
            return self._backend
        if self._life is None or self._life.over:
            cut_off = ImageError("The image backend was not opened.", code="no_backend")
            self._life = Lifetime(self._backend, "The image backend", cut_off)
        await self._life.opened()
        return self._backend

    async def close(self) -> None:
        """Close the backend if it was ever opened."""
        if self._life is not None:
            await self._life.close()
