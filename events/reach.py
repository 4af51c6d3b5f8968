"""Which pictures of a conversation an edit can start from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .history import IMAGE_ITEM, has_result, is_reference
from .known import Known
from .pictures import Picture

__all__ = ["pictures_in_reach"]


def pictures_in_reach(items: object, known: Known, *, fetch: bool) -> tuple[Picture, ...]:
    """List the pictures of a request, oldest first, each id once.

    They are those of the turns that the request continues, then, as they stand in its input, the
    user's own in messages and in outputs of functions, and earlier results, sent along or stored.

    Args:
        items: the request's `input`.
        known: what the store holds of it.
        fetch: whether pictures behind http and https URLs count.
    """
    pictures: list[Picture] = []
    seen: set[str] = set()
    listed = items if isinstance(items, list) else []
    before = (picture for picture in known.reach if fetch or picture.url is None)
    for picture in (*before, *_sent(listed, known, fetch=fetch)):
        if picture.id not in seen:
            pictures.append(picture)
        if picture.id:
            seen.add(picture.id)
    return tuple(pictures)


def _sent(items: Iterable[Any], known: Known, *, fetch: bool) -> Iterator[Picture]:
    for item in items:
        if not isinstance(item, Mapping):
            continue
        if item.get("type") == IMAGE_ITEM or is_reference(item):
            yield from _earlier(item, known)
        else:
            yield from _attached(item.get("output" if "output" in item else "content"), fetch=fetch)


def _earlier(item: Mapping[str, Any], known: Known) -> Iterator[Picture]:
    given = item.get("id")
    identifier = given if isinstance(given, str) else ""
    if has_result(item):
        yield Picture(identifier, data=item["result"])
    elif identifier in known.pictures:
        yield Picture(identifier)


def _attached(parts: object, *, fetch: bool) -> Iterator[Picture]:
    """Yield the pictures of a message's content or a function's output."""
    for part in parts if isinstance(parts, list) else ():
        url = part.get("image_url") if isinstance(part, Mapping) else None
        if not isinstance(url, str) or part.get("type") != "input_image":
            continue
        scheme = url[:8].lower()
        if scheme.startswith("data:"):
            yield Picture(data=url)
        elif fetch and scheme.startswith(("http://", "https://")):
            yield Picture(url=url)
