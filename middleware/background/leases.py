"""Which responses run in the background, on whatever worker, and which of them are to stop."""

from __future__ import annotations

from ..stored.keys import mark
from ..stored.safe import SafeStore

__all__ = ["BEAT", "BEATS", "Leases"]

BEAT = 1.0
"""Seconds between two looks whether a response was cancelled on another worker."""
BEATS = 5
"""Beats after which a lease is renewed."""
_LEASE = 20.0
"""Seconds for which a lease holds: some renewals may fail, and a worker may be busy for a while."""
_WISH = 60.0
"""Seconds for which it is remembered that a response is to stop."""


class Leases:
    """What the workers tell each other by the store.

    A worker that runs a response holds a lease of it. Without one it will never end.
    """

    def __init__(self, store: SafeStore) -> None:
        self._store = store

    async def hold(self, response_id: str) -> bool:
        """Take or renew a lease; False if the store is out of order."""
        return await self._store.put(_lease(response_id), b"1", ttl=_LEASE)

    async def held(self, response_id: str) -> bool:
        """Tell whether some worker holds it."""
        return isinstance(await self._store.get(_lease(response_id)), bytes)

    async def cancel(self, response_id: str) -> bool:
        """Ask the worker that runs a response to stop; False if the store is out of order."""
        return await self._store.put(_wish(response_id), b"1", ttl=_WISH)

    async def cancelled(self, response_id: str) -> bool:
        """Tell whether it was asked to."""
        return isinstance(await self._store.get(_wish(response_id)), bytes)


def _lease(response_id: str) -> str:
    return f"lease:{mark(response_id)}"


def _wish(response_id: str) -> str:
    return f"cancel:{mark(response_id)}"
