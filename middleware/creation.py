"""Requests that create a response, whatever carried them: looked up, lowered, and answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Receive, Scope, Send

from ..events.item_ids import ItemIds
from ..events.known import Known
from ..events.lowering import LoweredRequest, lower_request, references
from ..events.response import ClientResponse
from ..events.sse import payload_of
from ..events.translator import Translator
from ..events.wire import dumps, loads
from .background.background import Background
from .background.follower import cut_off_late
from .background.job import Job
from .background.leases import Leases
from .body import with_body
from .edits.fetcher import Fetcher
from .edits.pictures import Pictures
from .edits.workspace import Workspace
from .exchange import Exchange
from .shared import Shared
from .sinks import Sink
from .stored.keeper import Keeper
from .stored.lookup import conversation_id
from .stored.opening import StoreOwner
from .stored.owned_store import OwnedStore
from .stored.settling import SettlingSink
from .telemetry.response import ObservedResponse
from .turns import rewritten_scope

__all__ = ["Creation", "Prepared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that concerns the product.

    Attributes:
        lowered: what the model server is asked, and what must be remembered to answer the client.
        stream: whether the client wants a stream.
        request: the client's.
        known: what is known of that to which it refers.
        store: what belongs to its owner; None where nothing is kept.
    """

    lowered: LoweredRequest
    stream: bool
    request: Mapping[str, Any]
    known: Known
    store: OwnedStore | None


class Creation:
    """Answers requests that create a response.

    Args:
        shared: what all exchanges share.
        stores: gives the store.
        background: runs responses for which nobody waits.
        new_id: makes an id that begins with the given prefix and an underscore.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        shared: Shared,
        stores: StoreOwner,
        background: Background,
        *,
        new_id: Callable[[str], str],
        now: Callable[[], float],
    ) -> None:
        settings = shared.settings
        self._shared = shared
        self._stores = stores
        self._background = background
        self._new_id = new_id
        self._now = now
        self._limits = settings.limits()
        self._ids = ItemIds()
        options = settings.lowering(backend=shared.routing.present)
        self._options = {kept: replace(options, background=kept) for kept in (True, False)}
        hosts, folder, most = settings.fetch_hosts, settings.workspace_dir, settings.max_image
        self._fetcher = Fetcher(hosts, max_bytes=most) if hosts else None
        self._workspace = Workspace(folder, max_bytes=most) if folder else None

    async def prepare(self, scope: Scope, request: Mapping[str, Any]) -> Prepared | None:
        """Look up what a request refers to, and lower it.

        Returns:
            None when there is nothing to do: the original bytes can travel on.

        Raises:
            RequestError: the client must mend its request.
        """
        store = await self._stores.owned(scope)
        known = await store.known(request) if store is not None and _refers(request) else Known()
        lowered = lower_request(request, known, self._options[store is not None])
        if lowered is None:
            return None
        stream = request.get("stream") is True
        return Prepared(lowered, stream, request, known, store)

    async def run(self, prepared: Prepared, scope: Scope, receive: Receive, send: Send, sink: Sink) -> None:
        """Answer a request.

        Args:
            prepared: the request.
            scope: of the connection that carried it.
            receive: tells when the client has gone, by an `http.disconnect`.
            send: takes the messages of an answer that is no success, or needs no translation.
            sink: takes the events of any other.
        """
        lowered = prepared.lowered
        if lowered.tool is None:
            await self._pass_on(dumps(lowered.body), scope, receive, send)
        elif lowered.background:
            await self._run_in_background(prepared, scope, receive, send, sink)
        else:
            keeper = _keeper(prepared, prepared.store) if prepared.store and lowered.keep else None
            if keeper is None:
                sink = _settling(prepared, sink)
            await self._exchange(prepared, scope, receive, send, sink, keeper).run()

    async def derive(self, prepared: Prepared, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the model server answer what else may be asked with such a request: the answer is its own."""
        body = {**prepared.lowered.body}
        if "stream" not in prepared.request:
            del body["stream"]
        await self._pass_on(dumps(body), scope, receive, send)

    async def _pass_on(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        await self._shared.app(rewritten_scope(scope, len(body)), with_body(body, receive), send)

    async def _run_in_background(
        self, prepared: Prepared, scope: Scope, receive: Receive, send: Send, sink: Sink
    ) -> None:
        assert prepared.store is not None, "lowering refuses it without a store"
        keeper = _keeper(prepared, prepared.store)
        leases = Leases(prepared.store.shared)
        queued = self._queued(prepared.lowered)
        job = Job(queued, keeper, leases, stream=prepared.stream, send=send, sink=sink)
        exchange = self._exchange(prepared, scope, job.receive, job.pass_on, job, keeper, job.id)
        async with cut_off_late(self._shared.settings, job.id):
            await self._background.run(job, exchange, receive)

    def _exchange(
        self,
        prepared: Prepared,
        scope: Scope,
        receive: Receive,
        send: Send,
        sink: Sink,
        keeper: Keeper | None,
        response_id: str | None = None,
    ) -> Exchange:
        settings = self._shared.settings
        translator = Translator(
            prepared.lowered,
            new_id=self._new_id,
            now=self._now,
            limits=self._limits,
            strict_arguments=settings.strict_arguments,
            feedback=settings.feedback,
            response_id=response_id,
            claim=self._ids.claim,
        )
        pictures = Pictures(
            prepared.store,
            self._fetcher,
            self._workspace,
            max_bytes=settings.max_image,
            max_pixels=settings.max_pixels,
        )
        model = prepared.request.get("model")
        observed = ObservedResponse(self._shared.telemetry, scope, translator, model)
        return Exchange(
            self._shared,
            prepared.lowered.body,
            scope,
            receive,
            send,
            translator,
            sink,
            observed=observed,
            keeper=keeper,
            pictures=pictures,
        )

    def _queued(self, lowered: LoweredRequest) -> dict[str, Any]:
        """Make the response object as it is before anything has happened."""
        client = ClientResponse(
            echo=lowered.echo,
            defaults=lowered.defaults,
            new_id=self._new_id,
            now=self._now,
            response_id=self._new_id("resp"),
        )
        created = loads(payload_of(client.begin({})[0]))
        return {**created["response"], "status": "queued"}


def _refers(request: Mapping[str, Any]) -> bool:
    """Whether there is anything to look up."""
    return bool(request.get("previous_response_id") or request.get("conversation") or references(request))


def _keeper(prepared: Prepared, store: OwnedStore) -> Keeper:
    # In the background the events are logged as they come; an answer in JSON has none.
    logs = prepared.stream and not prepared.lowered.background
    return Keeper(store, prepared.request, prepared.known, logs=logs)


def _settling(prepared: Prepared, sink: Sink) -> Sink:
    """Let a response of which nothing is kept pay at least what its conversation owed."""
    conversation = conversation_id(prepared.request)
    if prepared.store is None or not prepared.known.owed or conversation is None:
        return sink
    return SettlingSink(sink, prepared.store, conversation)
