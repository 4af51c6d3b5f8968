"""An ASGI app that stands for a model server elsewhere: it forwards whatever it is asked to a URL.

It adds nothing and keeps nothing. Bodies stream both ways, as bytes and as they come; only the
hop-by-hop headers of RFC 9110, section 7.6.1, belong to one connection and are left behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import anyio
from anyio.abc import TaskGroup
from starlette.types import Receive, Scope, Send
from yarl import URL

from .answers import error_body
from .bridge import bridge
from .client import Client
from .headers import request_headers, response_headers
from .request_id import forwarded, returned
from .telemetry.propagation import add_trace_headers
from .upstream import UpstreamURL

__all__ = ["ProxyApp", "UpstreamCutError"]

log = logging.getLogger("imagecall")

_KEEPALIVE = 2.0
"""Seconds for which an idle connection is kept. uvicorn, Node and cpp-httplib close theirs after five: a POST
that meets such a close cannot be told from one that was half done, and must not be sent again. On a busy
machine both ends learn of each other late: with four seconds, stalls of one were enough for them to meet."""

_MAX_HEADER = 64 << 10
"""Bytes of one response header: gateways put more into one than aiohttp's 8 KiB."""

_CHECK = aiohttp.ClientTimeout(total=2.0)
"""For a question that every model server answers at once."""

_SKIP_AUTO_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class UpstreamCutError(Exception):
    """The upstream's body broke off; the server above must not end the client's body as if it were whole."""


