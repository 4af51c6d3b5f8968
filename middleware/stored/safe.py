"""A store that fails no response: what it cannot read was never seen, what it cannot write is dropped.

Where nobody may go on in ignorance, its `strict` face tells that it failed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TypeVar

from ..cancellation import from_outside
from ..store import Gone, Peeking, Store

__all__ = ["Attempts", "SafeStore", "StoreError"]

log = logging.getLogger("imagecall")

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds until a store that does not answer has failed; those with less patience raise earlier."""
_REST = 5.0
"""Seconds for which a store that timed out is not asked: each request would wait for it again."""
_SILENCE = 60.0
"""Seconds between two warnings."""
_BREATH = 1.0
"""Seconds that reading a log takes at least when it fails: readers ask again at once."""


class StoreError(Exception):
    """The store cannot be reached, and a request cannot be answered without it.

    Args:
        message: one sentence for the client: what could not be done, and what to do.

    Attributes:
        code: tells the client what kind of error it is.
    """

    code = "store_unavailable"

    def __init__(
        self,
        message: str = "The store cannot be reached, and only it knows what was asked for; try again soon.",
    ) -> None:
        super().__init__(message)


class Attempts:
    """Performs the operations of a store, and remembers how it is doing.

    The first failure is logged as a warning, further ones at most once a minute. The store is asked
    again as if nothing had happened, after a few seconds if it had timed out.

    Args:
        now: seconds of a clock that never goes back.
        rests_until: when it is asked for the first time.
    """

    def __init__(self, now: Callable[[], float], *, rests_until: float = float("-inf")) -> None:
        self._now = now
        self._failing = False
        self._rests_until = rests_until
        self._silent_until = float("-inf")

    async def make(self, perform: Callable[[], Awaitable[T]], patience: float) -> T:
        """Perform an operation within so many seconds.

        Raises:
            StoreError: it failed, or was not tried since the store rests.
        """
        if self._now() < self._rests_until:
            raise StoreError
        try:
            async with asyncio.timeout(patience):
                result = await perform()
        except (Exception, asyncio.CancelledError) as error:  # anybody's store may raise anything
            if isinstance(error, asyncio.CancelledError) and from_outside():
                raise
            self._failed(error)
            raise StoreError from None
        if self._failing:
            self._failing = False
            log.info("The store answers again.")
        return result

    def _failed(self, error: BaseException) -> None:
        now = self._now()
        self._failing = True
        if isinstance(error, TimeoutError):
            self._rests_until = now + _REST
        if now >= self._silent_until:
            self._silent_until = now + _SILENCE
            # The words of an error may repeat a URL with its password, or what was to be stored.
            log.warning(
                "The store fails (%s): responses go on, but what it should keep of them is lost.",
                type(error).__name__,
            )


class SafeStore:
    """Stands before any store, and remembers for all requests how it is doing; see `Attempts`.

    Args:
        store: what may fail.
        now: seconds of a clock that never goes back.
        attempts: of another face of the same store.
        strict: raise a `StoreError` where reading fails.
    """

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], float] = time.monotonic,
        attempts: Attempts | None = None,
        strict: bool = False,
    ) -> None:
        self._store = store
        self._attempts = attempts or Attempts(now)
        self._strict = strict

    @property
    def strict(self) -> SafeStore:
        """The same store for who must know: where reading fails, a `StoreError` is raised."""
        return SafeStore(self._store, attempts=self._attempts, strict=True)

    @property
    def shut(self) -> SafeStore:
        """The same store as long as it does not open: all fails, and nothing is asked."""
        return SafeStore(self._store, attempts=Attempts(time.monotonic, rests_until=float("inf")))

    async def __aenter__(self) -> SafeStore:
        if isinstance(self._store, AbstractAsyncContextManager):
            await self._store.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(self._store, AbstractAsyncContextManager):
            await self._store.__aexit__(kind, error, trace)

    async def get(self, key: str) -> bytes | Gone | None:
        """Return the value, `GONE`, or None, which may also mean that nobody knows."""
        return await self._ask(lambda: self._store.get(key), None)

    async def has(self, key: str) -> bool:
        """Tell whether there is a value; False may also mean that nobody knows."""
        store = self._store
        if isinstance(store, Peeking):
            return await self._ask(lambda: store.has(key), False)
        return isinstance(await self.get(key), bytes)

    async def put(self, key: str, value: bytes, *, ttl: float) -> bool:
        """Keep a value, and tell whether that succeeded."""
        return await self._done(lambda: self._store.put(key, value, ttl=ttl))

    async def delete(self, key: str) -> bool:
        """Remove a value and a log, and tell whether that succeeded."""
        return await self._done(lambda: self._store.delete(key))

    async def append(self, key: str, piece: bytes, *, ttl: float) -> bool:
        """Add a piece to a log, and tell whether that succeeded. If not, the log may lack it."""
        return await self._done(lambda: self._store.append(key, piece, ttl=ttl))

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        """Return the pieces of a log from number `start` on; none may also mean that nobody knows."""
        pieces = await self._ask(lambda: self._store.read(key, start, wait=wait), None, _PATIENCE + wait)
        if pieces is None:
            await asyncio.sleep(min(wait, _BREATH))
        return pieces or []

    async def _ask(self, perform: Callable[[], Awaitable[T]], otherwise: T, patience: float = _PATIENCE) -> T:
        try:
            return await self._attempts.make(perform, patience)
        except StoreError:
            if self._strict:
                raise
            return otherwise

    async def _done(self, perform: Callable[[], Awaitable[None]]) -> bool:
        try:
            await self._attempts.make(perform, _PATIENCE)
        except StoreError:
            return False
        return True
