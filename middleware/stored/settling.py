"""A conversation's debt is paid by a request that the model server accepts, also one that nobody may keep."""

from __future__ import annotations

from ...events.actions import Finish
from ..headers import Headers
from ..sinks import Sink
from .owned_store import OwnedStore

__all__ = ["SettlingSink"]


class SettlingSink:
    """Notes in the store that a conversation waits for nothing more, before its client hears anything.

    Args:
        sink: takes all that is told to this one.
        store: of the client.
        conversation: its id.
    """

    def __init__(self, sink: Sink, store: OwnedStore, conversation: str) -> None:
        self.at_once = sink.at_once
        self._sink = sink
        self._store = store
        self._conversation = conversation
        self._paid = False

    def head(self, status: int, headers: Headers) -> None:
        """Learn that the model server has accepted the request, and with it what was owed."""
        self._paid = True
        self._sink.head(status, headers)

    async def write(self, frames: bytes) -> None:
        """Send whole frames."""
        await self._settle()
        await self._sink.write(frames)

    async def keepalive(self) -> None:
        """Show that the response is alive."""
        await self._sink.keepalive()

    async def close(self, finish: Finish) -> None:
        """End the answer."""
        await self._settle()
        await self._sink.close(finish)

    async def _settle(self) -> None:
        if self._paid:
            self._paid = False
            await self._store.settle(self._conversation)
