"""The events of a stored response, told again from any number on, also while they are still being made.

A log is a list of pieces, each of whole frames just as the client got or gets them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace

from ...events.sse import DONE, KEEPALIVE, SSEDecoder, encode
from ...events.wire import TERMINAL, dumps, loads
from ..stored.owned_store import LOG_END, OwnedStore
from ..stored.safe import StoreError
from ..stored.stored_response import StoredResponse

__all__ = ["EventLog"]

_PATIENCE = 1.0
"""Seconds to wait for news until it is asked whether the response still runs."""

_TERMINAL = frozenset(name.encode() for name in TERMINAL)
_NAMES = {"completed": "response.completed", "incomplete": "response.incomplete"}


class EventLog:
    """Reads the log of one response for one client.

    Args:
        store: where the log is; a strict one.
        response_id: whose log it is.
        after: the sequence number behind which to begin; -1 for the beginning.
        current: looks the response up again; None if it was deleted.
        keepalive: seconds of silence after which a comment is sent; 0 for never.
    """

    def __init__(
        self,
        store: OwnedStore,
        response_id: str,
        after: int,
        current: Callable[[], Awaitable[StoredResponse | None]],
        keepalive: float,
    ) -> None:
        self._store = store
        self._id = response_id
        self._after = after
        self._current = current
        self._keepalive = keepalive
        self._decoder = SSEDecoder()
        self._position = 0
        self._seen = -1
        self._told_end = False
        self._pieces: list[bytes] = []

    async def begin(self) -> bool:
        """Read what is there; tell whether that is anything.

        Raises:
            StoreError: the store fails.
        """
        return await self._read(0.0)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Give the frames as they come, until the response has ended. A store that fails is waited for."""
        silence = 0.0
        while True:
            try:
                if not self._pieces:
                    await self._read(_PATIENCE)
                if self._pieces:
                    silence = 0.0
                    pieces, self._pieces = self._pieces, []
                    if wanted := self._wanted(pieces):
                        yield wanted
                    if not pieces[-1].endswith(LOG_END):
                        continue
                last = await self._ending()
            except StoreError:
                last = None
                await asyncio.sleep(_PATIENCE)
            if last is not None:
                if last:
                    yield last
                return
            silence += _PATIENCE
            if self._keepalive and silence >= self._keepalive:
                silence = 0.0
                yield KEEPALIVE

    async def _ending(self) -> bytes | None:
        """Return what is left to tell of a response that has ended; None of one that goes on."""
        stored = await self._current()
        if stored is None:
            return b""
        if stored.running or await self._read(0.0):
            return None
        return b"" if self._told_end else await self._last(stored)

    async def _read(self, wait: float) -> bool:
        pieces = await self._store.read_log(self._id, self._position, wait)
        self._position += len(pieces)
        self._pieces += pieces
        return bool(pieces)

    def _wanted(self, pieces: Sequence[bytes]) -> bytes:
        """Choose the frames that the client has not got yet. A piece may stand in the log twice."""
        frames = []
        for event in self._decoder.feed(b"".join(pieces)):
            if event.raw is None:
                frames.append(DONE)
                continue
            number = loads(event.data)["sequence_number"]
            self._seen = max(self._seen, number)
            self._told_end = self._told_end or event.event in _TERMINAL
            if number > self._after:
                self._after = number
                frames.append(event.raw)
        return b"".join(frames)

    async def _last(self, stored: StoredResponse) -> bytes:
        """Make the terminal event of a response that ended without one: its worker has died.

        If nothing was ever said, the event with which every stream begins is made, too.
        """
        number = max(self._seen, self._after) + 1
        last = (_NAMES.get(stored.status, "response.failed"), stored)
        if number:
            return await self._event(number, *last)
        created = replace(stored, body={**stored.body, "status": "queued", "error": None})
        return await self._event(0, "response.created", created) + await self._event(1, *last)

    async def _event(self, number: int, name: str, stored: StoredResponse) -> bytes:
        head = dumps({"type": name, "sequence_number": number})[:-1]
        return encode(name.encode(), b"".join((head, b',"response":', await self._store.body(stored), b"}")))
