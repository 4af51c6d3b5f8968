"""One client request: its turns, its pictures, its one stream of answers.

Who does what, and in which task:

- the *main* task (`run`) starts each turn, waits until something is decided, and ends the answer;
- each *turn* is the inner application in a task of its own; its `send` is ours and feeds the translator;
- each *picture* is a task of the runner;
- the *watcher* alone reads the server's `receive`; the *clock* sends keep-alives and watches the limits.

All of them may write to the client, so one lock spans each translator call and the sends that follow
from it: numbers leave in the order in which they were given.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..events.actions import Action, Finish, NextTurn, Run
from ..events.actions import Send as SendFrames
from ..events.translator import Translator
from ..events.wire import dumps
from .answers import Headers
from .runner import BackendOwner, Runner
from .settings import Settings
from .sinks import Sink
from .turns import InnerTurn, turn_scope

__all__ = ["Exchange", "Shared"]

log = logging.getLogger("imagecall")

_REFUSAL = 64 << 10
"""Bytes kept of a refused follow-up's body: enough for the log, whatever the server sends."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all exchanges of one middleware share."""

    app: ASGIApp
    settings: Settings
    owner: BackendOwner
    slots: asyncio.Semaphore


class Exchange:
    """Answers one request whose tool was lowered."""

    __slots__ = (
        "_clock",
        "_finish",
        "_gone",
        "_group",
        "_lock",
        "_next",
        "_passed",
        "_receive",
        "_runner",
        "_scope",
        "_send",
        "_sent",
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
        self, shared: Shared, scope: Scope, receive: Receive, send: Send, translator: Translator, sink: Sink
    ) -> None:
        self._shared = shared
        self._scope = scope
        self._receive = receive
        self._send = send
        self._translator = translator
        self._sink = sink
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._gone = asyncio.Event()
        self._next: NextTurn | None = None
        self._finish: Finish | None = None
        self._passed = False
        self._turns: list[InnerTurn] = []
        self._started = self._sent = asyncio.get_running_loop().time()

    async def run(self, body: bytes) -> None:
        """Answer the request; `body` is turn one's.

        What the inner application raised comes out as it was, after the answer was ended.
        """
        async with asyncio.TaskGroup() as self._group:
            shared = self._shared
            self._runner = Runner(
                shared.owner, shared.slots, shared.settings, self._translator, self._perform, self._group
            )
            self._watcher = self._group.create_task(self._watch())
            self._clock = self._group.create_task(self._tick())
            self._ask(body)
            try:
                await self._drive()
            finally:
                self._watcher.cancel()
                self._clock.cancel()
                self._runner.cancel()
        for note in self._translator.notes:
            log.warning("%s", note)
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
            if self._gone.is_set():
                await self._abandon()
                return
            if self._passed:
                return
            if self._next is not None:
                action, self._next = self._next, None
                if action.delay:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._gone.wait(), action.delay)
                if not self._gone.is_set():
                    self._ask(dumps(action.body))

    def _ask(self, body: bytes) -> None:
        number = len(self._turns) + 1
        scope = turn_scope(self._scope, len(body), number)
        self._turn = InnerTurn(self._shared.app, scope, body, number, self._hear)
        self._turns.append(self._turn)
        self._turn.task = self._group.create_task(self._run_turn(self._turn))

    async def _run_turn(self, turn: InnerTurn) -> None:
        await turn.run()
        if turn.over.is_set():
            return
        # The application has returned or raised before its response was complete.
        turn.over.set()
        if turn.number == 1 and (not turn.status or turn.mode == "passed"):
            self._passed = True
            self._wake.set()
        elif not turn.status:
            await self._perform(lambda: self._translator.abandon("the inner application gave no answer"))
        else:
            await self._perform(self._translator.turn_ended)

    async def _end(self, finish: Finish) -> None:
        """Send the last message; the watcher is retired first, since servers report every end as a disconnect."""
        async with self._lock:
            self._runner.cancel()
            self._watcher.cancel()
            if not self._gone.is_set():
                with self._client_may_leave():
                    await self._sink.close(finish)
        if not self._turn.over.is_set():
            await self._abandon()

    async def _abandon(self) -> None:
        """Nobody listens any more: stop the pictures at once, and the inner application after a grace."""
        self._runner.cancel()
        running = [turn.task for turn in self._turns if turn.task is not None and not turn.over.is_set()]
        for turn in self._turns:
            turn.leave()
        if running:
            _, late = await asyncio.wait(running, timeout=self._shared.settings.disconnect_grace)
            for task in late:
                task.cancel()

    # -- the turn's task -----------------------------------------------------------------------

    async def _hear(self, turn: InnerTurn, message: Message) -> None:
        """Take a message of the inner application."""
        if turn.over.is_set():
            return
        turn.heard = asyncio.get_running_loop().time()
        if message["type"] == "http.response.start":
            await self._hear_head(turn, message)
        elif message["type"] == "http.response.body":
            more = message.get("more_body", False)
            if turn.mode == "passed":
                await self._pass(turn, message, last=not more)
                return
            await self._hear_body(turn, message.get("body", b""))
            if not more:
                turn.over.set()
                await self._perform(lambda: self._turn_complete(turn))

    async def _hear_head(self, turn: InnerTurn, message: Message) -> None:
        turn.status = message["status"]
        turn.headers = list(message.get("headers", ()))
        kind = next((value for name, value in turn.headers if name.lower() == b"content-type"), b"")
        if not 200 <= turn.status < 300:
            turn.mode = "passed" if turn.number == 1 else "refused"
        else:
            turn.mode = "stream" if kind.lower().startswith(b"text/event-stream") else "whole"
        if turn.mode == "passed":
            await self._pass(turn, message, last=False)
        elif turn.number == 1:
            self._sink.head(turn.status, turn.headers)

    async def _hear_body(self, turn: InnerTurn, piece: bytes) -> None:
        if turn.mode == "stream":
            await self._perform(lambda: self._translator.receive(piece))
            return
        limit = _REFUSAL if turn.mode == "refused" else self._shared.settings.max_event
        turn.size += len(piece)
        if turn.size <= limit:
            turn.pieces.append(piece)
        elif turn.mode == "whole":
            await self._perform(lambda: self._translator.abandon(f"the answer is larger than {limit} bytes"))

    def _turn_complete(self, turn: InnerTurn) -> list[Action]:
        body = b"".join(turn.pieces)
        if turn.mode == "refused":
            return self._translator.turn_refused(turn.status, body, _retry_after(turn.headers))
        actions = self._translator.receive_json(body) if turn.mode == "whole" else []
        return actions + self._translator.turn_ended()

    async def _pass(self, turn: InnerTurn, message: Message, *, last: bool) -> None:
        """Hand on an answer of turn one that is no success, as it is."""
        if last:
            self._watcher.cancel()
        async with self._lock:
            with self._client_may_leave():
                await self._send(message)
        if last:
            turn.over.set()
            self._passed = True
            self._wake.set()

    # -- everybody -----------------------------------------------------------------------------

    async def _perform(self, decide: Callable[[], list[Action]]) -> None:
        """Ask the translator, and do what it says before anybody else may ask."""
        async with self._lock:
            for action in decide():
                match action:
                    case SendFrames(frames):
                        if not self._gone.is_set():
                            self._sent = asyncio.get_running_loop().time()
                            with self._client_may_leave():
                                await self._sink.write(frames)
                    case Run(call):
                        if not self._gone.is_set():
                            self._runner.start(call)
                    case NextTurn():
                        self._next = action
                        self._wake.set()
                    case Finish():
                        self._finish = action
                        self._wake.set()
                    case _:
                        assert_never(action)

    @contextlib.contextmanager
    def _client_may_leave(self) -> Iterator[None]:
        """Servers may raise OSError from a send to a client that has gone."""
        try:
            yield
        except OSError:
            self._leave()

    def _leave(self) -> None:
        self._gone.set()
        self._wake.set()
        self._runner.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._finish is None:
            self._leave()

    async def _tick(self) -> None:
        """Keep the client's connection alive and end what takes too long."""
        settings = self._shared.settings
        clock = asyncio.get_running_loop().time
        while True:
            now = clock()
            if settings.keepalive and now >= self._sent + settings.keepalive:
                self._sent = now
                async with self._lock:
                    with self._client_may_leave():
                        await self._sink.keepalive()
            if now >= self._started + settings.response_timeout:
                await self._perform(lambda: self._translator.abandon("the response took too long"))
                return
            if not self._turn.over.is_set() and now >= self._turn.heard + settings.upstream_idle:
                await self._perform(
                    lambda: self._translator.abandon("the model server was silent for too long")
                )
                return
            due = [self._started + settings.response_timeout, self._turn.heard + settings.upstream_idle]
            if settings.keepalive:
                due.append(self._sent + settings.keepalive)
            await asyncio.sleep(max(0.001, min(moment for moment in due if moment > now) - now))


def _retry_after(headers: Headers) -> float | None:
    value = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    try:
        return max(0.0, float(value))
    except ValueError:
        return None
