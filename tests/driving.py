"""Drives one exchange through the translator without any I/O: actions are performed in order, at once."""

from __future__ import annotations

import base64
import io
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from imagecall.events.actions import Action, Finish, KeepPicture, KeepResponse, NextTurn, Run, Send
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions, lower_request
from imagecall.events.tools.base import ToolCall, ToolError, ToolOutcome, ToolProgress
from imagecall.events.translator import Translator
from PIL import Image

__all__ = ["NOW", "Driven", "JsonAnswer", "Refusal", "bytewise", "drive", "fail", "paint", "preview", "whole"]

NOW = 1_800_000_000.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A turn that the model server answers with an HTTP error instead of a stream."""

    status: int
    body: bytes = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """A turn that the model server answers with a JSON body instead of a stream."""

    body: bytes


Turn = bytes | Refusal | JsonAnswer


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of an exchange.

    Attributes:
        body: everything that the client was sent.
        sends: the same, one element for each `Send`.
        asked: the bodies that the model server was sent, turn by turn, the lowered request first.
        delays: the seconds to wait before each further turn.
        runs: the calls that were run, in order.
        kept: the pictures and the response that were to be kept, in order.
        finish: the last action; None when the exchange hangs.
    """

    body: bytes
    sends: list[bytes]
    asked: list[Mapping[str, Any]]
    delays: list[float]
    runs: list[ToolCall]
    kept: list[KeepPicture | KeepResponse]
    finish: Finish | None

    @property
    def response(self) -> KeepResponse:
        """The response that was to be kept."""
        last = self.kept[-1]
        assert isinstance(last, KeepResponse)
        return last


def whole(body: bytes) -> Iterable[bytes]:
    """Deliver a turn in one chunk."""
    return [body]


def bytewise(body: bytes) -> Iterable[bytes]:
    """Deliver a turn byte by byte."""
    return (body[i : i + 1] for i in range(len(body)))


def paint(call: ToolCall) -> ToolOutcome:
    """Paint a real picture of one colour, in the size and format that the call asks for."""
    data, facts = _picture(call.arguments, str(call.arguments["prompt"]))
    return ToolOutcome(data=data, facts=facts)


def preview(call: ToolCall, count: int) -> list[ToolProgress]:
    """Paint `count` previews of a call's picture, each different from it and from each other."""
    pictures = (_picture(call.arguments, f"{call.arguments['prompt']} {number}") for number in range(count))
    return [ToolProgress(data=data, facts=facts) for data, facts in pictures]


def fail(call: ToolCall) -> ToolOutcome:
    """Refuse to paint."""
    return ToolOutcome(error=ToolError("The image server is out of paint."))


def no_preview(call: ToolCall) -> list[ToolProgress]:
    """Show nothing before the picture is finished."""
    return []


def _picture(arguments: Mapping[str, Any], seed: str) -> tuple[bytes, dict[str, Any]]:
    size = str(arguments.get("size", "auto"))
    width, height = (48, 32) if size == "auto" else map(int, size.split("x"))
    output_format = str(arguments.get("output_format", "png"))
    colour = zlib.crc32(seed.encode()).to_bytes(4, "big")[:3]
    file = io.BytesIO()
    Image.new("RGB", (width, height), tuple(colour)).save(file, output_format)
    facts = {"size": f"{width}x{height}", "output_format": output_format, "background": "opaque"}
    return base64.b64encode(file.getvalue()), facts


