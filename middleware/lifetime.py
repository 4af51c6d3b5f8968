"""What must be left in the task that entered it, though no request lives long enough."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any

__all__ = ["Lifetime"]

log = logging.getLogger("imagecall")


class Lifetime:
    """One opening of something, entered and left by a task of its own.

    Args:
        manager: what is entered.
        name: what it is, for the log.
        cut_off: what `opened` raises when the opening was cancelled.
    """

    def __init__(self, manager: AbstractAsyncContextManager[Any], name: str, cut_off: Exception) -> None:
        self._name = name
        self._failure: Exception | None = cut_off
        self._settled = asyncio.Event()
        self._closing = asyncio.Event()
        # In no request's own context: what is opened by the first one serves all others.
        self._task = asyncio.create_task(self._own(manager), context=Context())

    @property
    def over(self) -> bool:
        """Whether it was left, or could not be entered."""
        return self._task.done()

    async def opened(self) -> None:
        """Wait until it is open; raise what kept it from opening."""
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Leave it, and wait until it is left."""
        self._closing.set()
        if not self._settled.is_set():
            self._task.cancel()
        await asyncio.wait([self._task])
        self._settled.set()  # a task that is cancelled before its first step does nothing itself

    async def _own(self, manager: AbstractAsyncContextManager[Any]) -> None:
        try:
            async with manager:
                self._failure = None
                self._settled.set()
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001  whatever it raises belongs to those who wait for it
            if self._settled.is_set():
                log.warning("%s did not close cleanly: %s", self._name, type(error).__name__)
            else:
                self._failure = error
        finally:
            self._settled.set()
