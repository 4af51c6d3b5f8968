"""Pictures of the past as a model server can read them: an image item ↔ a call and its output.

The same two shapes serve the input a client replays and the turns of one response. A model server
refuses `image_generation_call` items, and a text model has no use for their base64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import RequestError
from .items import call_items, is_empty, output_item, replayed
from .known import Known
from .tools.feedback import feedback
from .wire import CLIENT_CALLS, dumps

__all__ = [
    "IMAGE_ITEM",
    "call_items",
    "image_ids",
    "is_only_named",
    "is_reference",
    "lower_history",
    "output_item",
    "replayed",
]

IMAGE_ITEM = "image_generation_call"
EMPTY_MESSAGE = "msg_ig_"
"""How the ids of the empty messages begin that close a response after its last picture."""

_TELLING = ("status", "revised_prompt", "prompt")
"""Fields of an image item that tell something of a picture which is not there."""

_OWN_PREFIX = "ig_"
"""How the ids of our image items begin: no model server could resolve a reference to one."""


@dataclass(frozen=True, slots=True)
class _Pair:
    call: dict[str, Any]
    output: dict[str, Any]


def image_ids(items: Iterable[Any]) -> Iterator[str]:
    """Name the references, and the image items without a picture, that may have to be looked up."""
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            continue
        if is_reference(item) or (item.get("type") == IMAGE_ITEM and not has_result(item)):
            yield item["id"]


def is_reference(item: Mapping[str, Any]) -> bool:
    """Recognise a reference; its type may be left out or null."""
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item)


def is_only_named(item: Mapping[str, Any]) -> bool:
    """Tell whether a reference or an image item says nothing but its id."""
    return is_reference(item) or not any(item.get(key) is not None for key in _TELLING)


def has_result(item: Mapping[str, Any]) -> bool:
    """Tell whether an image item carries its picture."""
    return isinstance(item.get("result"), str) and bool(item["result"])


def lower_history(items: list[Any], *, name: str, known: Known) -> list[Any]:
    """Replace every image item and every reference to one by a call of `name` and its output.

    References to other known items give way to those items. All else travels on as it is, except the
    empty messages that this program itself once added. The same items give the same result, so that
    prompt caches hit.

    Args:
        items: the client's input items; they are not changed.
        name: the name of the function that stands in for the tool.
        known: what is known of the items that carry nothing but an id.

    Raises:
        RequestError: an item names a picture by its id alone, and nothing is known of it.
    """
    entries = list(_inlined(items, known))
    taken = {item["call_id"] for _, item in entries if _call_id(item)}
    wish = ""
    lowered: list[Any] = []
    for position, item in entries:
        if not isinstance(item, Mapping):
            lowered.append(item)
        elif item.get("type") == IMAGE_ITEM:
            call_id = _free_call_id(_id(item) or str(position), taken)
            taken.add(call_id)
            settled = _settled(item, known.items.get(_id(item)), position, there=_id(item) in known.pictures)
            lowered.append(_pair(settled, call_id, name, wish))
        else:
            wish = _user_text(item) or wish
            lowered.append(item)
    return list(_arranged(lowered))


def _inlined(items: Iterable[Any], known: Known) -> Iterator[tuple[int, Any]]:
    """Yield the items with their positions: known ones in place of references, and each of them once.

    Clients refer to one picture several times, and to call twice would be a lie.
    """
    seen: set[str] = set()
    for position, item in enumerate(items):
        if not isinstance(item, Mapping):
            yield position, item
            continue
        inlined = _resolved(item, known)
        if inlined is None or (inlined is item and _is_our_empty_message(item)):
            continue
        if inlined is not item or item.get("type") == IMAGE_ITEM:
            if (given := _id(item)) and given in seen:
                continue
            seen.add(given)
        yield position, inlined


def _resolved(item: Mapping[str, Any], known: Known) -> Mapping[str, Any] | None:
    """Return what a reference stands for, None if that says nothing; any other item as it is."""
    given = _id(item)
    if not given or not is_reference(item):
        return item
    stored = known.items.get(given)
    if (stored is None and given.startswith(_OWN_PREFIX)) or (stored or {}).get("type") == IMAGE_ITEM:
        return {**item, "type": IMAGE_ITEM}
    return item if stored is None else replayed(stored)


def _id(item: Mapping[str, Any]) -> str:
    given = item.get("id")
    return given if isinstance(given, str) else ""


def _call_id(item: object) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("call_id"), str)


def _free_call_id(image_id: str, taken: set[str]) -> str:
    call_id = f"call_{image_id}"
    while call_id in taken:
        call_id += "_"
    return call_id


def _is_our_empty_message(item: Mapping[str, Any]) -> bool:
    if not _id(item).startswith(EMPTY_MESSAGE):
        return False
    # References count, too: no model server knows such an id, so none could resolve it.
    return item.get("type") in (None, "message", "item_reference") and is_empty(item.get("content"))


def _pair(item: Mapping[str, Any], call_id: str, name: str, wish: str) -> _Pair:
    arguments: dict[str, Any] = {"prompt": _prompt(item) or wish}
    if item.get("action") == "edit" and item["status"] == "completed":
        # The item does not tell which pictures it began with; most edits change the newest one. A past
        # edit that names none would teach the model to leave the choice out.
        arguments["num_last_images_to_include"] = 1
    call = call_items(call_id, name, dumps(arguments).decode())
    return _Pair(call, output_item(call_id, feedback(item)))


def _prompt(item: Mapping[str, Any]) -> str:
    prompts = (item.get("revised_prompt"), item.get("prompt"))
    return next((text for text in prompts if isinstance(text, str) and text.strip()), "")


def _settled(
    item: Mapping[str, Any], stored: Mapping[str, Any] | None, position: int, *, there: bool
) -> dict[str, Any]:
    """Find out what became of a picture: its result says more than its status.

    Args:
        item: as the client sent it.
        stored: the same item as the store has it.
        position: where it stands in the input.
        there: whether the store has the picture itself.
    """
    given = {key: value for key, value in item.items() if value is not None}
    whole = {**(stored or {}), **given, "revised_prompt": _prompt(item) or _prompt(stored or {})}
    if has_result(item):
        return {**whole, "status": "completed"}
    if given.get("status") == "failed":
        return whole
    if there:
        return {**whole, "status": "completed"}
    if stored is not None:
        return {**whole, "status": stored.get("status")}
    if not is_only_named(item):
        return {**whole, "status": "unavailable"}
    param = f"input[{position}].id"
    if "id" not in given:
        raise RequestError(f"Missing required parameter: '{param}'.", param=param)
    raise RequestError(
        f"Item with id '{given['id']}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input.",
        param=param,
    )


def _user_text(item: Mapping[str, Any]) -> str:
    if item.get("role") != "user":
        return ""
    content = item.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "\n".join(text for text in parts if isinstance(text, str))
    return content.strip() if isinstance(content, str) else ""


def _arranged(entries: Iterable[Any]) -> Iterator[Any]:
    """Put each output behind its call, or, where the client's own calls stand beside it, behind all.

    Calls that follow each other were one turn of the model if some of them are the client's to answer:
    the outputs then come after the last call. Elsewhere nothing tells one turn from two, and one call
    after the other is what every chat template can write.
    """
    calls: list[Any] = []
    for entry in entries:
        if isinstance(entry, _Pair) or _is_client_call(entry):
            calls.append(entry)
            continue
        yield from _turn(calls)
        calls = []
        yield entry
    yield from _turn(calls)


def _turn(calls: list[Any]) -> Iterator[Any]:
    mixed = any(not isinstance(call, _Pair) for call in calls)
    for call in calls:
        yield call.call if isinstance(call, _Pair) else call
        if isinstance(call, _Pair) and not mixed:
            yield call.output
    if mixed:
        yield from (call.output for call in calls if isinstance(call, _Pair))


def _is_client_call(item: object) -> bool:
    kind = item.get("type") if isinstance(item, Mapping) else None
    return isinstance(kind, str) and kind in CLIENT_CALLS
