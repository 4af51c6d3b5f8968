"""MCP servers to make pictures with: two real ones, over stdio and over HTTP, and ways to get at them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.backends.mcp import MCPBackend
from mcp_servers import fast, official
from mcp_servers.studio import Studio
from serving import serve
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from waiting import no_hanging

__all__ = [
    "HTTP",
    "KINDS",
    "PYTHONPATH",
    "STDIO",
    "Front",
    "command",
    "http_backend",
    "no_preview",
    "paint",
    "refusal",
    "serving",
    "stdio_backend",
]

STDIO = {"official stdio": official, "fastmcp stdio": fast}
HTTP = {"official http": official, "fastmcp http": fast}
KINDS = [*STDIO, *HTTP]

PYTHONPATH = {"PYTHONPATH": str(Path(__file__).parent)}


async def no_preview(_: object) -> None:
    raise AssertionError("MCP has no previews")


async def paint(backend: MCPBackend, prompt: str, **options: Any) -> Image:
    return await backend.generate(ImageRequest(prompt, **options), no_preview)


async def refusal(backend: MCPBackend, prompt: str, **options: Any) -> ImageError:
    """Ask for a picture that must fail, and give the failure."""
    with pytest.raises(ImageError) as caught:
        await paint(backend, prompt, **options)
    return caught.value


def command(server: ModuleType) -> list[str]:
    return [sys.executable, "-m", server.__name__]


@asynccontextmanager
async def stdio_backend(server: ModuleType, **options: Any) -> AsyncIterator[MCPBackend]:
    """Open a backend that starts a server."""
    env = {**PYTHONPATH, **options.pop("env", {})}
    async with MCPBackend(command=command(server), env=env, **options) as backend:
        yield backend


@asynccontextmanager
async def http_backend(app: ASGIApp, **options: Any) -> AsyncIterator[MCPBackend]:
    """Serve a server as long as the backend is open; a test that hangs then fails."""
    with serve(app) as url, no_hanging() as deadline:
        async with deadline, MCPBackend(url=f"{url}/mcp", **options) as backend:
            yield backend


@contextmanager
def serving(server: ModuleType, **options: Any) -> Iterator[str]:
    """Serve one of the servers; yield its URL."""
    with serve(server.http_app(Studio(), **options)) as url:
        yield f"{url}/mcp"


class Front:
    """Stands before a server's application: notes each request, and may answer in its place.

    Args:
        app: the server.
        key: demanded as a bearer token; None for an open server.
        legacy: refuse the newest way to begin a session, as older servers do.

    Attributes:
        headers: those of all requests, in order.
        bodies: those of all requests.
        queries: those of all requests' URLs.
        refusing: a status that answers all requests while it is set.
        cutting: how many tool calls still get an answer that ends before it has begun.
        instead: headers and a body that answer all tool calls while they are set.
    """

    def __init__(self, app: ASGIApp, *, key: str | None = None, legacy: bool = False) -> None:
        self.headers: list[dict[bytes, bytes]] = []
        self.bodies: list[bytes] = []
        self.refusing = 0
        self.queries: list[bytes] = []
        self.cutting = 0
        self.instead: tuple[dict[bytes, bytes], bytes] | None = None
        self._app = app
        self._key = key
        self._legacy = legacy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        body = await _body(receive)
        self.headers.append(headers)
        self.bodies.append(body)
        self.queries.append(scope["query_string"])
        if self.refusing:
            await _answer(send, self.refusing)
        elif self._key is not None and headers.get(b"authorization") != f"Bearer {self._key}".encode():
            await _answer(send, 401)
        elif self._legacy and b'"server/discover"' in body:
            await _answer(send, 404)
        elif self.instead and b'"tools/call"' in body:
            await _answer(send, 200, [*self.instead[0].items()], self.instead[1])
        elif self.cutting and b'"tools/call"' in body:
            self.cutting -= 1
            await _answer(send, 200, [(b"content-type", b"text/event-stream")], b": no more\n\n")
        else:
            await self._app(scope, _once(body, receive), send)


async def _body(receive: Receive) -> bytes:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answer(
    send: Send, status: int, headers: Sequence[tuple[bytes, bytes]] = (), body: bytes = b"no"
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers]})
    await send({"type": "http.response.body", "body": body})


def _once(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
