"""Faults on real sockets: a server that breaks off as told, the product in front of it, a client of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from asgi import draw, middleware
from faulty_server import Deed, FaultyServer
from imagecall.middleware.proxy import ProxyApp
from kite import kite_stream, usage
from loopback import uvicorn_server
from raw_client import RawClient
from rules import read_events
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp
from tally import TRIED
from waiting import no_hanging, settle

__all__ = ["Front", "World", "faulty_world", "mounted", "served", "tried"]

EXPECTED = kite_stream(spent=usage(200, 20))
"""The stream of a response that nothing has happened to."""


Front = Callable[[str, Any, dict[str, Any]], ASGIApp]


def served(upstream: str, backend: Any, settings: dict[str, Any]) -> ASGIApp:
    """Build what `imagecall serve` serves."""
    return middleware(ProxyApp(upstream), backend, **settings)


def mounted(upstream: str, backend: Any, settings: dict[str, Any]) -> ASGIApp:
    """Build an application with middlewares of its own around the same."""

    proxy = ProxyApp(upstream)

    def build(app: ASGIApp) -> ASGIApp:
        return middleware(app, backend, **settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with aclosing(proxy):
            yield

    return Starlette(routes=[Mount("/", proxy)], middleware=[Middleware(build)], lifespan=lifespan)


class World:
    """A client, the product, and a model server, each on its own sockets.

    Attributes:
        url: the product's.
        upstream: the model server.
    """

    def __init__(self, url: str, upstream: FaultyServer, group: asyncio.TaskGroup, *, counts: bool) -> None:
        self._counts = counts
        self.url = url
        self.upstream = upstream
        self._group = group

    @asynccontextmanager
    async def client(
        self, *, stream: bool = True, path: str = "/v1/responses", method: str = "POST", **more: Any
    ) -> AsyncIterator[RawClient]:
        """Ask for a picture, while the body of the `with` goes on; then leave, and no task may be left."""
        before = asyncio.all_tasks()
        client = await RawClient.connect(self.url)
        self.upstream.client = client
        reading = self._group.create_task(client.read())
        client.ask(draw(stream=stream, **more), path=path, method=method)
        try:
            yield client
        finally:
            client.leave()
            reading.cancel()
        while self._counts and _others(before):
            await settle()

    async def ask(self, **how: Any) -> RawClient:
        """Ask for a picture, and wait until the connection is closed."""
        async with self.client(**how) as client:
            await client.heard_all()
        return client

    async def is_well(self) -> None:
        """See that the next request is served as if nothing had happened."""
        client = await self.ask()
        assert client.verdict() == "completed 1"
        types = [event["type"] for event in read_events(client.body)]
        assert types == [event["type"] for event in EXPECTED]


_LASTING = ("FaultyServer._serve", "Lifetime._own")
"""Tasks that outlive a request: a server's idle connection, a backend that is open now."""


def _others(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Tell which tasks are left of a request."""
    left = asyncio.all_tasks() - before
    return {task for task in left if not any(name in repr(task) for name in _LASTING)}


@asynccontextmanager
async def faulty_world(
    front: Front,
    backend: Any,
    *deeds: Deed,
    listening: bool = True,
    counts: bool = True,
    **settings: Any,
) -> AsyncIterator[World]:
    """Run all three. A test that hangs fails.

    Args:
        front: builds the product.
        backend: its picture maker.
        *deeds: the model server's first ones.
        listening: whether the model server listens from the beginning on.
        counts: whether no task may be left of a request.
        **settings: the product's.
    """
    upstream = FaultyServer(*deeds)
    if listening:
        await upstream.listen()
    with no_hanging() as deadline:
        async with deadline:
            try:
                async with (
                    uvicorn_server(front(upstream.url, backend, settings)) as url,
                    asyncio.TaskGroup() as group,
                ):
                    yield World(url, upstream, group, counts=counts)
            finally:
                await upstream.aclose()


def tried(kind: str, faults: Sequence[Any] = (1,)) -> None:
    """Count a fault for the summary."""
    TRIED[f"faults of {kind}"] += len(faults)
