"""The client of a request that is forwarded: what it sends, and whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from starlette.types import Message, Receive

__all__ = ["Client"]

_AT_ONCE = 1 << 20
"""Bytes of a body that are written without a pause: more would hold up the other streams."""


class _GoneError(Exception):
    """The client left in the middle of its own body."""


class Client:
    """The one reader of a client's `receive`: its body first, then its departure.

    To be entered around all that is done for the client: that is cancelled, in silence, when it leaves.

    Args:
        receive: of the server.
        first: the message that was received already, an `http.request`.
    """

    __slots__ = ("_first", "_receive", "_stay", "_watching")

    def __init__(self, receive: Receive, first: Message) -> None:
        self._receive = receive
        self._first = first
        self._watching: asyncio.Task[None] | None = None
        self._stay = asyncio.timeout(None)

    async def __aenter__(self) -> Self:
        await self._stay.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.let_go()
        try:
            await self._stay.__aexit__(kind, error, trace)
        except TimeoutError:
            return True
        return False

    def body(self) -> bytes | AsyncIterator[bytes] | None:
        """Return the request's body, as it comes if it is not there yet; None if there is none.

        When all of it is there the client is watched. To be called once.
        """
        message, self._first = self._first, {}
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            return self._upload(message)
        self._watch()
        return _whole(body) if len(body) > _AT_ONCE else body or None

    def let_go(self) -> None:
        """Take no more notice of it. Servers report every end as a departure."""
        if self._watching is not None:
            self._watching.cancel()

    async def _upload(self, message: Message) -> AsyncIterator[bytes]:
        while message["type"] == "http.request":
            if body := message.get("body"):
                yield body
            if not message.get("more_body"):
                self._watch()
                return
            message = await self._receive()
        self._leave()
        raise _GoneError  # a generator that merely ended would end the upstream's body as well

    def _watch(self) -> None:
        self._watching = asyncio.create_task(self._departure())

    async def _departure(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self._stay.reschedule(0)


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
