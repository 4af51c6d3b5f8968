"""Puts one response into the store: each picture as soon as it is made, the rest when it is complete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ...events.actions import KeepPicture, KeepResponse
from ...events.known import Known
from .lookup import conversation_id, reach_of
from .owned_store import LOG_END, OwnedStore
from .stored_response import StoredResponse

__all__ = ["Keeper"]

_PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between the attempts to keep what a store in trouble does not take."""

Keep = Callable[[], Awaitable[bool]]


class Keeper:
    """What is kept of one response.

    Of a response in the background nobody else has anything. There what a store does not take at once is
    offered to it again for some seconds, while everything else goes on.

    Args:
        store: where it is kept.
        request: the client's.
        known: what was known of that to which it refers.
        logs: whether what the client is sent is kept as well, at the end.

    Attributes:
        store: see above.
        kept: the response as it was kept at its end; None before.
        frames: what the client was sent; None if that is not kept, or not here.
    """

    def __init__(self, store: OwnedStore, request: Mapping[str, Any], known: Known, *, logs: bool) -> None:
        self.store = store
        self.kept: StoredResponse | None = None
        self.frames: list[bytes] | None = [] if logs else None
        given = request.get("input")
        self._input = [{"role": "user", "content": given}] if isinstance(given, str) else given
        self._reach = reach_of(known)
        self._conversation = conversation_id(request)
        self._background = self._patient = request.get("background") is True
        self._pictures: list[asyncio.Task[None]] = []
        self._late: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()

    def give_up(self) -> None:
        """Offer nothing to the store a second time: nobody will ask for the response."""
        self._patient = False

    def keep_picture(self, group: asyncio.TaskGroup, picture: KeepPicture) -> None:
        """Begin to keep a picture; nobody waits for it before the response's end."""
        keep = partial(self.store.keep_picture, picture.item, picture.data)
        self._pictures.append(group.create_task(self._begin(group, keep)))

    async def keep_state(self, body: Mapping[str, Any], *, last: bool = False) -> None:
        """Keep what a response has come to, unless it has ended; with `last` it ends by that."""
        async with self._lock:
            if self.kept is None:
                stored = self._stored(body)
                self.kept = stored if last else None
                if not await self.store.keep_response(stored) and last and self._patient:
                    await _again(partial(self.store.keep_response, stored))

    async def keep_response(self, group: asyncio.TaskGroup, response: KeepResponse) -> None:
        """Keep a response that is complete, once its pictures are there."""
        if self._pictures:
            await asyncio.wait(self._pictures)
        async with self._lock:
            self.kept = self._stored(response.response, response.upstream, response.owed)
            keep = partial(self.store.keep_response, self.kept)
            if self._late:
                group.create_task(self._keep_last(keep))
            else:
                await self._begin(group, keep)

    async def keep_log(self) -> None:
        """Keep all that the client was sent, if it was a response at all."""
        if self.kept is not None and self.frames:
            await self.store.log(self.kept.id, b"".join((*self.frames, LOG_END)))

    async def _begin(self, group: asyncio.TaskGroup, keep: Keep) -> None:
        """Try to keep something."""
        if not await keep() and self._patient:
            self._late.append(group.create_task(_again(keep)))

    async def _keep_last(self, keep: Keep) -> None:
        """Keep a response whose pictures are late: who reads that it is complete reads no further."""
        await asyncio.wait(self._late)
        if not await keep():
            await _again(keep)

    def _stored(
        self,
        body: Mapping[str, Any],
        upstream: tuple[str, ...] = (),
        owed: tuple[Mapping[str, Any], ...] = (),
    ) -> StoredResponse:
        """Say of a response object, final or not, what the store needs to know."""
        return StoredResponse(
            id=body["id"],
            status=body["status"],
            upstream=upstream,
            body=dict(body),
            input=self._input if isinstance(self._input, list) else [],
            reach=self._reach,
            conversation=self._conversation or conversation_id(body),
            background=self._background,
            owed=owed,
        )


async def _again(keep: Keep) -> None:
    for pause in _PAUSES:
        await asyncio.sleep(pause)
        if await keep():
            return
