"""`ProxyApp` and clients that leave: when the upstream is told, and when nobody must be disturbed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from imagecall.middleware.proxy import ProxyApp
from loopback import (
    END,
    STREAM,
    STREAM_HEAD,
    Client,
    Upstream,
    body_message,
    http_scope,
    piece,
    raw_server,
    read_request,
)
from starlette.types import Message
from waiting import no_hanging


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (b"", []),
        (STREAM, [STREAM_HEAD]),
        (STREAM + piece(b"data: 1\n\n"), [STREAM_HEAD, body_message(b"data: 1\n\n")]),
    ],
    ids=["before the head", "after the head", "in the body"],
)
async def test_when_the_client_leaves_the_upstream_connection_is_closed(
    answer: bytes, heard: list[Message]
) -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope())
        client.send_body(b"")
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await upstream.connected.wait()
            await read_request(upstream.reader)
            upstream.writer.write(answer)
            assert [await client.hears.get() for _ in heard] == heard
            client.send_body(b"")  # a server may repeat itself
            client.say("http.disconnect")
            assert await upstream.rest() == b""
        upstream.released.set()
    assert client.rest() == []


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_the_upstreams_unfinished() -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope(headers=[(b"transfer-encoding", b"chunked")]))
        client.send_body(b"half", more_body=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await upstream.connected.wait()
            await upstream.reader.readuntil(b"4\r\nhalf\r\n")
            client.say("http.disconnect")
            assert await upstream.rest() == b""
        upstream.released.set()
    assert client.rest() == []


async def test_a_client_that_has_sent_all_of_a_large_body_may_leave_while_nobody_reads_it() -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        size = 20 << 20
        client = Client(app, http_scope(headers=[(b"content-length", b"%d" % size)]))
        client.send_body(b"x" * size)
        with no_hanging() as deadline:
            async with deadline, asyncio.TaskGroup() as group:
                group.create_task(client.run())
                await upstream.connected.wait()
                upstream.writer.transport.pause_reading()
                client.say("http.disconnect")
        upstream.released.set()
    assert client.rest() == []


async def test_a_client_that_has_left_already_is_not_forwarded() -> None:
    client = Client(ProxyApp("http://127.0.0.1:9"), http_scope())
    client.say("http.disconnect")
    await client.run()
    assert client.rest() == []


async def test_a_disconnect_reported_for_a_finished_response_disturbs_nobody() -> None:
    upstream = Upstream()
    finished = asyncio.Event()

    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope())
        client.send_body(b"")

        async def send(message: Message) -> None:
            if message == END:
                client.say("http.disconnect")
                for _ in range(5):
                    await asyncio.sleep(0)
                finished.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(app(http_scope(), client.says.get, send))
            await upstream.connected.wait()
            upstream.writer.write(STREAM + b"0\r\n\r\n")
        upstream.released.set()
    assert finished.is_set()
