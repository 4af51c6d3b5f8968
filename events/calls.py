"""The calls of our tool in one response: which of them run, how each ended, what the model is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import LocalProtocolError
from .lowering import LoweredRequest
from .pictures import Picture
from .response import Slot
from .sse import MAX_EVENT
from .state import CallState
from .tools.base import HostedTool, ToolArgumentError, ToolError, ToolOutcome
from .turn import MAX_ARGUMENTS
from .turn_events import TurnItem
from .wire import dumps

__all__ = ["AS_TEXT", "Call", "Calls", "Limits", "written_call"]

AS_TEXT = (
    "the model wrote a tool call as text; start the model server with its tool-call parser "
    "(vLLM: --enable-auto-tool-choice --tool-call-parser …, llama.cpp: --jinja)"
)

_PATIENCE = 2
"""Turns in a row that only repeat earlier calls before the model may call no more."""

_TOO_MANY = '{"status": "not run", "note": "No more pictures can be made in this response. Answer the user."}'


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of everything one response may have.

    Attributes:
        max_event: bytes of one upstream event.
        max_arguments: characters of one call's arguments.
        max_prompt: characters of one prompt; OpenAI's own limit.
        max_images: pictures; a model that runs wild must not fill a disk or empty a purse.
        max_turns: requests to the model server, before a last one that may call nothing.
    """

    max_event: int = MAX_EVENT
    max_arguments: int = MAX_ARGUMENTS
    max_prompt: int = 32_000
    max_images: int = 10
    max_turns: int = 8


@dataclass(slots=True, eq=False)
class Call:
    """One call.

    Attributes:
        id: the item's id for the client.
        admitted: whether it may run; the client is told of no other.
        given: the model's own arguments, repaired.
        arguments: those merged with the declaration; empty while they are not good.
        final: the finished item without its `result`; `data` is that result, bare base64.
        told: what the model hears of it in the next turn.
        key: what makes two calls equal.
        repeated: it equals a call of an earlier turn, and has that call's outcome.
    """

    id: str
    item: TurnItem
    admitted: bool
    state: CallState = CallState.NAMED
    slot: Slot | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    final: dict[str, Any] = field(default_factory=dict)
    data: bytes = b""
    told: str = _TOO_MANY
    key: bytes = b""
    repeated: bool = False
    previews: int = 0


class Calls:
    """All calls of one response.

    Args:
        lowered: the request; its tool is the one that is called.
        limits: how many and how long they may be.
        strict: unknown arguments are an error for the model.

    Attributes:
        tool: the tool.
        offered: whether the model may call in the current turn.
        of_turn: the current turn's calls, those that are not run included.
        running: calls whose tool is at work, by id.
    """

    def __init__(self, lowered: LoweredRequest, limits: Limits, *, strict: bool) -> None:
        if lowered.tool is None:
            raise LocalProtocolError("a request without the tool needs no translation")
        self.tool: HostedTool = lowered.tool
        self.offered = lowered.offered
        self.of_turn: list[Call] = []
        self.running: dict[str, Call] = {}
        self._strict = strict
        self._max_prompt = limits.max_prompt
        wanted = lowered.max_tool_calls
        self._left = limits.max_images if wanted is None else min(limits.max_images, wanted)
        self._outcomes: dict[bytes, ToolOutcome] = {}
        self._earlier: dict[bytes, ToolOutcome] = {}
        self._made: list[Picture] = []
        self._patience = _PATIENCE

    @property
    def to_be_told(self) -> bool:
        """Whether the model has called in this turn and may go on once it hears how that ended."""
        return self.offered and bool(self.of_turn)

    def admit(self, item: TurnItem, new_id: Callable[[str], str]) -> Call:
        """Take a call that the model has begun, and decide whether it may run."""
        admitted = self.offered and self._left > 0
        self._left -= admitted
        call = Call(new_id(self.tool.id_prefix) if admitted else "", item, admitted)
        self.of_turn.append(call)
        return call

    def settle(self, call: Call, given: Mapping[str, Any] | None, problem: str) -> ToolOutcome | None:
        """Check a call's arguments; return its outcome if it need not or cannot run."""
        call.given = given or {}
        if not call.admitted:
            return None
        if given is None:
            error = ToolError(problem, code="invalid_arguments", type="image_generation_user_error")
            return ToolOutcome(error=error)
        call.key = _key(given)
        refusal = None
        try:
            call.arguments = self.tool.arguments(
                given, strict=self._strict, max_prompt=self._max_prompt, made=self._made
            )
            call.key = _key(call.arguments)
        except ToolArgumentError as refused:
            refusal = ToolOutcome(error=refused.error)
        earlier = self._earlier.get(call.key)
        call.repeated = earlier is not None
        return refusal or earlier

    def conclude(self, call: Call, outcome: ToolOutcome) -> None:
        """Note how a call ended."""
        self.running.pop(call.id, None)
        self._outcomes[call.key] = outcome
        call.final = self.tool.finished(call.id, call.arguments or call.given, outcome)
        call.data = outcome.data
        call.told = self.tool.feedback(call.final, outcome.path)

    def cut_off(self) -> ToolOutcome:
        """Return the outcome of a call that ends because the response does."""
        return ToolOutcome(
            error=ToolError("The response ended before the picture was finished.", "cancelled")
        )

    def next_turn(self, *, last: bool) -> bool:
        """Begin the next turn's calls; return whether the model may call nothing in it."""
        stuck = all(call.repeated or not call.admitted for call in self.of_turn)
        self._patience = self._patience - 1 if stuck else _PATIENCE
        self._earlier |= self._outcomes
        self._outcomes = {}
        # Pictures of this turn count from the next one on: the model had not heard of them when it
        # called, and which is finished first is chance.
        self._made += [Picture(call.id, data=call.data) for call in self.of_turn if call.data]
        self.of_turn = []
        self.offered = not last and self._patience > 0
        return not self.offered


def written_call(item: TurnItem, name: str | None) -> bool:
    """Tell whether a message holds a call in words, as it does where a server's tool-call parser is off.

    It stays text: a user may well have asked what such a call looks like.
    """
    if item.kind != "message" or name is None:
        return False
    text = item.text
    return f'"{name}"' in text and '"arguments"' in text


def _key(arguments: Mapping[str, Any]) -> bytes:
    """Make equal what only letter case and spacing tell apart: models that repeat themselves vary these.

    Which pictures an edit starts from counts, not how they were named: the same words over a newer
    picture are another call. The mask is the client's, the same for all calls.
    """
    same = {key: value for key, value in arguments.items() if key != "mask"}
    if isinstance(prompt := arguments.get("prompt"), str):
        same["prompt"] = " ".join(prompt.split()).casefold()
    if isinstance(images := arguments.get("images"), tuple):
        # A picture without any name is the user's own; their number tells which ones are meant.
        same["images"] = [(picture.id, picture.url, picture.path) for picture in images]
    return dumps(dict(sorted(same.items())))
