"""`ProxyApp` while things flow: order, liveness, cuts, and a real server in front."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import aiohttp
import pytest
from imagecall.middleware.proxy import ProxyApp, UpstreamCutError
from loopback import (
    END,
    STREAM,
    STREAM_HEAD,
    Client,
    Upstream,
    ask,
    body_message,
    body_of,
    http_scope,
    piece,
    raw_server,
    read_request,
    uvicorn_server,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import Message


async def test_each_chunk_is_handed_on_before_the_next_one_is_made() -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        for _ in range(2):  # the second time over the connection that was kept
            client = Client(app, http_scope())
            client.send_body(b"")
            async with asyncio.TaskGroup() as group:
                group.create_task(client.run())
                await upstream.connected.wait()
                await read_request(upstream.reader)
                upstream.writer.write(STREAM)
                assert await client.hears.get() == STREAM_HEAD
                for number in range(3):
                    frame = b"data: %d\n\n" % number
                    upstream.writer.write(piece(frame))
                    assert await client.hears.get() == body_message(frame)
                upstream.writer.write(b"0\r\n\r\n")
                assert await client.hears.get() == END
        upstream.released.set()


async def test_a_request_body_flows_while_it_is_being_sent() -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope(headers=[(b"transfer-encoding", b"chunked")]))
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            client.send_body(b"one", more_body=True)
            await upstream.connected.wait()
            await upstream.reader.readuntil(b"3\r\none\r\n")
            client.send_body(b"two")
            await upstream.reader.readuntil(b"3\r\ntwo\r\n0\r\n\r\n")
            upstream.writer.write(STREAM + b"0\r\n\r\n")
        upstream.released.set()
    assert client.rest() == [STREAM_HEAD, END]


async def test_an_answer_that_comes_before_the_body_has_ended_is_passed_on() -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope(headers=[(b"content-length", b"1000")]))
        client.send_body(b"x", more_body=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await upstream.connected.wait()
            await upstream.reader.readuntil(b"x")
            upstream.writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            assert await upstream.rest() == b""
        upstream.released.set()
    assert client.rest() == [
        {"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]},
        END,
    ]


async def test_a_line_of_three_megabytes_passes() -> None:
    line = b'data: {"result":"' + b"iVBORw0K" * 375_000 + b'"}\n\n'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(STREAM + piece(line) + b"0\r\n\r\n")
        await writer.drain()
        await reader.read()

    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        assert body_of(await ask(app, http_scope(), b"{}")) == line


async def test_two_hundred_streams_are_open_at_once() -> None:
    started = asyncio.Barrier(200)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_request(reader)
        writer.write(STREAM + piece(b"first"))
        await started.wait()
        writer.write(piece(asked.partition(b"\r\n\r\n")[2]) + b"0\r\n\r\n")
        await reader.read()

    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        length = [(b"content-length", b"3")]
        answers = await asyncio.gather(
            *(ask(app, http_scope(headers=length), b"%03d" % number) for number in range(200))
        )
    assert [body_of(answer) for answer in answers] == [b"first%03d" % number for number in range(200)]


@pytest.mark.parametrize(
    "answer",
    [
        STREAM + piece(b"data: 1\n\n"),
        STREAM + piece(b"data: 1\n\n") + b"5\r\nda",
        STREAM + piece(b"data: 1\n\n") + b"zz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 10\r\n\r\ndata: 1\n\n",
    ],
    ids=["between chunks", "inside a chunk", "not a chunk", "short of its length"],
)
async def test_a_body_that_breaks_off_raises_and_is_never_ended(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        head, _, body = answer.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        await head_is_there.wait()
        writer.write(body)

    head_is_there = asyncio.Event()
    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope())
        client.send_body(b"")

        async def follow() -> None:
            assert (await client.hears.get())["status"] == 200
            head_is_there.set()

        with pytest.raises(UpstreamCutError, match=f"{url} broke off in the middle of its answer") as caught:
            await asyncio.gather(client.run(), follow())
    assert isinstance(caught.value.__cause__, aiohttp.ClientError)
    assert END not in client.rest()


async def test_a_reset_in_the_middle_raises_too() -> None:
    upstream = Upstream()
    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope())
        client.send_body(b"")
        running = asyncio.ensure_future(client.run())
        await upstream.connected.wait()
        upstream.writer.write(STREAM + piece(b"data: 1\n\n"))
        assert [await client.hears.get(), await client.hears.get()] == [
            STREAM_HEAD,
            body_message(b"data: 1\n\n"),
        ]
        upstream.writer.transport.abort()
        with pytest.raises(UpstreamCutError):
            await running
        assert client.rest() == []
        upstream.released.set()


async def test_a_body_that_ends_with_the_connection_is_whole() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall there is")

    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        assert body_of(await ask(app, http_scope())) == b"all there is"


async def test_an_error_of_the_servers_send_comes_out_as_it_is() -> None:
    upstream = Upstream()
    gone = OSError("the client is gone")

    async def send(message: Message) -> None:
        raise gone

    async with raw_server(upstream.serve) as url, aclosing(ProxyApp(url)) as app:
        client = Client(app, http_scope())
        client.send_body(b"")
        running = asyncio.ensure_future(app(http_scope(), client.says.get, send))
        await upstream.connected.wait()
        await read_request(upstream.reader)
        upstream.writer.write(STREAM)
        with pytest.raises(OSError, match="the client is gone") as caught:
            await running
        assert caught.value is gone
        assert await upstream.rest() == b""
        upstream.released.set()


async def countdown(request: Request) -> StreamingResponse:
    asked = await request.body()

    async def frames() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"data: %d %b\n\n" % (number, asked)

    return StreamingResponse(frames(), media_type="text/event-stream")


async def test_real_servers_in_front_and_behind_carry_a_stream() -> None:
    behind = Starlette(routes=[Route("/v1/responses", countdown, methods=["POST"])])
    async with uvicorn_server(behind) as upstream, uvicorn_server(ProxyApp(upstream)) as url:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/responses", data=b"hi") as lost:
            assert lost.status == 404
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v1/responses", data=b"hi") as answer,
        ):
            assert answer.status == 200
            assert answer.content_type == "text/event-stream"
            assert await answer.read() == b"data: 0 hi\n\ndata: 1 hi\n\ndata: 2 hi\n\n"


async def test_a_real_server_in_front_passes_the_cut_on() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(STREAM + piece(b"data: 1\n\n"))
        await cut.wait()

    cut = asyncio.Event()
    async with (
        raw_server(serve) as upstream,
        uvicorn_server(ProxyApp(upstream)) as url,
        aiohttp.ClientSession() as session,
        session.post(url, data=b"hi") as answer,
    ):
        assert await answer.content.readany() == b"data: 1\n\n"
        cut.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.readany()