class ProxyApp:
    """Forward HTTP requests and WebSockets to `upstream`, such as `http://127.0.0.1:8000/v1`.

    How the client's path joins the upstream's is told by `UpstreamURL`.

    An upstream that cannot be reached is a 502 in OpenAI's error envelope; one that breaks off in
    the middle of its body makes the call raise `UpstreamCutError`. The connections are opened at
    first use or at the lifespan's startup, and closed at its shutdown or by `aclose`.

    Args:
        upstream: an http or https URL without user, password, query or fragment; anything else is
            a ValueError, whose text never repeats it.
        connect_timeout: seconds that one attempt to connect may take. Nothing else is timed here:
            a model may think for long.
    """

    def __init__(self, upstream: str, *, connect_timeout: float = 10.0) -> None:
        self._upstream = UpstreamURL(upstream)
        self._connect_timeout = connect_timeout
        self._session: aiohttp.ClientSession | None = None
        self._bodies: dict[asyncio.Future[None], aiohttp.StreamReader] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: `http`, `websocket` or `lifespan`."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._lifespan(receive, send)
        elif kind not in ("http", "websocket"):
            raise NotImplementedError(f"ProxyApp forwards no ASGI scope of type {kind!r}")
        elif (target := self._upstream.target(scope)) is None:
            await _refuse(
                scope, send, 400, "The request's target must be a path.", "invalid_request_error", None
            )
        elif kind == "http":
            await self._http(scope, receive, send, target)
        else:
            await self._websocket(scope, receive, send, target)

    async def aclose(self) -> None:
        """Close all connections; a later request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def check(self) -> str:
        """Say what is wrong with the upstream; "" if it answers with anything but an error of its own."""
        target = self._upstream.target({"path": "/v1/models"})
        assert target is not None
        try:
            answer = await self._open().get(target, allow_redirects=False, timeout=_CHECK)
        except (aiohttp.ClientError, TimeoutError):
            return "The model server cannot be reached."
        answer.close()
        return f"The model server answers {answer.status}." if answer.status >= 500 else ""

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
                auto_decompress=False,
                skip_auto_headers=_SKIP_AUTO_HEADERS,
                max_line_size=_MAX_HEADER,
                max_field_size=_MAX_HEADER,
            )
        return self._session

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._open()
        await send({"type": "lifespan.startup.complete"})
        try:
            await receive()
        finally:
            await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send, target: URL) -> None:
        first = await receive()
        if first["type"] == "http.disconnect":
            return
        client = Client(receive, first)
        del first  # its body may be megabytes, and the answer may take minutes
        async with client:
            await _hear_of_closes()
            try:
                response = await self._open().request(
                    scope["method"],
                    target,
                    headers=_asking(scope),
                    data=client.body(),
                    allow_redirects=False,
                )
            except aiohttp.ClientError as error:
                client.let_go()
                await self._unreachable(scope, send, error)
            else:
                await self._answer(response, client, send)

    async def _answer(self, response: aiohttp.ClientResponse, client: Client, send: Send) -> None:
        origin = str(self._upstream.origin).encode()
        headers = returned(response_headers(response.status, response.raw_headers, origin))
        body = self._watched_body(response)
        try:
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await self._forward(body, send)
        finally:
            response.close()
        # Servers report a disconnect after a whole response, too: stop listening before it is whole.
        client.let_go()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward(self, body: aiohttp.StreamReader, send: Send) -> None:
        """Send all that has come, again and again, to the body's true end."""
        while True:
            try:
                chunk = await body.readany()
            except (aiohttp.ClientError, RuntimeError) as error:  # RuntimeError: it was closed a moment ago
                raise UpstreamCutError(
                    f"{self._upstream.origin} broke off in the middle of its answer"
                ) from error
            if not chunk:
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    def _watched_body(self, response: aiohttp.ClientResponse) -> aiohttp.StreamReader:
        """Return the body, which will fail when its connection is lost before its end.

        By itself aiohttp closes the connection when something else stands where a chunk should
        begin, but leaves the reader of the body waiting for ever.
        """
        connection = response.connection  # None for a body that has ended already
        protocol = connection.protocol if connection else None
        closed = None if protocol is None else protocol.closed
        if closed is not None:
            if closed not in self._bodies:
                closed.add_done_callback(self._lost)
            self._bodies[closed] = response.content
        return response.content

    def _lost(self, closed: asyncio.Future[None]) -> None:
        closed.exception()  # asyncio complains of errors that nobody looked at
        body = self._bodies.pop(closed)
        if not body.is_eof() and not body.exception():
            body.set_exception(aiohttp.ClientPayloadError("the connection was lost"))

    async def _websocket(self, scope: Scope, receive: Receive, send: Send, target: URL) -> None:
        await receive()
        try:
            upstream = await self._open().ws_connect(
                target,
                protocols=scope.get("subprotocols", ()),
                headers=_asking(scope),
                max_msg_size=0,
            )
        except aiohttp.ClientError as error:
            if isinstance(error, aiohttp.WSServerHandshakeError) and error.status >= 400:
                message = "The model server refused the WebSocket."
                await _refuse(scope, send, error.status, message, "upstream_error", None)
            else:
                await self._unreachable(scope, send, error)
            return
        async with upstream:
            await send({"type": "websocket.accept", "subprotocol": upstream.protocol})
            async with _task_group() as group:
                await bridge(group, receive, send, upstream)

    async def _unreachable(self, scope: Scope, send: Send, error: aiohttp.ClientError) -> None:
        match error:
            case TimeoutError():
                reason = f"no connection within {self._connect_timeout:g} seconds"
            case OSError(strerror=str(text)):
                reason = text
            case _:
                reason = "the connection failed before a valid answer came"
        # Where the model server is concerns whoever runs this, not the client.
        log.warning("The model server at %s cannot be reached: %s.", self._upstream.origin, reason)
        message = "The model server cannot be reached."
        await _refuse(scope, send, 502, message, "upstream_error", "upstream_unreachable")


def _asking(scope: Scope) -> list[tuple[str, str]]:
    """Make the headers of the request to the upstream, its name and its trace among them if it has any."""
    return request_headers(add_trace_headers(forwarded(scope["headers"])))


async def _hear_of_closes() -> None:
    """Let the loop look at its sockets: what servers have closed while it was busy must not be used again.

    The first step looks, the second hears of an end, in the third the connection is lost.
    """
    for _ in range(3):
        await asyncio.sleep(0)


@asynccontextmanager
async def _task_group() -> AsyncIterator[TaskGroup]:
    """Open a task group whose error comes out as it was raised, not inside an ExceptionGroup."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__


async def _refuse(scope: Scope, send: Send, status: int, message: str, kind: str, code: str | None) -> None:
    """Answer with OpenAI's error envelope; a WebSocket gets it where the server can send it."""
    if scope["type"] == "http":
        prefix = "http.response"
    elif "websocket.http.response" in (scope.get("extensions") or {}):
        prefix = "websocket.http.response"
    else:
        await send({"type": "websocket.close"})
        return
    body = error_body(message, kind=kind, code=code)
    own = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers = returned(own)
    await send({"type": f"{prefix}.start", "status": status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": body, "more_body": False})
