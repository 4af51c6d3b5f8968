"""Plays an exchange in an order drawn at random: bytes, previews, pictures and all that may come between.

Whatever happens, what is done is checked on the way: nothing comes after the end, no call runs before
its arguments can be complete, and nobody waits for something that never happens.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deeds import said
from driving import NOW, fail, paint, preview
from imagecall.events.actions import Action, Finish, KeepPicture, KeepResponse, NextTurn, Run, Send
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions, lower_request
from imagecall.events.tools.base import ToolCall, ToolOutcome, ToolProgress
from imagecall.events.translator import Translator
from manners import tell
from strategies import Exchange

__all__ = ["Played", "play"]

_ENDS = (b"arguments.done", b"output_item.done", b"response.completed")
"""One of these is in what was heard of a turn before a call of it may run."""

_TROUBLES = ("cancel", "abandon", "refuse 400", "refuse 429", "refuse 500")


@dataclass(slots=True)
class Played:
    """What came of an exchange."""

    body: bytes = b""
    runs: list[ToolCall] = field(default_factory=list)
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    kept: list[KeepPicture | KeepResponse] = field(default_factory=list)
    finish: Finish | None = None
    cancelled: bool = False


class _Game:
    def __init__(self, exchange: Exchange, *, stream: bool, trouble: bool, calm: bool, whole: bool) -> None:
        lowered = lower_request({**exchange.request, "stream": stream}, Known(), LoweringOptions())
        assert lowered is not None
        ids = Counter[str]()

        def new_id(prefix: str) -> str:
            ids[prefix] += 1
            return f"{prefix}_{ids[prefix]}"

        self.translator = Translator(lowered, new_id=new_id, now=lambda: NOW, limits=exchange.limits)
        self.played = Played(asked=[lowered.body])
        self._exchange = exchange
        self._numbers = random.Random(exchange.seed)
        self._cuts = random.Random(exchange.seed)
        self._trouble = self._numbers.choice(_TROUBLES) if trouble else ""
        self._trouble_at = self._numbers.randrange(60)
        self._calm = calm
        self._whole = whole
        self._chunks: deque[bytes] = deque()
        self._heard = b""
        self._open = False
        self._turn = 0
        self._working: dict[str, tuple[ToolCall, deque[ToolProgress]]] = {}
        self._next = False
        self._begin()

    def _begin(self) -> None:
        told = self._exchange.told
        body = (
            b"".join(told[self._turn])
            if self._turn < len(told)
            else tell((said("So."),), turn=self._turn + 1)
        )
        self._turn += 1
        self._chunks = deque([body] if self._whole else self._cut(body))
        self._heard = b""
        self._open = True
        self._next = False

    def _cut(self, body: bytes) -> Iterable[bytes]:
        count = self._cuts.choice((0, 1, 6, 40))
        places = sorted(self._cuts.randrange(len(body) + 1) for _ in range(count))
        return (body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True))

    def perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            assert self.played.finish is None, f"{type(action).__name__} comes after Finish"
            match action:
                case Send(frames):
                    assert frames, "an empty Send"
                    self.played.body += frames
                case Run(call):
                    assert any(end in self._heard for end in _ENDS), (
                        "a call runs before its arguments can be complete"
                    )
                    self.played.runs.append(call)
                    self._working[call.id] = call, deque(preview(call, 3))
                case NextTurn(body):
                    assert not self._open, "the next turn begins before the last one has ended"
                    assert not self._working, "the next turn begins while a picture is being made"
                    assert not self._next, "two turns at a time"
                    self.played.asked.append(body)
                    self._next = True
                case KeepPicture() | KeepResponse():
                    self.played.kept.append(action)
                case Finish():
                    self.played.finish = action

    def step(self) -> None:
        """Let one thing happen."""
        numbers = self._numbers
        if self._trouble and self._trouble_at == 0 and self._stir():
            return
        self._trouble_at -= 1
        if self._next:
            self._begin()
        choices = ["chunk" if self._chunks else "end"] if self._open else []
        choices += ["preview"] if any(left for _, left in self._working.values()) else []
        choices += ["result"] if self._working else []
        assert choices, "the exchange hangs"
        match choices[0] if self._calm else numbers.choice(choices):
            case "chunk":
                chunk = self._chunks.popleft()
                self._heard += chunk
                self.perform(self.translator.receive(chunk))
            case "end":
                self._open = False
                self.perform(self.translator.turn_ended())
            case "preview":
                call, left = next(pair for pair in self._working.values() if pair[1])
                self.perform(self.translator.tool_progress(call.id, left.popleft()))
            case _:
                call, _ = self._working.pop(self._anyone())
                self.perform(self.translator.tool_finished(call.id, self._outcome(call)))
                self.nothing_more(call.id)

    def _anyone(self) -> str:
        return next(iter(self._working)) if self._calm else self._numbers.choice(list(self._working))

    def _outcome(self, call: ToolCall) -> ToolOutcome:
        return fail(call) if self._numbers.random() < 0.2 else paint(call)

    def _stir(self) -> bool:
        """Make trouble, if it can be made now."""
        match self._trouble.split():
            case ["cancel"]:
                self.played.cancelled = True
                self.perform(self.translator.cancel())
            case ["abandon"]:
                self.perform(self.translator.abandon("a test wants it"))
            case [_, status]:
                if not self._next:
                    return False
                self._next = False
                self.perform(self.translator.turn_refused(int(status), b"no", 3.0))
        self._trouble = ""
        return True

    def nothing_more(self, call_id: str) -> None:
        """A call that has ended is not heard any more, nor is anyone that never was."""
        picture = ToolProgress(b"eA==", {})
        for identifier in (call_id, "ig_99"):
            assert self.translator.tool_progress(identifier, picture) == []
            assert self.translator.tool_finished(identifier, ToolOutcome(b"eA==")) == []

    def end(self) -> None:
        """After the end nothing that happens means anything."""
        translator = self.translator
        for chunk in (*self._chunks, b"data: [DONE]\n\n"):
            assert translator.receive(chunk) == []
            assert translator.reading.lane is None
        assert translator.turn_ended() == []
        assert translator.receive_json(b"{}") == []
        assert translator.turn_refused(500) == []
        assert translator.abandon("too late") == []
        assert translator.cancel() == []
        for call_id in (*self._working, "ig_1"):
            self.nothing_more(call_id)


def play(
    exchange: Exchange, *, stream: bool = True, trouble: bool = False, calm: bool = False, whole: bool = False
) -> Played:
    """Play an exchange to its end.

    Args:
        exchange: the exchange; its seed decides everything.
        stream: whether the client asks for a stream.
        trouble: whether somebody cancels, or the model server refuses a turn.
        calm: pictures are made one by one after each turn, so that nothing depends on how bytes are cut.
        whole: each turn comes in one chunk.
    """
    game = _Game(exchange, stream=stream, trouble=trouble, calm=calm, whole=whole)
    for _ in range(5_000):
        game.step()
        if game.played.finish is not None:
            game.end()
            return game.played
    raise AssertionError("the exchange never ends")
