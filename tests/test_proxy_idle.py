"""Idle connections to the model server: used again at once, and given up long before servers close theirs."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing

import aiohttp.connector
import pytest
from imagecall.middleware.proxy import ProxyApp
from loopback import ask, http_scope, raw_server, read_request
from test_proxy import OK, OK_MESSAGES

_COMMON = 5
"""Seconds after which uvicorn, Node and cpp-httplib close a connection."""
_STALL = 2.5
"""Seconds by which either side may be late."""


@pytest.mark.parametrize(("idle", "connections"), [(0.0, 1), (_COMMON - _STALL, 2)])
async def test_an_idle_connection_is_used_again_only_as_long_as_no_common_server_closes_it(
    idle: float, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while await read_request(reader):
            writer.write(OK)

    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        assert await ask(app, http_scope("/x")) == OK_MESSAGES
        now = aiohttp.connector.monotonic
        monkeypatch.setattr(aiohttp.connector, "monotonic", lambda: now() + idle)
        assert await ask(app, http_scope("/x")) == OK_MESSAGES
    assert opened == connections


async def test_a_loop_that_was_busy_uses_no_connection_that_the_server_has_closed_meanwhile() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)

        async def answer() -> socket.socket:
            link, _ = await loop.sock_accept(listener)
            await loop.sock_recv(link, 1 << 16)
            await loop.sock_sendall(link, OK)
            return link

        host, port = listener.getsockname()
        async with aclosing(ProxyApp(f"http://{host}:{port}")) as app:
            answering = asyncio.create_task(answer())
            assert await ask(app, http_scope("/x")) == OK_MESSAGES
            first = await answering
            answering = asyncio.create_task(answer())
            first.close()  # and nothing may run before the next request
            assert await ask(app, http_scope("/x")) == OK_MESSAGES
            (await answering).close()
