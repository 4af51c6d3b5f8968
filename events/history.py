"""Pictures of the past as a model server can read them: an image item ↔ a call and its output.

The same two shapes serve the input a client replays and the turns of one response. A model server
refuses `image_generation_call` items, and a text model has no use for their base64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import RequestError
from .items import call_items, is_empty, output_item, replayed
from .tools.feedback import feedback
from .wire import CLIENT_CALLS, dumps

__all__ = [
    "StoredImage",
    "call_items",
    "image_ids",
    "lower_history",
    "output_item",
    "replayed",
]

IMAGE_ITEM = "image_generation_call"
EMPTY_MESSAGE = "msg_ig_"
"""How the ids of the empty messages begin that close a response after its last picture."""


@dataclass(frozen=True, slots=True)
class StoredImage:
    """What is known of a picture that was made earlier.

    Attributes:
        id: the id of its item.
        prompt: what it was made from; empty if unknown.
        status: `completed` or `failed`.
        facts: the item's other fields (`size`, `output_format`, …), without `result`.
    """

    id: str
    prompt: str = ""
    status: str = "completed"
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pair:
    call: dict[str, Any]
    output: dict[str, Any]


def image_ids(items: Iterable[Any]) -> Iterator[str]:
    """Name the image items and the references among input items, which may have to be looked up."""
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
            continue
        if item.get("type") == IMAGE_ITEM or _is_reference(item):
            yield item["id"]


def lower_history(items: list[Any], *, name: str, found: Mapping[str, StoredImage]) -> list[Any]:
    """Replace every image item and every reference to one by a call of `name` and its output.

    All else travels on as it is, except the empty messages that this program itself once added.
    The same items give the same result, so that prompt caches hit.

    Args:
        items: the client's input items; they are not changed.
        name: the name of the function that stands in for the tool.
        found: the pictures among them that are known, by item id.

    Raises:
        RequestError: an item names a picture by its id alone, and nothing is known of it.
    """
    taken = {item["call_id"] for item in items if _call_id(item)}
    seen: set[str] = set()
    wish = ""
    lowered: list[Any] = []
    for position, item in enumerate(items):
        if not isinstance(item, Mapping):
            lowered.append(item)
        elif _is_image(item, found):
            image_id = item["id"] if isinstance(item.get("id"), str) else ""
            # Clients refer to one picture several times; to call twice would be a lie.
            if image_id and image_id in seen:
                continue
            seen.add(image_id)
            call_id = _free_call_id(image_id or str(position), taken)
            taken.add(call_id)
            lowered.append(_pair(item, found.get(image_id), call_id, name, wish, position))
        elif not _is_our_empty_message(item):
            wish = _user_text(item) or wish
            lowered.append(item)
    return list(_arranged(lowered))


def _call_id(item: object) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("call_id"), str)


def _free_call_id(image_id: str, taken: set[str]) -> str:
    call_id = f"call_{image_id}"
    while call_id in taken:
        call_id += "_"
    return call_id


def _is_reference(item: Mapping[str, Any]) -> bool:
    """Recognise a reference; its type may be left out or null."""
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item)


def _is_image(item: Mapping[str, Any], found: Mapping[str, StoredImage]) -> bool:
    if item.get("type") == IMAGE_ITEM:
        return True
    given = item.get("id")
    return isinstance(given, str) and _is_reference(item) and (given in found or given.startswith("ig_"))


def _is_our_empty_message(item: Mapping[str, Any]) -> bool:
    given = item.get("id")
    if not isinstance(given, str) or not given.startswith(EMPTY_MESSAGE):
        return False
    # References count, too: no model server knows such an id, so none could resolve it.
    return item.get("type") in (None, "message", "item_reference") and is_empty(item.get("content"))


def _pair(
    item: Mapping[str, Any], stored: StoredImage | None, call_id: str, name: str, wish: str, position: int
) -> _Pair:
    prompts = (item.get("revised_prompt"), item.get("prompt"), stored and stored.prompt, wish)
    prompt = next((text for text in prompts if isinstance(text, str) and text.strip()), "")
    call = call_items(call_id, name, dumps({"prompt": prompt}).decode())
    return _Pair(call, output_item(call_id, feedback(_settled(item, stored, position))))


def _settled(item: Mapping[str, Any], stored: StoredImage | None, position: int) -> dict[str, Any]:
    """Find out what became of a picture: its result says more than its status."""
    given = {key: value for key, value in item.items() if value is not None}
    if isinstance(item.get("result"), str) and item["result"]:
        return {**given, "status": "completed"}
    if given.get("status") == "failed":
        return given
    if stored is not None:
        return {**stored.facts, **given, "status": stored.status}
    if any(key in given for key in ("status", "revised_prompt", "prompt")):
        return {**given, "status": "unavailable"}
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
