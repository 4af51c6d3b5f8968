"""Finding what a request refers to: its earlier items, the response before it, the pictures in reach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...events.errors import RequestError
from ...events.history import is_only_named, is_reference
from ...events.known import Known
from ...events.lowering import references
from ...events.pictures import Picture
from ..together import together
from .keys import StoreKeys, mark, parsed
from .safe import SafeStore
from .stored_input import is_url
from .stored_response import StoredResponse

__all__ = ["MAX_REACH", "Lookup", "conversation_id", "latest", "reach_of"]

MAX_REACH = 20
"""How many pictures of earlier turns stay in reach of an edit."""

_MAX_REFERENCES = 2_000
"""Items that one request may name by their ids alone. Each costs the store two or three questions, and
they are asked before the model server has seen who is asking."""


@dataclass(frozen=True, slots=True)
class _Look:
    item: dict[str, Any] | None
    picture: bool
    foreign: bool


@dataclass(frozen=True, slots=True)
class _Past:
    """What a conversation has come to before a request."""

    reach: tuple[str, ...] = ()
    upstream: str | None = None
    owed: tuple[Mapping[str, Any], ...] = ()


class Lookup:
    """Reads one owner's part of a store.

    Args:
        store: where to look.
        keys: the owner's.
    """

    def __init__(self, store: SafeStore, keys: StoreKeys) -> None:
        self._store = store
        self._keys = keys

    async def known(self, body: Mapping[str, Any]) -> Known:
        """Look up all that a request refers to. Ids never seen are not in the result.

        Raises:
            RequestError: the previous response is gone or somebody else's (404), still running, or none
                that can be continued (400); the request references an item that is somebody else's
                (404), or too many (400).
            StoreError: the store fails, and nobody else knows of the previous response, or of an item.
        """
        previous, conversation = body.get("previous_response_id"), conversation_id(body)
        names = references(body)
        if len(names) > _MAX_REFERENCES:
            raise _too_many(len(names))
        needed = _only_named(body.get("input"))
        strict = self._store.strict
        found, before, shared = await asyncio.gather(
            together(self._look(name, strict if name in needed else self._store) for name in names),
            self._previous(previous) if isinstance(previous, str) and previous else _nothing(),
            self._conversation(conversation) if conversation else _nothing(),
        )
        seen = dict(zip(names, found, strict=True))
        _refuse_foreign(body.get("input"), {name for name, look in seen.items() if look.foreign})
        return Known(
            items={name: look.item for name, look in seen.items() if look.item is not None},
            pictures=frozenset(name for name, look in seen.items() if look.item and look.picture),
            reach=tuple(map(_picture, await self.there(latest((*before.reach, *shared.reach))))),
            previous=before.upstream,
            owed=(*before.owed, *shared.owed),
        )

    async def _look(self, name: str, store: SafeStore) -> _Look:
        value = await store.get(self._keys.of("item", name))
        if value is None:
            owner = await store.get(mark(name))
            return _Look(None, picture=False, foreign=owner not in (None, self._keys.owner))
        item = parsed(value)
        picture = await store.has(self._keys.of("picture", name))
        return _Look(item if isinstance(item, dict) else None, picture, foreign=False)

    async def _previous(self, name: str) -> _Past:
        stored = await self.response(
            name,
            RequestError(
                f"Previous response with id '{name}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
                status=404,
            ),
            self._store.strict,
        )
        if stored is None:
            return _Past()
        if stored.running:
            message = f"The previous response '{name}' has not finished yet: wait for it, or cancel it."
            raise RequestError(message, param="previous_response_id")
        if not stored.upstream:
            message = (
                f"The previous response '{name}' cannot be continued: the model server gave it no id, or "
                "never began it. Send its items in 'input' instead."
            )
            raise RequestError(message, param="previous_response_id")
        return _Past(stored.reach, stored.upstream[-1], stored.owed)

    async def _conversation(self, name: str) -> _Past:
        written = parsed(await self._store.get(self._keys.of("conversation", name)))
        if not isinstance(written, dict):
            return _Past()
        return _Past(tuple(written.get("reach", ())), owed=tuple(written.get("owed", ())))

    async def there(self, names: Iterable[str]) -> tuple[str, ...]:
        """Name each picture once, and leave out those whose bytes are not here; URLs are believed."""
        listed = tuple(dict.fromkeys(names))
        found = await together(self._is_there(name) for name in listed)
        return tuple(name for name, there in zip(listed, found, strict=True) if there)

    async def _is_there(self, name: str) -> bool:
        return is_url(name) or await self._store.has(self._keys.of("picture", name))

    async def response(
        self, name: str, missing: RequestError, store: SafeStore | None = None
    ) -> StoredResponse | None:
        """Return a response; None if it was never seen, or the store has lost it or cannot read it.

        Raises:
            RequestError: `missing`, if it is gone, somebody else's, or one turn of another response.
        """
        store = store or self._store
        value, owner = await asyncio.gather(store.get(self._keys.of("response", name)), store.get(mark(name)))
        if isinstance(value, bytes) and (stored := StoredResponse.decode(value)) is not None:
            return stored
        if value is None and owner in (None, self._keys.owner):
            return None
        raise missing


async def _nothing() -> _Past:
    return _Past()


def conversation_id(body: Mapping[str, Any]) -> str | None:
    """Return the id of the conversation that a request, or a response, is part of."""
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) and conversation else None


def _only_named(items: object) -> set[str]:
    """Name the items of which nobody but the store could tell what they are."""
    listed = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    return {item["id"] for item in listed if isinstance(item.get("id"), str) and is_only_named(item)}


def reach_of(known: Known) -> tuple[str, ...]:
    """Name the pictures in reach before a request, as `StoredResponse.reach` wants them."""
    return tuple(picture.url or picture.id for picture in known.reach)


def latest(names: Iterable[str]) -> tuple[str, ...]:
    """Return each name once, and only the last 20."""
    return tuple(dict.fromkeys(names))[-MAX_REACH:]


def _picture(name: str) -> Picture:
    return Picture(url=name) if is_url(name) else Picture(id=name)


def _too_many(count: int) -> RequestError:
    return RequestError(
        f"The input names {count} items by their ids alone, more than the {_MAX_REFERENCES} that are looked "
        "up; send the items themselves, or go on with 'previous_response_id'.",
        param="input",
    )


def _refuse_foreign(items: object, foreign: set[str]) -> None:
    """Keep references to another owner's items from the model server, which would resolve them.

    Image items and what looks like one never get there: lowering treats them as it does unknown ones.
    """
    for position, item in enumerate(items if foreign and isinstance(items, list) else ()):
        name = item.get("id") if isinstance(item, Mapping) and is_reference(item) else None
        if isinstance(name, str) and name in foreign and not name.startswith("ig_"):
            raise RequestError(
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                param=f"input[{position}].id",
                status=404,
            )
