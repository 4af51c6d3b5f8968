"""A client that asks about responses that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgi import Client, ask, post
from rules import read_events
from starlette.types import ASGIApp

__all__ = ["asking", "delete", "final", "get", "missing"]

Header = tuple[bytes, bytes]


async def asking(
    app: ASGIApp,
    method: str,
    tail: str,
    query: str = "",
    *,
    headers: Sequence[Header] = (),
    base: str = "/v1/responses",
    body: Any = b"",
    **more: Any,
) -> Client:
    """Make one request below the endpoint."""
    path = f"{base}/{tail}"
    scope = post(path, headers, method=method, query_string=query.encode())
    return await ask(app, body, scope, **more)


async def get(app: ASGIApp, tail: str, query: str = "", **more: Any) -> Client:
    return await asking(app, "GET", tail, query, **more)


async def delete(app: ASGIApp, tail: str, **more: Any) -> Client:
    return await asking(app, "DELETE", tail, **more)


def final(client: Client) -> Any:
    """Return the response object with which a client's stream ended."""
    return read_events(client.body)[-1]["response"]


def missing(identifier: str) -> Any:
    """Make the answer about a response that is not there, or not for this client."""
    error = {"message": f"Response with id '{identifier}' not found.", "type": "invalid_request_error"}
    return {"error": {**error, "param": None, "code": None}}
