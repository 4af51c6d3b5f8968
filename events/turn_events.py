"""What `Turn` tells the translator: one upstream stream without its quirks.

The grammar is strict: `Started` once, first; for each item one `Opened`, then `Delta`s, then one
`Closed` (a call of a hosted tool has one `CallSettled` instead of both of these); `TurnEnded` once,
last, when every item is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .wire import Family

__all__ = [
    "CallSettled",
    "Closed",
    "Delta",
    "Loose",
    "Opened",
    "Part",
    "Source",
    "Started",
    "TurnEnded",
    "TurnEvent",
    "TurnItem",
]

Source = tuple[dict[str, Any], bytes]
"""A server's event and its canonical frame, which may be handed on if nothing in it changes."""


@dataclass(slots=True, eq=False)
class Part:
    """One text of an item, and how much of its life the client has been shown.

    `index` is the client's, `place` the server's own.
    """

    family: Family
    index: int
    place: int
    announced: bool = False
    pieces: list[str] = field(default_factory=list)
    done: bool = False
    closed: bool = False

    @property
    def text(self) -> str:
        """All that was streamed."""
        return "".join(self.pieces)


@dataclass(slots=True, eq=False)
class TurnItem:
    """One output item of one turn, known by its identity, whatever its server calls it from event to event.

    Attributes:
        kind: the item's `type`.
        id: the first id the server gave it, if any.
        key: the server's own `output_index`, which may collide or be absent.
        call_id: the first call id the server gave it.
        name: a call's function name; None as long as nobody has said it.
        hosted: whether it is a call of our tool.
        implicit: it was never announced; its content announced it.
        body: its final shape, as the server sent it, repaired.
        twin: a closed item of the same id, of which this one may be a mere repetition.
        arguments: the pieces of the one string that calls stream: arguments, input, code.
        held: events kept back until the item is known to be real; None once it is.
        parts: its texts by the name of their index and the index that the client knows.
        places: the same by the index that the server uses.
        other_parts: the indexes of the parts of unknown types.
        previews: how many there were of a native picture; `completed` is its last step, which is held back.
        slot: the translator's own mark; `Turn` never looks at it.
    """

    kind: str
    id: str | None = None
    key: object = None
    call_id: str | None = None
    name: str | None = None
    hosted: bool = False
    implicit: bool = False
    body: dict[str, Any] = field(default_factory=dict)
    twin: TurnItem | None = None
    held: list[TurnEvent] | None = None
    parts: dict[tuple[str, int], Part] = field(default_factory=dict)
    places: dict[tuple[str, int], Part] = field(default_factory=dict)
    other_parts: list[int] = field(default_factory=list)
    last_part: Part | None = None
    arguments: list[str] = field(default_factory=list)
    arguments_size: int = 0
    arguments_done: bool = False
    settled: bool = False
    closed: bool = False
    seen: set[str] = field(default_factory=set)
    previews: int = 0
    completed: tuple[dict[str, Any], bytes | None] | None = None
    slot: Any = None

    @property
    def text(self) -> str:
        """All text that was streamed, of all parts."""
        return "".join(part.text for part in self.parts.values())


@dataclass(slots=True, eq=False)
class Started:
    """The turn has begun; `response` is the server's first response object, perhaps bare or empty."""

    response: dict[str, Any]


@dataclass(slots=True, eq=False)
class Opened:
    """An item begins."""

    item: TurnItem
    body: dict[str, Any]
    source: Source | None = None


@dataclass(slots=True, eq=False)
class Delta:
    """An event about an open item, with all keys that the SDKs demand but ids and numbers.

    `raw` is the server's own frame if it is canonical and its payload unchanged.
    """

    item: TurnItem
    payload: dict[str, Any]
    raw: bytes | None = None


@dataclass(slots=True, eq=False)
class Loose:
    """A known event that belongs to no item."""

    payload: dict[str, Any]
    raw: bytes | None = None


@dataclass(slots=True, eq=False)
class CallSettled:
    """A hosted call's arguments are final: an object, or None and the problem in words for the model."""

    item: TurnItem
    arguments: dict[str, Any] | None
    problem: str = ""


@dataclass(slots=True, eq=False)
class Closed:
    """An item is final, in `body`."""

    item: TurnItem
    body: dict[str, Any]
    source: Source | None = None


@dataclass(slots=True, eq=False)
class TurnEnded:
    """The turn is over.

    Attributes:
        status: `completed`, `incomplete` or `failed`: the response's own word, not the event's name.
        response: the server's last response object; empty when the stream was cut.
        extra: what stood beside `response` in the event.
        reason: for the log: why it failed, in words of ours.
        words: the server's own words, which may repeat the prompt.
        code: the server's own error code, if it gave one.
        broken: the stream makes no sense any more; nothing that follows is worth waiting for.
        told: what the client may be told: which limit was met; else it hears a neutral sentence.
    """

    status: str
    response: dict[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    code: str = "server_error"
    broken: bool = False
    words: str = ""
    told: str = ""


TurnEvent = Started | Opened | Delta | Loose | CallSettled | Closed | TurnEnded
