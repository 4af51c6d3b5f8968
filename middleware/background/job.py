"""One response in the background: its events go into the log, its states into the store."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, Literal

from starlette.types import Message, Send

from ...events.actions import Finish
from ...events.response_object import NEUTRAL
from ...events.wire import dumps
from ..cancellation import from_outside
from ..exchange import Exchange
from ..headers import Headers
from ..sinks import Sink
from ..stored.keeper import Keeper
from ..stored.owned_store import LOG_END
from ..stored.safe import StoreError
from .follower import Follower
from .leases import BEAT, BEATS, Leases

__all__ = ["Job"]

log = logging.getLogger("imagecall")


class Job:
    """Makes one response. It is the sink of its exchange and stands in for the client.

    The client that asked follows the response if it wants a stream; else it is told that the response
    is queued, and let go. It is told nothing before the model server has accepted the first turn: until
    then its leaving ends everything, and afterwards nothing.

    Args:
        body: the response object as it is before anything has happened.
        keeper: keeps what becomes of it.
        leases: tells the other workers that somebody is at it.
        stream: whether the client wants a stream.
        send: to the client, for answers that are passed on as they are.
        sink: to the client, for any other.

    Attributes:
        id: the response's.
        follower: the client.
        exchange: makes the response; to be set before anything is done with it.
    """

    at_once = False

    def __init__(
        self, body: dict[str, Any], keeper: Keeper, leases: Leases, *, stream: bool, send: Send, sink: Sink
    ) -> None:
        self.id: str = body["id"]
        self.follower = Follower()
        self.exchange: Exchange
        self._body = body
        self._keeper = keeper
        self._leases = leases
        self._stream = stream
        self._send = send
        self._sink = sink
        self._accepted = False
        self._over = False
        self._refusal: StoreError | None = None
        self._ending: Literal["failed", "cancelled"] = "failed"
        self._finish: Finish | None = None
        self._frames: list[bytes] = []
        self._unlogged: list[bytes] = []
        self._news = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None

    # -- what the exchange takes for the client ------------------------------------------------

    async def receive(self) -> Message:
        """Tell that the client has gone, if that still matters."""
        await self.follower.left.wait()
        if self._accepted:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def pass_on(self, message: Message) -> None:
        """Hand on an answer of turn one that is no success."""
        self.follower.tell(lambda: self._send(message))

    def head(self, status: int, headers: Headers) -> None:
        """Learn that the model server has accepted the request."""
        self._sink.head(status, headers)
        self._accepted = True
        self._news.set()

    async def write(self, frames: bytes) -> None:
        """Take whole frames."""
        self._frames.append(frames)
        self._news.set()

    async def keepalive(self) -> None:
        """Show a client that follows that the response is alive."""
        if self._stream:
            self.follower.tell(self._sink.keepalive)

    async def close(self, finish: Finish) -> None:
        """Learn how it ended."""
        self._finish = finish

    # -- its tasks -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Make the response.

        What the inner application raises, and that the store fails, comes out of the client's request,
        as long as the client has been told nothing; later it is logged.
        """
        error: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as self._group:
                self._group.create_task(self._record())
                try:
                    await self.exchange.run()
                except (Exception, asyncio.CancelledError) as raised:
                    if from_outside():
                        raise
                    error = raised
                self._over = True
                self._news.set()
            self._let_go(self._refusal or error)
        finally:
            self.follower.end()

    async def cancel(self) -> None:
        """End the response as its client wishes, who knows of it; then this is in the store."""
        self._ending = "cancelled"
        await self.exchange.cancel()
        await self._keeper.keep_state(self._ended(), last=True)

    async def stop(self) -> None:
        """End the response because the server stops; then this is in the store."""
        await self.exchange.stop()
        if self._accepted:
            await self._keeper.keep_state(self._ended(), last=True)

    async def _record(self) -> None:
        """Write down what happens, and tell the client."""
        while not self._accepted:
            if self._over:
                return
            await self._heard()
        if not await self._leases.hold(self.id) and not self._stream:
            self._accepted = False  # as far as the client will ever know
            self._refusal = StoreError(
                "The store cannot be reached, and without it nobody could ask for a response in the "
                "background; try again soon, or leave out 'background'."
            )
            self._keeper.give_up()
            await self.exchange.abandon("the store is out of order, and nobody could ask for the response")
            return
        self._beating = self._group.create_task(self._beat())
        await self._keeper.keep_state(self._body)
        if not self._stream:
            self.follower.tell(partial(self._sink.close, Finish((dumps(self._body),))))
            self.follower.end()
        began = False
        while self._frames or not self._over:
            if not self._frames:
                await self._heard()
                continue
            frames = b"".join(self._frames)
            self._frames.clear()
            if self._stream:
                self.follower.tell(partial(self._sink.write, frames))
            if not began:
                began = True
                await self._keeper.keep_state({**self._body, "status": "in_progress"})
            await self._log(frames)
        self._beating.cancel()
        await self._keeper.keep_state(self._ended(), last=True)
        await self._log(LOG_END)

    async def _heard(self) -> None:
        await self._news.wait()
        self._news.clear()

    async def _log(self, piece: bytes) -> None:
        """Add to the log, and first what it may lack; whoever reads it drops what stands there twice."""
        self._unlogged.append(piece)
        if await self._keeper.store.log(self.id, b"".join(self._unlogged)):
            self._unlogged.clear()

    async def _beat(self) -> None:
        """Hold the lease, and look whether somebody has cancelled the response on another worker."""
        while True:
            for _ in range(BEATS):
                await asyncio.sleep(BEAT)
                if await self._leases.cancelled(self.id):
                    await self.cancel()
            await self._leases.hold(self.id)

    def _ended(self) -> dict[str, Any]:
        """Make the response object of a response that ended before the model server said anything."""
        told = self._finish.told if self._finish is not None else ""
        error = {"code": "server_error", "message": told or NEUTRAL} if self._ending == "failed" else None
        return {**self._body, "status": self._ending, "error": error}

    def _let_go(self, error: BaseException | None) -> None:
        """Tell the client the end."""
        if self._accepted:
            if error is not None:
                log.error("%s: the inner application raised %s", self.id, type(error).__name__)
            if self._stream:
                finish = self._finish or Finish(None, failed=True)
                self.follower.tell(partial(self._sink.close, finish))
        elif self._finish is not None and error is None:
            self.follower.tell(partial(self._sink.close, self._finish))
        self.follower.end(None if self._accepted else error)