@dataclass(slots=True)
class _Drive:
    translator: Translator
    outcome: Callable[[ToolCall], ToolOutcome]
    partials: Callable[[ToolCall], Sequence[ToolProgress]]
    at_once: bool
    sends: list[bytes] = field(default_factory=list)
    runs: list[ToolCall] = field(default_factory=list)
    waiting: deque[ToolCall] = field(default_factory=deque)
    kept: list[KeepPicture | KeepResponse] = field(default_factory=list)
    next: NextTurn | None = None
    finish: Finish | None = None

    def perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            assert self.finish is None, f"{action} comes after Finish"
            match action:
                case Send(frames):
                    assert frames, "an empty Send"
                    self.sends.append(frames)
                case KeepPicture(item):
                    shown = f'"type":"response.image_generation_call.completed","item_id":"{item["id"]}"'
                    assert not any(shown.encode() in sent for sent in self.sends), (
                        "it was shown before it was kept"
                    )
                    self.kept.append(action)
                case KeepResponse():
                    assert not self.kept or isinstance(self.kept[-1], KeepPicture), "two responses"
                    assert not any(b"event: response.completed" in sent for sent in self.sends)
                    self.kept.append(action)
                case Run(call):
                    self.runs.append(call)
                    self.waiting.append(call)
                case NextTurn():
                    assert self.next is None, "two NextTurns at a time"
                    self.next = action
                case Finish():
                    self.finish = action
        if self.at_once:
            self.work()

    def work(self) -> None:
        """Run the calls that wait, first come first served."""
        while self.waiting and self.finish is None:
            call = self.waiting.popleft()
            for progress in self.partials(call):
                self.perform(self.translator.tool_progress(call.id, progress))
            self.perform(self.translator.tool_finished(call.id, self.outcome(call)))

    def turn(self, turn: Turn, split: Callable[[bytes], Iterable[bytes]]) -> None:
        match turn:
            case Refusal(status, body, retry_after):
                self.perform(self.translator.turn_refused(status, body, retry_after))
            case JsonAnswer(body):
                self.perform(self.translator.receive_json(body))
            case _:
                for chunk in split(turn):
                    if self.finish is not None:
                        return
                    self.perform(self.translator.receive(chunk))
        if self.finish is None and not isinstance(turn, Refusal):
            self.perform(self.translator.turn_ended())
        self.work()


def drive(
    request: Mapping[str, Any],
    turns: Sequence[Turn],
    *,
    outcome: Callable[[ToolCall], ToolOutcome] = paint,
    partials: Callable[[ToolCall], Sequence[ToolProgress]] = no_preview,
    split: Callable[[bytes], Iterable[bytes]] = whole,
    at_once: bool = False,
    known: Known | None = None,
    options: LoweringOptions | None = None,
    limits: Any = None,
    rest: Turn | None = None,
) -> Driven:
    """Drive one exchange to its end.

    Args:
        request: the client's request, as parsed JSON.
        turns: what the model server answers, turn by turn; it must be asked exactly so often.
        outcome: how a call ends.
        partials: what a call shows before it ends.
        split: how a turn's bytes are cut into chunks.
        at_once: let a call end as soon as it is run; else calls end when their turn has ended, so
            that what the client gets does not depend on the chunks.
        known: what the store holds for the request.
        options: how to lower the request.
        limits: the translator's limits.
        rest: what the model server answers to every turn after those, however many there are.
    """
    lowered = lower_request(request, known or Known(), options or LoweringOptions())
    assert lowered is not None, "the request does not concern the product"
    ids: Counter[str] = Counter()

    def new_id(prefix: str) -> str:
        ids[prefix] += 1
        return f"{prefix}_{ids[prefix]}"

    limited = {} if limits is None else {"limits": limits}
    translator = Translator(lowered, new_id=new_id, now=lambda: NOW, **limited)
    state = _Drive(translator, outcome, partials, at_once)
    asked: list[Mapping[str, Any]] = [lowered.body]
    delays: list[float] = []
    prepared = deque(turns)
    while True:
        turn = prepared.popleft() if prepared else rest
        assert turn is not None, f"turn {len(asked)} was asked for, but not prepared"
        state.turn(turn, split)
        if state.next is None:
            break
        asked.append(state.next.body)
        delays.append(state.next.delay)
        state.next = None
    assert not prepared, f"turn {len(asked)} was the last one, {len(prepared)} more are prepared"
    return Driven(b"".join(state.sends), state.sends, asked, delays, state.runs, state.kept, state.finish)
