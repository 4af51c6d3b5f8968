"""The manner in which a model server tells a turn: one row of knobs for each column of its quirks.

`tell` makes a turn's bytes of what the model did (`Did`), first as a well-behaved server tells it, then
as a `Manner` has it. `dialects.py` has the manners of real servers; the fuzzing mixes knobs at will.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from deeds import Did, life
from transcript import Event, event, number

__all__ = ["WELL", "Manner", "events_of", "frames", "tell"]

Rewrite = Callable[[list[Event]], list[Event]]


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server puts it.

    Attributes:
        named: whether frames have an `event:` line.
        writing: JSON is `spaced`, `compact`, or spaced and in ASCII, all else `escaped`.
        newline: what ends a line.
        between: bytes before each frame: comments, empty lines.
        sentinel: whether `[DONE]` comes last.
        opening: the lifecycle events before the first item.
        bare: the first response object holds its id and status alone.
        numbers: sequence_number is `right`, `none`, `frozen` at 0, or runs `downwards` below zero.
        places: output_index is `right`, `none`, always `zero`, runs `from one`, has `gaps`, is right in the
            item's end alone and zero before (`late`), or is -1 before the item's end (`negative`).
        parts: whether texts' events say their content_index.
        ids: item ids are `right`, `none`, another in each event (`rotating`), others in the final output
            (`final`) or in the events between an item's beginning and end (`between`).
        call_ids: call ids in the final output are the `same` or `other` ones.
        announced: whether `output_item.added` is sent for a kind of item; all kinds not in the set.
        whole: kinds that are announced with everything in them, and as completed.
        deltas: arguments come in `pieces`, in `one`, or in `none`.
        silent: kinds of which no event but the final response tells.
        lacking: the endings of the types of events that are left out.
        endless: kinds whose items never end, texts included.
        closing: items end `at once`, or all `together` behind the last one's content, in their order,
            `calls first`, or `backwards`; `last` ends only the one that began last.
        final: the final output is `right`, `empty`, `absent`, `calls first`, or `without messages`.
        unfinished: items of the final output say `in_progress`.
        extra: fields of every event.
        item_extra: fields of every item.
        end_extra: fields beside the final `response`.
        terminal: fields of the final response.
        rewrite: the last word on the events, before they are numbered.
    """

    named: bool = True
    writing: Literal["spaced", "compact", "escaped"] = "spaced"
    newline: str = "\n"
    between: str = ""
    sentinel: bool = False
    opening: tuple[str, ...] = ("created", "in_progress")
    bare: bool = False
    numbers: Literal["right", "none", "frozen", "downwards"] = "right"
    places: Literal["right", "none", "zero", "from one", "gaps", "late", "negative"] = "right"
    parts: bool = True
    ids: Literal["right", "none", "rotating", "final", "between"] = "right"
    call_ids: Literal["same", "other"] = "same"
    unannounced: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    deltas: Literal["pieces", "one", "none"] = "pieces"
    silent: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()
    endless: frozenset[str] = frozenset()
    closing: Literal["at once", "together", "calls first", "backwards", "last"] = "at once"
    final: Literal["right", "empty", "absent", "calls first", "without messages"] = "right"
    unfinished: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    item_extra: Mapping[str, Any] = field(default_factory=dict)
    end_extra: Mapping[str, Any] = field(default_factory=dict)
    terminal: Mapping[str, Any] = field(default_factory=dict)
    rewrite: Rewrite | None = None


WELL = Manner()
"""How OpenAI's own server does."""


def tell(
    deeds: Sequence[Did],
    manner: Manner = WELL,
    *,
    turn: int = 1,
    order: Sequence[int] = (),
    ending: str = "completed",
    **fields: Any,
) -> bytes:
    """Tell a whole turn.

    Args:
        deeds: what the model did.
        manner: how to put it.
        turn: its number, which makes its ids unlike those of others.
        order: mixes the items' events: each number, modulo those that have something left, takes the
            next event of one item. Without it the manner's `closing` decides.
        ending: the terminal event's name.
        fields: those of the final response.
    """
    return b"".join(frames(events_of(deeds, manner, turn=turn, order=order, ending=ending, **fields), manner))


def events_of(
    deeds: Sequence[Did],
    manner: Manner = WELL,
    *,
    turn: int = 1,
    order: Sequence[int] = (),
    ending: str = "completed",
    **fields: Any,
) -> list[Event]:
    """Make the turn's events, numbered."""
    lives = [life(deed, index, turn) for index, deed in enumerate(deeds)]
    items = [lived[-1]["item"] for lived in lives]
    told = [_put(lived, manner) for lived in lives]
    middle = _mixed(told, order) if order else _in_turn(told, manner.closing)
    start = {"id": f"resp_{turn}", "object": "response", "created_at": 1_790_000_000, "model": "m"}
    first = {**({"id": start["id"]} if manner.bare else start), "status": "in_progress"}
    output = {} if manner.final == "absent" else {"output": _output(items, manner)}
    end = {**start, "status": ending, **output, **manner.terminal, **fields}
    events = [
        *(event(name, response=dict(first)) for name in manner.opening),
        *middle,
        {**event(ending, response=end), **manner.end_extra},
    ]
    if manner.rewrite is not None:
        events = manner.rewrite(events)
    events = [{**one, **manner.extra} for one in events]
    return _numbered(events, manner.numbers)


