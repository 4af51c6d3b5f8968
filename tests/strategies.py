"""What hypothesis draws for the fuzzing of streams: what models do, how servers tell it, how it breaks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from deeds import Did
from hypothesis import strategies as st
from imagecall.events.calls import Limits
from manners import Manner, events_of, frames
from mutations import mutations
from transcript import Event

__all__ = ["PROMPTS", "TOOLS", "Exchange", "exchanges", "manners", "turns"]

PROMPTS = ("a kite", "A  KITE", "the moon", "a “fox” 🦊")

_text = st.text(st.characters(codec="utf-8"), max_size=6)
_pieces = st.lists(_text, min_size=1, max_size=4).map(tuple)

# -- what models do ------------------------------------------------------------------------------

_arguments = st.fixed_dictionaries(
    {"prompt": st.sampled_from(PROMPTS)},
    optional={
        "size": st.sampled_from(["64x32", "auto"]),
        "output_format": st.sampled_from(["png", "jpeg", "auto", None]),
        "quality": st.sampled_from(["low", "auto"]),
        "background": st.sampled_from(["opaque", "sky", None]),
        "num_last_images_to_include": st.sampled_from([None, 0, 1, 9, "x"]),
        "seed": st.integers(0, 3),
    },
).map(json.dumps)
_wrong_arguments = st.sampled_from(
    ['{"prompt": "a ki', "{}", "", " ", "null", "[]", '"x"', '{"prompt": ""}', '{"prompt": 7}', "}{"]
)
_trailing = st.sampled_from(["", "", "", "<|call|>", " then"])


@st.composite
def _calls(draw: st.DrawFn, words: st.SearchStrategy[str], name: str, kind: Any = "function_call") -> Did:
    whole = draw(words)
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=3)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    return Did(kind, tuple(pieces), name)


def _spoken(*kinds: Any) -> st.SearchStrategy[Did]:
    return st.builds(Did, st.sampled_from(kinds), _pieces)


_ours = st.builds(
    lambda made, behind, name: Did(made.kind, (*made.pieces, behind), name),
    _calls(_arguments, ""),
    _trailing,
    st.sampled_from(["image_generation", "functions.image_generation", "image_generation<|channel|>json"]),
)
_deeds = st.one_of(
    _spoken("message", "reasoning", "thought"),
    _spoken("message", "refusal", "reasoning", "thought"),
    _ours,
    _ours,
    _calls(_wrong_arguments, "image_generation"),
    _calls(st.sampled_from(['{"city":"Oslo"}', "{}"]), "weather"),
    _calls(st.sampled_from(["ls", "a b\n"]), "shell", "custom_tool_call"),
)
turns = st.lists(_deeds, max_size=4).map(tuple)

# -- how servers tell it -------------------------------------------------------------------------

_kinds = st.frozensets(st.sampled_from(["message", "reasoning", "function_call"]), max_size=2)
_never = st.just(frozenset[str]())
_lacking = st.frozensets(
    st.sampled_from(
        ["part.added", "part.done", "text.done", "refusal.done", "arguments.done", "input.done", "item.done"]
    ),
    max_size=3,
)
manners = st.builds(
    Manner,
    named=st.booleans(),
    writing=st.sampled_from(["spaced", "compact", "escaped"]),
    newline=st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    between=st.sampled_from(["", "", ": ping\n\n", "id: 7\n", "\n", "retry: 3\n", "data: 7\n\n"]),
    sentinel=st.booleans(),
    opening=st.sampled_from([("created", "in_progress"), ("created",), (), ("queued", "in_progress")]),
    bare=st.booleans(),
    numbers=st.sampled_from(["right", "right", "none", "frozen", "downwards"]),
    places=st.sampled_from(["right", "right", "none", "zero", "from one", "gaps", "late", "negative"]),
    parts=st.booleans(),
    ids=st.sampled_from(["right", "right", "none", "rotating", "final", "between"]),
    call_ids=st.sampled_from(["same", "other"]),
    unannounced=_never | _kinds,
    whole=_never | _kinds,
    deltas=st.sampled_from(["pieces", "pieces", "one", "none"]),
    silent=_never | _never | _kinds,
    lacking=_never | _lacking,
    endless=_never | _kinds,
    closing=st.sampled_from(["at once", "together", "calls first", "backwards", "last"]),
    final=st.sampled_from(["right", "right", "empty", "absent", "calls first", "without messages"]),
    unfinished=st.booleans(),
    extra=st.sampled_from([{}, {"obfuscation": "x"}, {"model": "m", "response_id": "r"}]),
    item_extra=st.sampled_from([{}, {"namespace": None, "phase": "commentary"}]),
    end_extra=st.sampled_from([{}, {"timings": {"ms": 1}}]),
    terminal=st.sampled_from(
        [{}, {"usage": {"input_tokens": 3, "output_tokens": 4}}, {"usage": None, "store": True, "id": None}]
    ),
)

# -- whole exchanges -----------------------------------------------------------------------------


TOOLS: list[Event] = [
    {"type": "image_generation"},
    {"type": "function", "name": "weather", "parameters": {}},
    {"type": "custom", "name": "shell"},
]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A client's request, the turns of its model server, one of which may be broken, and an order of events.

    Attributes:
        request: the client's.
        told: the turns as lists of frames; in all further ones the model says a word.
        limits: of the translator.
        seed: decides in which order things happen, and how bytes are cut.
    """

    request: Event
    told: list[list[bytes]]
    limits: Limits = field(default_factory=Limits)
    seed: int = 0


_limits = st.builds(
    Limits,
    max_images=st.sampled_from([10, 10, 2, 0]),
    max_turns=st.sampled_from([8, 2, 1]),
    max_prompt=st.sampled_from([32_000, 7]),
    max_arguments=st.sampled_from([1 << 18, 400]),
    max_event=st.sampled_from([1 << 28, 1 << 28, 4_000]),
)
_endings = st.sampled_from(["completed"] * 8 + ["incomplete", "failed"])


@st.composite
def exchanges(draw: st.DrawFn, broken: bool = False, cut: bool = False) -> Exchange:
    """Draw an exchange; in a broken one something is wrong with one turn, in a cut one its end is missing."""
    hosted = {
        "type": "image_generation",
        **draw(st.sampled_from([{}, {"partial_images": 2}, {"size": "48x48"}])),
    }
    request: Event = {"model": "m", "input": "Draw.", "stream": True}
    request["tools"] = [hosted, *TOOLS[1:]]
    request |= draw(
        st.sampled_from(
            [
                {},
                {},
                {"max_tool_calls": 1},
                {"tool_choice": "required"},
                {"text": {"format": {"type": "json_object"}}},
            ]
        )
    )
    deeds = draw(st.lists(turns, min_size=1, max_size=3))
    manner = draw(manners)
    told = [
        frames(
            events_of(
                did,
                manner,
                turn=number,
                order=draw(st.lists(st.integers(0, 5), max_size=12)),
                ending=draw(_endings),
            ),
            manner,
        )
        for number, did in enumerate(deeds, 1)
    ]
    if cut:
        body = b"".join(told[-1])
        told[-1] = [body[: draw(st.integers(0, len(body)))]]
    if broken:
        place = draw(st.integers(0, len(told) - 1))
        for mutation in draw(mutations):
            told[place] = mutation(told[place])
    return Exchange(request, told, draw(_limits), draw(st.integers(0, 1 << 32)))
