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
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never

from starlette.types import Message, Receive, Scope, Send

from ..events.actions import Action, Finish, KeepPicture, KeepResponse, NextTurn, Run
from ..events.actions import Send as SendFrames
from ..events.translator import Translator
from ..events.wire import dumps
from .cancellation import forgive
from .clock import Clock, StalledError
from .delivery import Delivery
from .edits.pictures import Pictures
from .request_id import returned
from .runner import Runner
from .shared import Shared
from .shutdown import STOPPING
from .sinks import Sink
from .stored.keeper import Keeper
from .telemetry.response import ObservedResponse
from .turns import InnerTurn, TurnReader, turn_scope

__all__ = ["Exchange"]

log = logging.getLogger("imagecall")


class Exchange:
    """Answers one request whose tool was lowered.

    Args:
        shared: what all exchanges share.
        body: turn one's request.
        scope, receive, send: of the client's connection.
        translator: joins the turns.
        sink: takes the events.
        observed: shows the response to operators.
        keeper: keeps what is to be kept; None if nothing is.
        pictures: gets the pictures that edits start from.
    """

    def __init__(
        self,
        shared: Shared,
        body: Mapping[str, Any],
        scope: Scope,
        receive: Receive,
        send: Send,
        translator: Translator,
        sink: Sink,
        *,
        observed: ObservedResponse,
        keeper: Keeper | None,
        pictures: Pictures,
    ) -> None:
        self._shared = shared
        self._body = body
        self._scope = scope
        self._translator = translator
        self._sink = sink
        self._observed = observed
        self._wake = asyncio.Event()
        self._keeper = keeper
        self._pictures = pictures
        frames = None if keeper is None else keeper.frames
        self._delivery = Delivery(
            receive, send, sink, translator, on_leave=self._wake.set, on_actions=self._act, log=frames
        )
        self._next: NextTurn | None = None
        self._finish: Finish | None = None
        self._passed = self._closed = False
        self._turns: list[InnerTurn] = []

    async def run(self) -> None:
        """Answer the request.

        What the inner application raised comes out as it was, after the answer was ended.
        """
        try:
            await self._answer()
        except* StalledError:
            log.warning("A client took nothing of its response until its time was long over; it was cut off.")
        for turn in self._turns:
            if turn.error is not None:
                raise turn.error

    async def _answer(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            shared = self._shared
            self._runner = Runner(
                shared,
                self._translator,
                self._perform,
                self._group,
                observe=self._observed.picture,
                pictures=self._pictures,
            )
            clock = Clock(
                shared.settings,
                self._delivery,
                lambda: self._turn,
                end=partial(self.abandon, "the response took too long"),
                end_turn=self._fall_silent,
            )
            with self._observed, shared.shutdown.holding(self._stop_soon, at_once=self._sink.at_once):
                self._ask(self._body)  # before all else: the model is what the client waits for
                self._watcher = self._group.create_task(self._delivery.watch())
                self._clock = self._group.create_task(clock.run())
                self._cut = clock.cut_off_late(self._group, self._observed.client_left)
                try:
                    await self._drive_on()
                finally:
                    self._watcher.cancel()
                    self._clock.cancel()
                    self._cut.cancel()

    # -- the main task -------------------------------------------------------------------------

    async def _drive_on(self) -> None:
        """Drive to the end, though a server that stops may run out of patience on the way."""
        try:
            await self._drive()
        except asyncio.CancelledError:
            if not self._shared.shutdown.begun:
                raise
            await self.stop()
            if self._finish is None:  # a refusal is being passed on
                raise
            forgive()
            for turn in self._turns:
                turn.task.cancel()
            if not self._closed:
                await self._end(self._finish)

    async def _drive(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._finish is not None:
                await self._end(self._finish)
                return
            if self._delivery.gone:
                self._observed.client_left()
                await self._let_go()
                return
            if self._passed:
                return
            action, self._next = self._next, None
            assert action is not None
            if action.delay:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), action.delay)
            if not self._wake.is_set():  # else the client has gone, or time is up
                self._ask(action.body)

    def _ask(self, request: Mapping[str, Any]) -> None:
        body, number = dumps(request), len(self._turns) + 1
        scope = turn_scope(self._scope, len(body), number)
        reader = TurnReader(self._translator, number, self._shared.settings.max_event)
        observed = self._observed.turn(scope, reader)
        self._turn = InnerTurn(self._shared.app, scope, body, reader, self._hear, self._delivery.stream)
        self._turns.append(self._turn)
        self._turn.task = self._group.create_task(observed.around(self._run_turn, self._turn))

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
            self._closed = True
            await self._delivery.close(finish)
        await self._let_go()

    async def _let_go(self) -> None:
        """Nobody listens any more: stop the pictures at once, and the inner application after a grace."""
        self._runner.cancel()
        self._cut.cancel()
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
            reader.begin(message["status"], returned(message.get("headers", ())))
            if reader.mode == "passed":
                self._clock.cancel()
                self._cut.cancel()
                await self._pass(turn, {**message, "headers": reader.headers}, last=False)
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

    async def abandon(self, reason: str, told: str = "") -> None:
        """End the response as failed; `told` is what the client may know of it."""
        await self._perform(lambda: self._translator.abandon(reason, told=told))

    async def stop(self) -> None:
        """End the response because the server stops. A refusal that is passed on ends by itself."""
        if self._turns[0].reader.mode != "passed":
            await self._perform(lambda: self._translator.stop(STOPPING))

    def _stop_soon(self) -> None:
        stopping = self.stop()
        try:
            self._group.create_task(stopping)
        except RuntimeError:  # something has failed, and it is ending already
            stopping.close()

    async def _fall_silent(self, told: str) -> None:
        self._turn.leave()
        await self._perform(partial(self._translator.turn_ended, told))

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
