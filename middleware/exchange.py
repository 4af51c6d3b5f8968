"""One client request: its turns, its pictures, its one stream of answers.

Who does what, and in which task:

- the *main* task (`run`) starts each turn, waits until something is decided, and ends the answer;
- each *turn* is the inner application in a task of its own; its `send` is ours and feeds the translator;
- each *picture* is a task of the runner;
- the *watcher* alone reads the server's `receive`; the *clock* sends keep-alives and watches the limits.

All of them may write to the client, so one lock (the delivery's) spans each translator call and the
sends that follow from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..events.actions import Action, Finish, KeepPicture, KeepResponse, NextTurn, Run
from ..events.actions import Send as SendFrames
from ..events.translator import Translator
from ..events.wire import dumps
from .backends.routing import Routing
from .delivery import Delivery
from .edits.artifacts import Artifacts
from .edits.pictures import Pictures
from .runner import Runner
from .settings import Settings
from .sinks import Sink
from .stored.keeper import Keeper
from .turns import InnerTurn, TurnReader, turn_scope

__all__ = ["Exchange", "Shared"]

log = logging.getLogger("imagecall")


@dataclass(frozen=True, slots=True)
class Shared:
    """What all exchanges of one middleware share."""

    app: ASGIApp
    settings: Settings
    routing: Routing
    slots: asyncio.Semaphore
    artifacts: Artifacts | None = None


class Exchange:
    """Answers one request whose tool was lowered."""

    __slots__ = (
        "_clock",
        "_delivery",
        "_finish",
        "_group",
        "_keeper",
        "_next",
        "_passed",
        "_pictures",
        "_runner",
        "_scope",
        "_shared",
        "_sink",
        "_started",
        "_translator",
        "_turn",
        "_turns",
        "_wake",
        "_watcher",
    )

    def __init__(
        self,
        shared: Shared,
        scope: Scope,
        receive: Receive,
        send: Send,
        translator: Translator,
        sink: Sink,
        keeper: Keeper | None = None,
        pictures: Pictures | None = None,
    ) -> None:
        self._shared = shared
        self._scope = scope
        self._translator = translator
        self._sink = sink
        self._wake = asyncio.Event()
        self._keeper = keeper
        self._pictures = pictures
        frames = None if keeper is None else keeper.frames
        self._delivery = Delivery(
            receive, send, sink, translator, on_leave=self._wake.set, on_actions=self._act, log=frames
        )
        self._next: NextTurn | None = None
        self._finish: Finish | None = None
        self._passed = False
        self._turns: list[InnerTurn] = []
        self._started = asyncio.get_running_loop().time()

    async def run(self, body: bytes) -> None:
        """Answer the request; `body` is turn one's.

        What the inner application raised comes out as it was, after the answer was ended.
        """
        async with asyncio.TaskGroup() as self._group:
            shared = self._shared
            self._runner = Runner(
                shared.routing,
                shared.slots,
                shared.settings,
                self._translator,
                self._perform,
                self._group,
                pictures=self._pictures,
                artifacts=shared.artifacts,
            )
            self._watcher = self._group.create_task(self._delivery.watch())
            self._clock = self._group.create_task(self._tick())
            self._ask(body)
            try:
                await self._drive()
            finally:
                self._watcher.cancel()
                self._clock.cancel()
        for note in self._translator.notes:
            log.warning("%s", note)
        for words in self._translator.words:
            log.debug("the model server said: %s", words)
        for turn in self._turns:
            if turn.error is not None:
                raise turn.error

    # -- the main task -------------------------------------------------------------------------

    async def _drive(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._finish is not None:
                await self._end(self._finish)
                return
            if self._delivery.gone:
                await self._abandon()
                return
            if self._passed:
                return
            action, self._next = self._next, None
            assert action is not None
            if action.delay:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), action.delay)
            if not self._wake.is_set():  # else the client has gone, or time is up
                self._ask(dumps(action.body))

    def _ask(self, body: bytes) -> None:
        number = len(self._turns) + 1
        scope = turn_scope(self._scope, len(body), number)
        reader = TurnReader(self._translator, number, self._shared.settings.max_event)
        self._turn = InnerTurn(self._shared.app, scope, body, reader, self._hear, self._delivery.stream)
        self._turns.append(self._turn)
        self._turn.task = self._group.create_task(self._run_turn(self._turn))

    async def _run_turn(self, turn: InnerTurn) -> None:
        await turn.run()
        if turn.over.is_set():
            return
        # The application has returned or raised before its response was complete.
        if turn.reader.mode == "passed" or (turn.reader.number == 1 and not turn.reader.status):
            self._passed = True
            self._wake.set()
        else:
            await self._perform(turn.reader.end)
        turn.leave()

    async def _end(self, finish: Finish) -> None:
        """Send the last message. The watcher is retired first: servers report every end as a disconnect."""
        self._runner.cancel()
        async with self._delivery.lock:
            self._watcher.cancel()
            self._clock.cancel()
            await self._delivery.flush()
            if self._keeper is not None:
                await self._keeper.keep_log()
            await self._delivery.close(finish)
        await self._abandon()

    async def _abandon(self) -> None:
        """Nobody listens any more: stop the pictures at once, and the inner application after a grace."""
        self._runner.cancel()
        running = [turn.task for turn in self._turns if not turn.reader.ended]
        for turn in self._turns:
            turn.leave()
        if running:
            _, late = await asyncio.wait(running, timeout=self._shared.settings.disconnect_grace)
            for task in late:
                task.cancel()

    # -- the turn's task -----------------------------------------------------------------------

    async def _hear(self, turn: InnerTurn, message: Message) -> None:
        """Take a message of the inner application."""
        reader = turn.reader
        if message["type"] == "http.response.start":
            reader.begin(message["status"], list(message.get("headers", ())))
            if reader.mode == "passed":
                self._clock.cancel()
                await self._pass(turn, message, last=False)
            elif reader.number == 1:
                self._sink.head(reader.status, reader.headers)
        elif message["type"] == "http.response.body":
            last = not message.get("more_body", False)
            if reader.mode == "passed":
                await self._pass(turn, message, last=last)
                return
            await self._perform(lambda: reader.take(message.get("body", b""), last=last))
            if last:
                # Not earlier: many applications stop sending as soon as the client seems to have gone.
                turn.leave()

    async def _pass(self, turn: InnerTurn, message: Message, *, last: bool) -> None:
        """Hand on an answer of turn one that is no success, as it is."""
        async with self._delivery.lock:
            if last:
                self._watcher.cancel()
            if self._finish is None:
                await self._delivery.pass_on(message)
        if last:
            turn.leave()
            self._passed = True
            self._wake.set()

    # -- whoever else may end it ---------------------------------------------------------------

    async def cancel(self) -> None:
        """End the response as cancelled by its client."""
        await self._perform(self._translator.cancel)

    async def abandon(self, reason: str) -> None:
        """End the response as failed."""
        await self._perform(lambda: self._translator.abandon(reason))

    # -- everybody -----------------------------------------------------------------------------

    async def _perform(self, decide: Callable[[], list[Action]]) -> None:
        """Ask the translator, and do what it says before anybody else may ask.

        Nothing waits for the client before all is decided: see `Delivery.flush`.
        """
        async with self._delivery.lock:
            self._act(decide())
            await self._delivery.flush()

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case SendFrames(frames):
                    self._delivery.push(frames)
                case Run(call):
                    if not self._delivery.gone:
                        self._runner.start(call)
                case KeepPicture() | KeepResponse():
                    self._keep(action)
                case NextTurn():
                    self._next = action
                    self._wake.set()
                case Finish():
                    self._finish = action
                    self._wake.set()
                case _:
                    assert_never(action)

    def _keep(self, action: KeepPicture | KeepResponse) -> None:
        """Begin to keep something. Only what follows a response's end has to wait for that."""
        if self._keeper is None:
            return
        if isinstance(action, KeepPicture):
            self._keeper.keep_picture(self._group, action)
        else:
            self._delivery.push(self._group.create_task(self._keeper.keep_response(self._group, action)))

    async def _tick(self) -> None:
        """Keep the client's connection alive and end what takes too long."""
        settings = self._shared.settings
        end = self._started + settings.response_timeout
        while True:
            now = asyncio.get_running_loop().time()
            if now >= end:
                await self.abandon("the response took too long")
                return
            silent = self._silent_since(now) + settings.upstream_idle
            if now >= silent:
                log.warning("the model server was silent for %g seconds", settings.upstream_idle)
                self._turn.leave()
                await self._perform(self._translator.turn_ended)
                continue
            alive = self._delivery.sent + settings.keepalive if settings.keepalive else end
            if now >= alive:
                await self._delivery.keep_alive()
                continue
            await asyncio.sleep(max(0.001, min(end, silent, alive) - now))

    def _silent_since(self, now: float) -> float:
        """Tell when the model server last said something; `now` while a client takes it in."""
        if self._delivery.busy:
            return now
        return max(self._delivery.heard, self._turn.silent_since(now))
