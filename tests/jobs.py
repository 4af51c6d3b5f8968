"""A client of responses that are made in the background, while tasks of theirs come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from asgi import Client, draw, lifespan, middleware, post
from starlette.types import ASGIApp
from waiting import no_hanging, settle

__all__ = ["asked", "begun", "ended", "look", "running"]


@asynccontextmanager
async def running(server: Any, painter: Any, **settings: Any) -> AsyncIterator[Any]:
    """Run the middleware within its lifespan; nothing of it is left at the end."""
    before = asyncio.all_tasks()
    app = middleware(server, painter, **settings)
    async with lifespan(app):
        yield app
    assert not app._background._jobs
    assert asyncio.all_tasks() == before


async def asked(
    app: ASGIApp,
    method: str = "POST",
    tail: str = "",
    query: str = "",
    *,
    headers: Sequence[tuple[bytes, bytes]] = (),
    body: Any = b"",
) -> Client:
    """Make one whole request."""
    scope = post(f"/v1/responses{tail}", headers, method=method, query_string=query.encode())
    client = Client(app, body, scope)
    with no_hanging() as deadline:
        async with deadline:
            await client.run()
    if client.raised is not None:
        raise client.raised
    return client


async def begun(app: ASGIApp, *, headers: Sequence[tuple[bytes, bytes]] = (), **more: Any) -> Any:
    """Begin a response in the background; return it as it is queued."""
    client = await asked(app, body=draw(background=True, stream=False, **more), headers=headers)
    assert client.status == 200, client.body
    return client.json


async def look(app: ASGIApp, identifier: str, **more: Any) -> Any:
    """Return a response as it is now."""
    return (await asked(app, "GET", f"/{identifier}", **more)).json


async def ended(app: ASGIApp, identifier: str) -> Any:
    """Wait until a response has ended, and return it."""
    with no_hanging() as deadline:
        async with deadline:
            while (response := await look(app, identifier))["status"] in ("queued", "in_progress"):
                await settle()
    return response
