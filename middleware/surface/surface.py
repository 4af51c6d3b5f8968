"""What clients ask of responses that are there already, by the ids that they know."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from ...events.actions import Finish
from ...events.errors import RequestError
from ...events.wire import dumps
from ..answers import answer_headers, send_json, send_request_error
from ..background.background import Background
from ..background.follower import cut_off_late
from ..headers import Headers
from ..settings import Settings
from ..sinks import SSESink
from ..stored.opening import StoreOwner
from ..stored.owned_store import OwnedStore
from ..stored.stored_response import StoredResponse
from .event_log import EventLog
from .listing import list_page
from .query import Query
from .routes import Route
from .upstream_deletion import delete_upstream

__all__ = ["Surface"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request about a response that the store knows."""

    store: OwnedStore
    stored: StoredResponse
    scope: Scope
    receive: Receive
    send: Send
    headers: Headers


class Surface:
    """Answers for the responses that the store knows; all others are the inner application's business.

    Args:
        app: the inner application.
        stores: gives the store.
        background: knows which responses still run.
        settings: the middleware's.
    """

    def __init__(self, app: ASGIApp, stores: StoreOwner, background: Background, settings: Settings) -> None:
        self._app = app
        self._stores = stores
        self._background = background
        self._settings = settings

    async def answer(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request about a response. If that was never seen here, the request passes as it is.

        Raises:
            StoreError: the store fails, and nobody can tell. The model server would not know ids of ours,
                and would show one owner's responses to another.
        """
        headers = answer_headers(scope, self._settings.cors_origins)
        try:
            owned = await self._stores.owned(scope)
            if owned is not None:
                store = owned.strict
                stored = await self._background.current(store, route.response_id)
                if stored is not None:
                    await self._answer(route, _Asked(store, stored, scope, receive, send, headers))
                    return
        except RequestError as error:
            await send_request_error(send, error, headers)
            return
        await self._app(scope, receive, send)

    async def _answer(self, route: Route, asked: _Asked) -> None:
        match route.kind:
            case "get" if asked.scope["method"] == "GET" and Query(asked.scope).truth("stream"):
                await self._replay(asked)
            case "get":
                await _show(asked, asked.stored)
            case "input_items":
                items = await asked.store.input_items(asked.stored)
                await _send(asked, dumps(list_page(items, Query(asked.scope))))
            case "cancel":
                await self._cancel(asked)
            case _:
                await self._delete(asked)

    async def _replay(self, asked: _Asked) -> None:
        """Tell the events again, and those that are still to come."""
        store, stored = asked.store, asked.stored
        log = EventLog(
            store,
            stored.id,
            Query(asked.scope).number("starting_after", -1, 0),
            partial(self._current, store, stored.id),
            self._settings.keepalive,
        )
        if not await log.begin() and not stored.running:
            raise RequestError(
                f"The events of response '{stored.id}' are not kept: only responses created with "
                "'stream' or 'background' have any, and they are the first to go when room is needed.",
                param="stream",
            )
        async with cut_off_late(self._settings, stored.id), asyncio.TaskGroup() as group:
            telling = group.create_task(_tell(log, asked))
            watching = group.create_task(_until_gone(asked.receive, telling))
            await asyncio.wait([telling])
            watching.cancel()

    async def _current(self, store: OwnedStore, response_id: str) -> StoredResponse | None:
        with suppress(RequestError):  # it was deleted meanwhile
            return await self._background.current(store, response_id)
        return None

    async def _cancel(self, asked: _Asked) -> None:
        stored: StoredResponse | None = asked.stored
        if not asked.stored.background:
            raise RequestError("Cannot cancel a synchronous response.", param="response_id")
        if asked.stored.running:
            stored = await self._background.cancel(asked.store, asked.stored)
        await _show(asked, stored or asked.stored)

    async def _delete(self, asked: _Asked) -> None:
        if asked.stored.running:
            await self._background.cancel(asked.store, asked.stored)
        stored = await asked.store.response(asked.stored.id) or asked.stored  # with all its turns
        await asked.store.delete(stored.id)
        await delete_upstream(self._app, asked.scope, stored.upstream)
        await _send(asked, dumps({"id": stored.id, "object": "response", "deleted": True}))


async def _show(asked: _Asked, stored: StoredResponse) -> None:
    await _send(asked, await asked.store.body(stored))


async def _send(asked: _Asked, body: bytes) -> None:
    await send_json(asked.send, 200, body, asked.headers)


async def _tell(log: EventLog, asked: _Asked) -> None:
    sink = SSESink(asked.send, asked.headers)
    sink.head(200, asked.headers)
    with suppress(OSError):  # how servers tell that the client has gone
        await sink.write(b"")  # the head need not wait for news
        async with aclosing(log.events()) as events:
            async for frames in events:
                await sink.write(frames)
        await sink.close(Finish(()))


async def _until_gone(receive: Receive, telling: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    telling.cancel()
