"""What is on its way to one client, in order, and whether the client is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Send

from ..events.actions import Action, Finish
from ..events.translator import Translator
from .sinks import Sink

__all__ = ["Delivery"]


class Delivery:
    """One client's end of an exchange.

    Whoever sends holds `lock`, from the decision what to send until it has left: numbers leave in the
    order in which they were given. Only `stream` may do without.

    Args:
        receive: of the server; this object alone reads it.
        send: of the server, for answers that are passed on as they are.
        sink: takes events.
        translator: tells what a chunk of the model server's stream means.
        on_leave: is called once the client has gone.
        on_actions: does what the translator says, and pushes here what is to be sent.
        log: gets all that was sent; None if nobody wants it.

    Attributes:
        lock: see above.
        gone: whether the client has gone; nothing reaches it any more.
        sent: when something was last sent, by the loop's clock.
        heard: when the model server last said something.
    """

    __slots__ = (
        "_log",
        "_now",
        "_on_actions",
        "_on_leave",
        "_passed",
        "_passing",
        "_queued",
        "_receive",
        "_send",
        "_sink",
        "_translator",
        "_unsent",
        "gone",
        "heard",
        "lock",
        "sent",
    )

    def __init__(
        self,
        receive: Receive,
        send: Send,
        sink: Sink,
        translator: Translator,
        *,
        on_leave: Callable[[], None],
        on_actions: Callable[[list[Action]], None],
        log: list[bytes] | None = None,
    ) -> None:
        self._receive = receive
        self._send = send
        self._sink = sink
        self._translator = translator
        self._on_leave = on_leave
        self._on_actions = on_actions
        self._log = log
        self._unsent: list[bytes | asyncio.Task[None]] = []
        self._passing = False  # a chunk is leaving without the lock
        self._passed: asyncio.Future[None] | None = None  # whoever has the lock waits for its end
        self._queued = 0  # chunks and keep-alives that wait for the lock or have it
        self.lock = asyncio.Lock()
        self.gone = False
        self._now = asyncio.get_running_loop().time
        self.sent = self.heard = self._now()

    @property
    def busy(self) -> bool:
        """Whether something is being decided or sent."""
        return self._passing or self.lock.locked()

    def push(self, item: bytes | asyncio.Task[None]) -> None:
        """Put frames at the end of what is to be sent, or a task for whose end the rest has to wait."""
        self._unsent.append(item)

    async def flush(self) -> None:
        """Send what is to be sent. For whoever holds the lock.

        Whoever calls may be cancelled while a slow client holds a send up: what has not been sent then
        is sent first the next time.
        """
        while self._passing:
            self._passed = asyncio.get_running_loop().create_future()
            await self._passed
        while self._unsent and not self.gone:
            item = self._unsent[0]
            if isinstance(item, bytes):
                self.sent = self._now()
                await self._reach(self._sink.write, item)
                if self._log is not None:
                    self._log.append(item)
            else:
                await asyncio.shield(item)
            del self._unsent[0]

    async def stream(self, chunk: bytes) -> None:
        """Take more of a turn's event stream and send what it means.

        Nearly every event is a chunk of its own and the next frame of a lane. Nothing is decided then, so
        it passes without the lock while nobody else is about to send; `flush` lets it pass.
        """
        lane = self._translator.reading.lane
        if lane and not (self._passing or self._queued or self._unsent or self.gone):
            frame = lane.take(chunk)
            if frame:
                self._passing = True
                try:
                    await self._sink.write(frame)
                except OSError:
                    self._leave()
                except BaseException:
                    self._unsent.insert(0, frame)
                    raise
                finally:
                    self._passing = False
                    if self._passed:
                        self._let_through()
                if self._log is not None:
                    self._log.append(frame)
                self.sent = self.heard = self._now()
                return
        self._queued += 1
        try:
            async with self.lock:
                self._on_actions(self._translator.receive(chunk))
                await self.flush()
                self.heard = self._now()
        finally:
            self._queued -= 1

    async def pass_on(self, message: Message) -> None:
        """Send a message of an answer that is none of ours."""
        await self._reach(self._send, message)

    async def close(self, finish: Finish) -> None:
        """Send the last message."""
        await self._reach(self._sink.close, finish)

    async def keep_alive(self) -> None:
        """Show the client that its response is alive."""
        self.sent = self._now()
        self._queued += 1
        try:
            async with self.lock:
                await self.flush()
                await self._reach(self._sink.keepalive)
        finally:
            self._queued -= 1

    async def watch(self) -> None:
        """Wait until the client goes away. Servers report every end as that: be cancelled before yours."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    async def _reach(self, send: Callable[..., Awaitable[None]], *given: object) -> None:
        """Send something, if the client is still there. Servers may raise OSError when it is not."""
        if not self.gone:
            try:
                await send(*given)
            except OSError:
                self._leave()

    def _let_through(self) -> None:
        """Wake who waits for a chunk to pass, unless it was cancelled."""
        waiting, self._passed = self._passed, None
        if waiting and not waiting.done():
            waiting.set_result(None)

    def _leave(self) -> None:
        self.gone = True
        self._on_leave()
