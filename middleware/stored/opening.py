"""The store in the life of the application: opened before its first use, and closed at shutdown."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager

from starlette.types import Scope

from ..lifetime import Lifetime
from ..store import Store
from .owned_store import OwnedStore
from .owners import Owner
from .safe import SafeStore, StoreError

__all__ = ["StoreOwner"]

log = logging.getLogger("imagecall")

_PATIENCE = 10.0
"""Seconds for which a request waits for the store to open."""


class StoreOwner:
    """Gives each request its owner's part of the store.

    Args:
        store: None where nothing is kept.
        owner: tells whose a request is.
        ttl: seconds for which everything is kept.
    """

    def __init__(self, store: Store | None, owner: Owner, *, ttl: float) -> None:
        self._safe = None if store is None else SafeStore(store)
        self._must_open = isinstance(store, AbstractAsyncContextManager)
        self._owner = owner
        self._ttl = ttl
        self._life: Lifetime | None = None
        self._warned = False
        self._late = False

    async def owned(self, scope: Scope) -> OwnedStore | None:
        """Return what belongs to the owner of a request; None where no store is set.

        While the store does not open it is one that fails.
        """
        if self._safe is None:
            return None
        there = not self._must_open or await self._opened(self._safe)
        return OwnedStore(self._safe if there else self._safe.shut, self._owner(scope), ttl=self._ttl)

    async def answers(self) -> bool:
        """Whether the store can be asked; True where none is set."""
        if self._safe is None:
            return True
        if self._must_open and not await self._opened(self._safe):
            return False
        try:
            await self._safe.strict.has("readiness")
        except StoreError:
            return False
        return True

    async def close(self) -> None:
        """Close the store if it was ever opened."""
        if self._life is not None:
            await self._life.close()

    async def _opened(self, store: SafeStore) -> bool:
        """Open the store if it is not. If it does not open, the next caller tries again.

        One that takes too long may go on; after the first callers nobody waits for it.
        """
        if self._life is None or self._life.over:
            self._life = Lifetime(store, "The store", RuntimeError("the store was not opened"))
        try:
            async with asyncio.timeout(0 if self._late else _PATIENCE):
                await self._life.opened()
        except Exception as error:  # noqa: BLE001  anybody's store may raise anything
            self._late = isinstance(error, TimeoutError)
            if not self._warned:
                log.warning("The store does not open (%s): nothing is kept.", type(error).__name__)
            self._warned = True
            return False
        self._late = False
        return True
