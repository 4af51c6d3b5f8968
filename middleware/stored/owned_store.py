"""One owner's part of the store: pictures, items and responses by the ids that the client knows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...events.errors import RequestError
from ...events.known import Known
from ...events.wire import dumps
from ..store import GONE, Store
from ..together import together
from .keys import NOBODY, StoreKeys, mark, parsed
from .lookup import Lookup, latest
from .safe import SafeStore, StoreError
from .stored_input import TakenInput, places, put_back, take_out, weight
from .stored_response import IMAGE_ITEM, StoredResponse, without_result

__all__ = ["LOG_END", "OwnedStore", "StoredResponse"]

LOG_END = b": end\n\n"
"""The last piece of a response's log; a comment, which would do no harm in a stream."""

_HEAVY = 1 << 20
"""Characters of pictures from which on hashing them is left to a thread."""


class OwnedStore:
    """What one owner has in the store. It never fails; see `SafeStore` for what is then true, and `strict`.

    Args:
        store: any store; a `SafeStore` remembers from request to request that it fails.
        owner: who it is, in whatever words; see `Owner`.
        ttl: seconds for which everything is kept.
        now: seconds of a clock that never goes back.
    """

    def __init__(
        self, store: Store | SafeStore, owner: str, *, ttl: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store if isinstance(store, SafeStore) else SafeStore(store, now=now)
        self._owner = owner
        self._keys = StoreKeys(owner)
        self._lookup = Lookup(self._store, self._keys)
        self._ttl = ttl

    @property
    def strict(self) -> OwnedStore:
        """The same for who must know: where reading fails, a `StoreError` is raised."""
        return OwnedStore(self._store.strict, self._owner, ttl=self._ttl)

    @property
    def shared(self) -> SafeStore:
        """The store of all owners."""
        return self._store

    async def known(self, body: Mapping[str, Any]) -> Known:
        """Look up all that a request refers to. Ids never seen are not in the result.

        Raises:
            RequestError: the previous response is gone or somebody else's (404), still running, or none
                that can be continued (400); or the request references an item that is somebody else's
                (404).
            StoreError: the store fails, and nobody else knows of the previous response, or of an item.
        """
        return await self._lookup.known(body)

    # -- keeping -------------------------------------------------------------------------------

    async def keep_picture(self, item: Mapping[str, Any], data: bytes) -> bool:
        """Keep a finished picture; return whether that succeeded.

        Args:
            item: the image item as the client sees it; its `result` is not needed.
            data: bare base64.
        """
        name = str(item["id"])
        return all(
            await asyncio.gather(
                self._put(self._keys.of("picture", name), data),
                self._keep_item(item),
            )
        )

    async def keep_response(self, response: StoredResponse) -> bool:
        """Keep a response, in place of an earlier state of the same one, and all that belongs to it.

        That is each item of its output by id, the pictures of its input, what is in reach of the next
        turn and of the conversation, and the upstream ids, which no client may ask for. A response in
        the background that was deleted meanwhile is not kept again.

        Returns:
            whether the response itself was kept, or need not be.
        """
        key = self._keys.of("response", response.id)
        if response.background and await self._store.get(key) is GONE:
            return True
        taken = await _taken(response)
        earlier = await self._lookup.there(name for name in taken.reach if name not in taken.pictures)
        sent = (name for name in taken.reach if name in taken.pictures or name in earlier)
        output = [without_result(item) for item in response.output]
        made = (item["id"] for item in response.named if _is_picture(item))
        stored = replace(
            response,
            input=taken.items,
            body={**response.body, "output": output},
            reach=latest((*filter(None, response.reach), *sent, *made)),
        )
        await asyncio.gather(
            together(self._keep_given(name, data, taken) for name, data in taken.pictures.items()),
            together(self._keep_item(item) for item in stored.named),
            together(self._put(mark(name), NOBODY) for name in {*stored.upstream} - {stored.id}),
        )
        # The id of one in the background is of our making: without the store nobody knows it.
        whose = NOBODY if stored.background else self._keys.owner
        kept, *_ = await asyncio.gather(
            self._put(key, stored.encode()),
            self._put(mark(stored.id), whose),
            *(self._keep_conversation(name, stored) for name in filter(None, (stored.conversation,))),
        )
        return kept

    async def settle(self, conversation: str) -> None:
        """Note that the model server waits for nothing more in a conversation."""
        key = self._keys.of("conversation", conversation)
        state = parsed(await self._store.get(key))
        if isinstance(state, dict):
            await self._put(key, dumps({**state, "owed": []}))

    async def _keep_item(self, item: Mapping[str, Any]) -> bool:
        name = str(item["id"])
        return all(
            await asyncio.gather(
                self._put(self._keys.of("item", name), dumps(without_result(item))),
                self._put(mark(name), self._keys.owner),
            )
        )

    async def _keep_given(self, name: str, data: bytes, taken: TakenInput) -> None:
        """Keep a picture that the client sent. It may only add to what was made here, and marks nothing."""
        if name in taken.given:
            key = self._keys.of("item", name)
            if isinstance(await self._store.get(key), bytes):
                return
            await self._put(key, dumps(taken.given[name]))
        await self._put(self._keys.of("picture", name), data)

    async def _keep_conversation(self, name: str, stored: StoredResponse) -> bool:
        state = {"reach": stored.reach, "owed": [dict(output) for output in stored.owed]}
        return await self._put(self._keys.of("conversation", name), dumps(state))

    async def _put(self, key: str, value: bytes) -> bool:
        return await self._store.put(key, value, ttl=self._ttl)

    # -- what clients ask for ------------------------------------------------------------------

    async def picture(self, name: str) -> bytes | None:
        """Return a picture as bare base64; None if it is gone, was never seen or is somebody else's."""
        data = await self._store.get(self._keys.of("picture", name))
        return data if isinstance(data, bytes) else None

    async def response(self, name: str) -> StoredResponse | None:
        """Return a response; None if it was never seen, and the model server decides.

        Raises:
            RequestError: 404, in the same words for one that is gone, somebody else's, or only one turn
                of another response.
        """
        missing = RequestError(f"Response with id '{name}' not found.", status=404)
        return await self._lookup.response(name, missing)

    async def body(self, stored: StoredResponse) -> bytes:
        """Return the response object as JSON, with the pictures in it; "" for those that are gone."""
        items = await together(self._shown(item) for item in stored.output)
        head = dumps({key: value for key, value in stored.body.items() if key != "output"})
        return b"".join((head[:-1], b"," if len(head) > 2 else b"", b'"output":[', b",".join(items), b"]}"))

    async def _shown(self, item: Mapping[str, Any]) -> bytes:
        written = dumps(without_result(item))
        if item.get("type") != IMAGE_ITEM:
            return written
        data = await self.picture(str(item.get("id")))
        return b"".join((written[:-1], b',"result":"', data or b"", b'"}'))

    async def input_items(self, stored: StoredResponse) -> list[Any]:
        """Return the input items with the pictures in them; "" for those that are gone.

        References and image items without a picture are shown as the item that they stand for.
        """
        return await together(self._input_item(item) for item in stored.input)

    async def _input_item(self, item: Any) -> Any:
        if not isinstance(item, Mapping):
            return item
        if item.get("type") in (None, "item_reference", IMAGE_ITEM) and isinstance(item.get("id"), str):
            known = parsed(await self._store.get(self._keys.of("item", item["id"])))
            item = known if isinstance(known, dict) else item
        if item.get("type") == IMAGE_ITEM:
            data = await self.picture(str(item.get("id")))
            return {**item, "result": (data or b"").decode()}
        names = sorted(set(places(item)))
        found = zip(names, await together(map(self.picture, names)), strict=True)
        return put_back(item, {name: data for name, data in found if data is not None})

    async def delete(self, name: str) -> None:
        """Forget a response, its log, its output items and the pictures made in it.

        Pictures that the user sent may belong to other responses, too; they stay until their time is
        over.

        Raises:
            RequestError: 404, as `response` does.
            StoreError: the store has not deleted all of it; the response is still there.
        """
        stored = await self.response(name)
        if stored is None:
            return
        kinds = ("item", "picture")
        keys = [self._keys.of(kind, item["id"]) for item in stored.named for kind in kinds]
        keys.append(self._keys.of("log", name))
        done = await together(map(self._store.delete, keys))
        # Last of all, so that whoever tries again finds the rest.
        if not (all(done) and await self._store.delete(self._keys.of("response", name))):
            raise StoreError(
                f"The store cannot be reached, and response '{name}' was not deleted; try again soon."
            )

    async def log(self, name: str, piece: bytes) -> bool:
        """Add a piece to a response's log; False if the log may lack it now."""
        return await self._store.append(self._keys.of("log", name), piece, ttl=self._ttl)

    async def read_log(self, name: str, start: int, wait: float = 0.0) -> list[bytes]:
        """Return the pieces from number `start` on; wait at most `wait` seconds for the first."""
        return await self._store.read(self._keys.of("log", name), start, wait=wait)


def _is_picture(item: Mapping[str, Any]) -> bool:
    return item.get("type") == IMAGE_ITEM and item.get("status") == "completed"


async def _taken(response: StoredResponse) -> TakenInput:
    if weight(response.input) < _HEAVY:
        return take_out(response.input, response.id)
    return await asyncio.to_thread(take_out, response.input, response.id)
