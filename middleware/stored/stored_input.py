"""The input of a stored response: its pictures are kept beside it, each once, and put back when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ...events.history import is_reference
from .stored_response import IMAGE_ITEM

__all__ = ["TakenInput", "is_url", "places", "put_back", "take_out", "weight"]

_PLACE = "imagecall:"
"""How an `image_url` begins whose picture is kept elsewhere: then its id, a comma, the data URL's head."""

_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    IMAGE_ITEM: "ig",
}


@dataclass(frozen=True, slots=True)
class TakenInput:
    """Input items without their pictures.

    Attributes:
        items: the items, each with an id.
        pictures: what was taken out: bare base64 by picture id. The user's own have ids made from
            what they show, those of image items the item's.
        given: the image items that came with their picture, by id, without `result`.
        reach: the pictures in the input that an edit may mean, in order: URLs, and ids, also those of
            references, which may turn out to be no pictures.
    """

    items: list[Any] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)
    given: dict[str, dict[str, Any]] = field(default_factory=dict)
    reach: list[str] = field(default_factory=list)


def is_url(text: str) -> bool:
    """Tell a URL of the user's from the id of a picture that is kept here."""
    return text[:8].lower().startswith(("http://", "https://"))


def weight(value: object) -> int:
    """Count the characters of the pictures in input items: to hash many takes its time."""
    results = (part.get("result") for part in _mappings(value) if part.get("type") == IMAGE_ITEM)
    urls = (part["image_url"] for part in _mappings(value) if _data_url(part))
    return sum(len(text) for text in (*results, *urls) if isinstance(text, str))


def take_out(items: object, response_id: str) -> TakenInput:
    """Separate input items from their pictures. The items given stay as they are.

    Args:
        items: a request's `input`, or what this function has made of it before.
        response_id: whose input it is: the ids of items without one are derived from it.
    """
    taken = TakenInput()
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for position, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, Mapping):
            taken.items.append(item)
            continue
        whole = _whole(item, f"{response_id} {position}")
        if item.get("type") == IMAGE_ITEM:
            taken.items.append(_image_item(whole, taken))
        else:
            taken.items.append(_bare(whole, taken))
            if is_reference(item):
                taken.reach.append(whole["id"])
    return taken


def places(value: object) -> Iterator[str]:
    """Name the pictures that were taken out of a stored input item."""
    return (place[0] for part in _mappings(value) if (place := _place(part)))


def put_back(value: Any, pictures: Mapping[str, bytes]) -> Any:
    """Return a stored input item with its pictures in it as data URLs; "" for those that are gone."""

    def fill(part: dict[str, Any]) -> None:
        if place := _place(part):
            name, head = place
            part["image_url"] = f"{head},{pictures[name].decode()}" if name in pictures else ""

    return _copied(value, fill)


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _mappings(one)


def _whole(item: Mapping[str, Any], seed: str) -> dict[str, Any]:
    """Give an item an id and its long form, in which the API lists it."""
    whole = dict(item)
    role = item.get("role")
    if "type" not in item and isinstance(role, str):
        whole["type"] = "message"
    if whole.get("type") == "message" and isinstance(item.get("content"), str):
        text = {"text": item["content"]}
        whole["content"] = [
            {"type": "output_text", **text, "annotations": []}
            if role == "assistant"
            else {"type": "input_text", **text}
        ]
    if not isinstance(item.get("id"), str) or not item["id"]:
        prefix = _PREFIXES.get(str(whole.get("type")), "item")
        whole["id"] = f"{prefix}_{_digest(seed.encode(errors='surrogatepass'))}"
    return whole


def _image_item(item: dict[str, Any], taken: TakenInput) -> dict[str, Any]:
    name, result = item["id"], item.pop("result", None)
    if isinstance(result, str) and result and result.isascii():
        item["status"] = "completed"
        taken.pictures[name] = result[result.find(",") + 1 :].encode()  # bare, or a data URL
        taken.given[name] = item
    if item.get("status") != "failed":
        taken.reach.append(name)
    return item


def _bare(value: Any, taken: TakenInput) -> Any:
    """Copy a part of an item, its data URLs replaced by places."""

    def empty(part: dict[str, Any]) -> None:
        if data := _data_url(part):
            head, payload = data
            name = f"img_{_digest(payload)}"
            taken.pictures[name] = payload
            part["image_url"] = f"{_PLACE}{name},{head}"
        if part.get("type") == "input_image":
            taken.reach.extend(_reachable(part.get("image_url")))

    return _copied(value, empty)


def _copied(value: Any, change: Callable[[dict[str, Any]], None]) -> Any:
    """Copy a JSON value, and change each object in it, the inner ones first."""
    if isinstance(value, list):
        return [_copied(one, change) for one in value]
    if not isinstance(value, Mapping):
        return value
    copy = {key: _copied(one, change) for key, one in value.items()}
    change(copy)
    return copy


def _reachable(url: object) -> Iterator[str]:
    if isinstance(url, str):
        if url.startswith(_PLACE):
            yield url.removeprefix(_PLACE).partition(",")[0]
        elif is_url(url):
            yield url


def _data_url(part: Mapping[str, Any]) -> tuple[str, bytes] | None:
    """Split a data URL in base64 into what stands before the comma, and the base64."""
    url = part.get("image_url")
    if not isinstance(url, str) or url[:5].lower() != "data:":
        return None
    head, _, payload = url.partition(",")
    data = _ascii(payload) if head.lower().endswith(";base64") else b""
    return (head, data) if data else None


def _place(part: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read a place: the picture's id, and the head of its data URL."""
    url = part.get("image_url")
    if not isinstance(url, str) or not url.startswith(_PLACE):
        return None
    name, _, head = url.removeprefix(_PLACE).partition(",")
    return name, head


def _ascii(text: str) -> bytes:
    return text.encode() if text.isascii() else b""


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=24).hexdigest()
