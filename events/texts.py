"""The streamed texts of one item, made whole.

Servers leave out parts of the grammar that clients rely on: a part's announcement, its index, the
done events, the deltas of a text that comes all at once. What is missing is made up from what was
streamed; what contradicts the streamed text gives way to it, since nobody can take back what a
client has already read.
"""

from __future__ import annotations

from typing import Any

from .turn_events import Delta, Part, TurnEvent, TurnItem
from .wire import FAMILIES, OUTPUT_TEXT, PART_EVENTS, REASONING_TEXT, SUMMARY_TEXT, TEXT_EVENTS, Family

__all__ = ["close_texts", "part_event", "text_event"]

_LISTS = {"content_index": "content", "summary_index": "summary"}
"""The key of an index → that of the list in the item for which it counts."""


def text_event(item: TurnItem, family: Family, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
    """Take a delta or done of a text. Texts that are closed already get nothing more."""
    index = payload.get(family.index)
    part = item.last_part
    if part is None or part.family is not family or part.place != index:
        part = item.last_part = _part(item, family, index)
    if part.done:
        return []
    made: list[TurnEvent] = []
    if not part.announced:
        made.append(_announce(item, part))
    if part.index != index:
        payload[family.index] = part.index
        raw = None
    if payload["type"] == family.delta:
        delta = payload.get("delta")
        if not isinstance(delta, str):
            return made
        part.pieces.append(delta)
    else:
        made += _catch_up(item, part, payload.get(family.field))
        part.done = True
        text = part.text
        if payload.get(family.field) != text:
            payload[family.field] = text
            raw = None
        if family is OUTPUT_TEXT and not isinstance(payload.get("logprobs"), list):
            payload["logprobs"] = []
            raw = None
    made.append(Delta(item, payload, raw))
    return made


def part_event(item: TurnItem, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
    """Take a part's announcement or end. Parts of unknown types pass as they are."""
    index_key = PART_EVENTS[payload["type"]]
    index = payload.get(index_key)
    family = _family_meant(item, payload["part"], index_key, index)
    if family is None:
        return _other_part(item, payload, raw)
    body = payload["part"]
    if body.get("type") != family.part:
        text = body.get(family.field)
        body = payload["part"] = _part_body(family, text if isinstance(text, str) else "")
        raw = None
    is_end = payload["type"].endswith(".done")
    part = _part(item, family, index, fresh=not is_end)
    item.last_part = part
    if part.index != index:
        payload[index_key] = part.index
        raw = None
    if not is_end:
        return _added(item, part, payload, raw)
    if part.closed:
        return []
    made = [] if part.announced else [_announce(item, part)]
    made += _catch_up(item, part, body.get(family.field))
    made += _end_text(item, part)
    part.closed = True
    text = part.text
    if body.get(family.field) != text:
        payload["part"] = {**body, family.field: text}
        raw = None
    made.append(Delta(item, payload, raw))
    return made


def _family_meant(item: TurnItem, body: dict[str, Any], index_key: str, index: object) -> Family | None:
    """Name the family of a part: the event says more than the part's own type, and what is there already."""
    family = _family_of(body, item)
    if index_key == SUMMARY_TEXT.index:
        return SUMMARY_TEXT
    if family is SUMMARY_TEXT:
        return REASONING_TEXT
    if family is None and isinstance(index, int):
        known = item.places.get((index_key, index))
        return known.family if known else None
    return family


def _other_part(item: TurnItem, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
    """Pass on a part of a type that is not known here, and its end if it had a beginning."""
    index = payload.get(OUTPUT_TEXT.index)
    if not _type(payload["part"]) or not isinstance(index, int):
        return []
    if payload["type"] == OUTPUT_TEXT.part_added:
        item.other_parts.append(index)
    elif index not in item.other_parts:
        return []
    return [Delta(item, payload, raw)]


def close_texts(item: TurnItem, body: dict[str, Any]) -> tuple[list[TurnEvent], dict[str, Any]]:
    """End all texts of an item that closes; return what to send, and its body with the streamed texts."""
    made = _catch_up_parts(item, body)
    for part in item.parts.values():
        made += _end_text(item, part)
        if not part.closed:
            part.closed = True
            made.append(
                _made(item, part, part.family.part_done, {"part": _part_body(part.family, part.text)})
            )
    return made, _with_texts(item, body)


def _catch_up_parts(item: TurnItem, body: dict[str, Any]) -> list[TurnEvent]:
    """Stream what a final item holds and was not streamed: all of a message, the rest of a reasoning.

    Reasoning that was not streamed at all is not streamed at its end either.
    """
    made: list[TurnEvent] = []
    for index_key, key in _LISTS.items():
        told = body.get(key)
        parts = [part for (own, _), part in item.parts.items() if own == index_key]
        if not isinstance(told, list) or not (parts or item.kind == "message"):
            continue
        exact = {index: _placed(item, content, (index_key, index)) for index, content in enumerate(told)}
        free = [part for part in parts if part not in exact.values()]
        for index, content in enumerate(told):
            family = _family_of(content, item)
            if family is None or family.index != index_key:
                continue
            part = exact[index] or _alike(free, family, content) or _begin(item, family, index)
            if not part.announced:
                made.append(_announce(item, part))
            made += _catch_up(item, part, content.get(family.field))
    return made


def _placed(item: TurnItem, content: object, place: tuple[str, int]) -> Part | None:
    """Find the part at this place, if it is of the same family as a final text."""
    part = item.places.get(place)
    return part if part is not None and part.family is _family_of(content, item) else None


def _alike(parts: list[Part], family: Family, content: dict[str, Any]) -> Part | None:
    """Take out of some streamed parts one that this final text, at another place, may be the whole of."""
    whole = content.get(family.field)
    text = whole if isinstance(whole, str) else ""
    part = next((part for part in parts if part.family is family and text.startswith(part.text)), None)
    if part is not None:
        parts.remove(part)
    return part


def _family_of(content: object, item: TurnItem) -> Family | None:
    """Name the family of a part, if it is a text that such an item can hold."""
    family = FAMILIES.get(_type(content))
    return family if family is not None and family.item == item.kind else None


def _type(content: object) -> str:
    kind = content.get("type") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else ""


def _part(item: TurnItem, family: Family, index: object, *, fresh: bool = False) -> Part:
    """Find the part that is meant, or begin it. Without an index it is the open one of its family."""
    if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
        return _known(item.places, family, index) or _begin(item, family, index)
    same = [part for part in item.parts.values() if part.family is family]
    if same and not (fresh and same[-1].announced) and not same[-1].closed:
        return same[-1]
    return _begin(item, family, None)


def _known(parts: dict[tuple[str, int], Part], family: Family, index: int) -> Part | None:
    """Find the part with this index, or with the next one if there is a part of another family there."""
    part = parts.get((family.index, index))
    while part is not None and part.family is not family:
        index += 1
        part = parts.get((family.index, index))
    return part


def _begin(item: TurnItem, family: Family, index: int | None) -> Part:
    """Begin a part. Its own index is the next one, whatever its server calls it: clients keep a list."""
    own = sum(key == family.index for key, _ in item.parts)
    if family.index == OUTPUT_TEXT.index:
        own += len(item.other_parts)
    place = own if index is None else index
    while (family.index, place) in item.places:
        place += 1
    part = Part(family, own, place)
    item.parts[family.index, own] = item.places[family.index, place] = part
    return part


def _added(item: TurnItem, part: Part, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
    if part.announced:
        return []
    part.announced = True
    family = part.family
    text = payload["part"].get(family.field)
    if not text and isinstance(text, str):
        return [Delta(item, payload, raw)]
    payload["part"] = {**payload["part"], family.field: ""}
    return [Delta(item, payload), *_catch_up(item, part, text)]


def _catch_up(item: TurnItem, part: Part, whole: object) -> list[TurnEvent]:
    """Stream what a done event tells and no delta has."""
    streamed = part.text
    if (
        part.done
        or not isinstance(whole, str)
        or len(whole) <= len(streamed)
        or not whole.startswith(streamed)
    ):
        return []
    rest = whole[len(streamed) :]
    part.pieces.append(rest)
    return [_made(item, part, part.family.delta, {"delta": rest})]


def _end_text(item: TurnItem, part: Part) -> list[TurnEvent]:
    if part.done:
        return []
    part.done = True
    return [_made(item, part, part.family.done, {part.family.field: part.text})]


def _announce(item: TurnItem, part: Part) -> TurnEvent:
    part.announced = True
    return _made(item, part, part.family.part_added, {"part": _part_body(part.family, "")})


def _made(item: TurnItem, part: Part, name: str, fields: dict[str, Any]) -> Delta:
    """Make up an event about a part."""
    extra: dict[str, Any] = {}
    if part.family is OUTPUT_TEXT and name in TEXT_EVENTS:
        extra["logprobs"] = []
    return Delta(item, {"type": name, part.family.index: part.index, **fields, **extra})


def _part_body(family: Family, text: str) -> dict[str, Any]:
    extra: dict[str, Any] = {"annotations": [], "logprobs": []} if family is OUTPUT_TEXT else {}
    return {"type": family.part, family.field: text, **extra}


def _whole_part(part: Part, told: dict[str, Any]) -> dict[str, Any]:
    """Return a final part with the text that was streamed, and with the list that SDKs demand."""
    if told["type"] != part.family.part:
        return _part_body(part.family, part.text)
    whole = {**told, part.family.field: part.text}
    if part.family is OUTPUT_TEXT and not isinstance(told.get("annotations"), list):
        whole["annotations"] = []
    return whole


def _with_texts(item: TurnItem, body: dict[str, Any]) -> dict[str, Any]:
    """Put the streamed texts into the item's final body; the same object if they stand there already."""
    changed: dict[str, Any] = {}
    for index_key, key in _LISTS.items():
        parts = [part for (own, _), part in sorted(item.parts.items(), key=_place) if own == index_key]
        told = body.get(key)
        if told is None and not parts and (item.kind, key) != ("message", "content"):
            continue
        whole = _merged(item, parts, told if isinstance(told, list) else [])
        if whole != told:
            changed[key] = whole
    return {**body, **changed} if changed else body


def _place(entry: tuple[tuple[str, int], Part]) -> tuple[str, int]:
    return entry[0]


def _merged(item: TurnItem, parts: list[Part], told: list[Any]) -> list[dict[str, Any]]:
    """Join the streamed parts, in their order, with what the server says that its item holds.

    Parts of unknown types stay where they are, and so does reasoning of which nothing was streamed.
    """
    left = list(parts)
    merged = []
    for content in told:
        kind = _type(content)
        if not kind:
            continue
        if kind not in FAMILIES or not (parts or item.kind == "message"):
            merged.append(content)
        elif left and _family_of(content, item):
            merged.append(_whole_part(left.pop(0), content))
    return merged + [_part_body(part.family, part.text) for part in left]