def frames(events: Iterable[Event], manner: Manner = WELL) -> list[bytes]:
    """Write events as the manner's frames, `[DONE]` included."""
    end = manner.newline
    separators = (",", ":") if manner.writing == "compact" else None
    written = []
    for one in events:
        name = f"event: {one['type']}{end}" if manner.named and "type" in one else ""
        data = json.dumps(one, ensure_ascii=manner.writing == "escaped", separators=separators)
        written.append(f"{manner.between}{name}data: {data}{end}{end}".encode())
    return [*written, f"data: [DONE]{end}{end}".encode()] if manner.sentinel else written


def _put(life: list[Event], manner: Manner) -> list[Event]:
    """Tell one item in a server's manner."""
    item = life[-1]["item"]
    kind = item["type"]
    if kind in manner.silent:
        return []
    put = []
    last = len(life) - 1
    for step, one in enumerate(life):
        name = one["type"]
        if (step == 0 and kind in manner.unannounced) or name.endswith(tuple(manner.lacking)):
            continue
        if _is_end(one) and kind in manner.endless:
            continue
        changed: Event = {}
        if name.endswith("arguments.delta") and manner.deltas != "pieces":
            if manner.deltas == "none" or life[step - 1]["type"] == name:
                continue
            changed["delta"] = item["arguments"]
        if step == 0 and kind in manner.whole:
            changed["item"] = item
        put.append(_placed({**one, **changed}, step, last, manner))
    return put


def _placed(one: Event, step: int, last: int, manner: Manner) -> Event:
    """Give an event the place and the ids that the manner knows."""
    one = dict(one)
    index = one.pop("output_index")
    indexes = {
        "right": index,
        "zero": 0,
        "from one": index + 1,
        "gaps": 2 * index + 1,
        "late": index if step == last else 0,
        "negative": index if step == last else -1,
    }
    if manner.places in indexes:
        one["output_index"] = indexes[manner.places]
    if not manner.parts:
        for key in ("content_index", "summary_index"):
            one.pop(key, None)
    if "item" in one:
        one["item"] = _identified({**one["item"], **manner.item_extra}, manner.ids, str(step))
    elif manner.ids == "none":
        del one["item_id"]
    elif manner.ids == "between":
        one["item_id"] = f"tool_{index}"
    elif manner.ids == "rotating":
        one["item_id"] += f"_{step}"
    return one


def _identified(item: Event, ids: str, mark: str) -> Event:
    if ids == "none":
        return {key: value for key, value in item.items() if key != "id"}
    return {**item, "id": f"{item['id']}_{mark}"} if ids == "rotating" else item


def _output(items: list[Event], manner: Manner) -> list[Event]:
    """Make the final output."""
    output = []
    for item in items:
        if manner.final == "without messages" and item["type"] == "message":
            continue
        shown = _identified({**item, **manner.item_extra}, manner.ids, "end")
        if manner.ids == "final":
            shown["id"] += "_final"
        if manner.call_ids == "other" and "call_id" in shown:
            shown["call_id"] += "_final"
        if manner.unfinished and "status" in shown:
            shown["status"] = "in_progress"
        output.append(shown)
    if manner.final == "calls first":
        output.sort(key=lambda item: item["type"] != "function_call")
    return [] if manner.final == "empty" else output


# -- orders --------------------------------------------------------------------------------------


def _is_end(one: Event) -> bool:
    return str(one["type"]).endswith((".done", "_call.completed"))


def _in_turn(lives: list[list[Event]], closing: str) -> list[Event]:
    if closing == "at once":
        return [one for life in lives for one in life]
    heads = [one for life in lives for one in life if not _is_end(one)]
    tails = [[one for one in life if _is_end(one)] for life in lives]
    if closing == "calls first":
        tails.sort(key=lambda tail: not any("call" in one["type"] for one in tail))
    elif closing == "backwards":
        tails.reverse()
    elif closing == "last":
        tails = tails[-1:]
    return heads + [one for tail in tails for one in tail]


def _mixed(lives: list[list[Event]], order: Sequence[int]) -> list[Event]:
    left = [list(life) for life in lives if life]
    mixed = []
    for choice in order:
        if not left:
            break
        life = left[choice % len(left)]
        mixed.append(life.pop(0))
        left = [one for one in left if one]
    return mixed + [one for life in left for one in life]


def _numbered(events: list[Event], numbers: str) -> list[Event]:
    if numbers == "none":
        return events
    number(events)
    for one in events:
        if numbers != "right":
            one["sequence_number"] = 0 if numbers == "frozen" else -one["sequence_number"]
    return events
