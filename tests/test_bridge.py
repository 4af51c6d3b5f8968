"""WebSockets through `ProxyApp`: messages, subprotocols, close codes, refusals."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from imagecall.middleware.proxy import ProxyApp
from loopback import Client, raw_server, uvicorn_server
from starlette.types import Message, Receive, Scope, Send

Talk = Callable[[Receive, Send], Awaitable[None]]


class Behind:
    """The upstream: answers WebSockets with `talk` or an echo, keeps the scopes and how the client left."""

    def __init__(self, talk: Talk | None = None) -> None:
        self.talk = talk or self.echo
        self.scopes: list[Scope] = []
        self.farewells: asyncio.Queue[Message] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        self.scopes.append(scope)
        assert await receive() == {"type": "websocket.connect"}
        await self.talk(receive, send)

    async def echo(self, receive: Receive, send: Send) -> None:
        """Accept the last subprotocol and say everything again."""
        await send({"type": "websocket.accept", "subprotocol": self.scopes[-1]["subprotocols"][-1]})
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        self.farewells.put_nowait(message)


def ws_scope(**more: Any) -> Scope:
    return {
        "type": "websocket",
        "path": "/v1/realtime",
        "raw_path": b"/v1/realtime",
        "query_string": b"model=m%20m",
        "root_path": "",
        "headers": [
            (b"host", b"imagecall.example"),
            (b"authorization", b"Bearer k"),
            (b"sec-websocket-key", b"mine"),
            (b"sec-websocket-extensions", b"permessage-deflate"),
            (b"connection", b"upgrade"),
            (b"upgrade", b"websocket"),
        ],
        "subprotocols": [],
    } | more


@asynccontextmanager
async def connected(url: str, **scope: Any) -> AsyncIterator[Client]:
    """Drive one WebSocket; on leaving, the proxy must have returned by itself."""
    async with aclosing(ProxyApp(url)) as app, asyncio.TaskGroup() as group:
        client = Client(app, ws_scope(**scope))
        group.create_task(client.run())
        client.say("websocket.connect")
        yield client


async def test_text_and_binary_messages_pass_both_ways_and_the_clients_close_code_arrives() -> None:
    behind = Behind()
    big = "é" * 3_000_000
    async with uvicorn_server(behind) as url:
        async with connected(url, subprotocols=["realtime", "other"]) as client:
            assert await client.hears.get() == {"type": "websocket.accept", "subprotocol": "other"}
            client.say("websocket.receive", text="hello")
            assert await client.hears.get() == {"type": "websocket.send", "text": "hello"}
            client.say("websocket.receive", bytes=b"\x00\xff", text=None)
            assert await client.hears.get() == {"type": "websocket.send", "bytes": b"\x00\xff"}
            client.say("websocket.receive", text=big)
            assert await client.hears.get() == {"type": "websocket.send", "text": big}
            client.say("websocket.disconnect", code=4002)
        assert client.rest() == []
        assert (await behind.farewells.get())["code"] == 4002
    [scope] = behind.scopes
    assert (scope["raw_path"], scope["query_string"]) == (b"/v1/realtime", b"model=m%20m")
    assert scope["subprotocols"] == ["realtime", "other"]
    headers = dict(scope["headers"])
    assert headers[b"authorization"] == b"Bearer k"
    assert headers[b"host"] == url.removeprefix("http://").encode()
    assert headers[b"sec-websocket-key"] != b"mine"
    assert b"sec-websocket-extensions" not in headers


@pytest.mark.parametrize(("left", "arrives"), [({"code": 1005}, 1000), ({"code": 1006}, 1001), ({}, 1000)])
async def test_a_client_that_leaves_without_a_close_code_closes_the_upstream_properly(
    left: dict[str, int], arrives: int
) -> None:
    behind = Behind()
    async with uvicorn_server(behind) as url:
        async with connected(url, subprotocols=["x"]) as client:
            await client.hears.get()
            client.say("websocket.disconnect", **left)
        assert (await behind.farewells.get())["code"] == arrives


async def test_the_upstreams_close_code_and_reason_reach_the_client() -> None:
    async def talk(receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "last"})
        await send({"type": "websocket.close", "code": 4001, "reason": "enough"})

    async with uvicorn_server(Behind(talk)) as url, connected(url) as client:
        assert [await client.hears.get() for _ in range(3)] == [
            {"type": "websocket.accept", "subprotocol": None},
            {"type": "websocket.send", "text": "last"},
            {"type": "websocket.close", "code": 4001, "reason": "enough"},
        ]
    assert client.rest() == []


HANDSHAKE = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
)


@pytest.mark.parametrize(
    ("frames", "close"),
    [
        (b"", {"type": "websocket.close", "code": 1011, "reason": "the upstream broke off"}),
        (b"\xff\x00", {"type": "websocket.close", "code": 1011, "reason": "the upstream broke off"}),
        (b"\x88\x00", {"type": "websocket.close", "code": 1000, "reason": ""}),
    ],
    ids=["cut", "nonsense", "close without a code"],
)
async def test_an_upstream_that_ends_without_a_code_is_told_apart(frames: bytes, close: Message) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(
            line[19:] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:")
        )
        digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        writer.write(HANDSHAKE + base64.b64encode(digest) + b"\r\n\r\n" + frames)

    async with raw_server(serve) as url, connected(url) as client:
        assert await client.hears.get() == {"type": "websocket.accept", "subprotocol": None}
        client.say("websocket.receive", text="into the void")
        assert await client.hears.get() == close


async def refuse(receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close"})


async def refusal(url: str, extensions: dict[str, Any] | None) -> list[Message]:
    async with connected(url, extensions=extensions) as client:
        pass
    return client.rest()


async def test_a_refused_handshake_is_refused_with_the_same_status() -> None:
    async with uvicorn_server(Behind(refuse)) as url:
        start, body = await refusal(url, {"websocket.http.response": {}})
        assert await refusal(url, None) == [{"type": "websocket.close"}]
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 403)
    assert (body["type"], body["more_body"]) == ("websocket.http.response.body", False)
    assert json.loads(body["body"]) == {
        "error": {
            "message": "The model server refused the WebSocket.",
            "type": "upstream_error",
            "param": None,
            "code": None,
        }
    }


async def test_an_upstream_that_knows_no_websockets_is_a_502() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with raw_server(serve) as url:
        start, body = await refusal(url, {"websocket.http.response": {}})
    assert start["status"] == 502
    assert json.loads(body["body"])["error"]["code"] == "upstream_unreachable"


async def test_a_real_browser_side_client_talks_through_two_real_servers() -> None:
    behind = Behind()
    async with (
        uvicorn_server(behind) as upstream,
        uvicorn_server(ProxyApp(upstream)) as url,
        aiohttp.ClientSession() as session,
    ):
        async with session.ws_connect(f"{url}/v1/realtime", protocols=["realtime"]) as socket:
            assert socket.protocol == "realtime"
            await socket.send_str("hello")
            assert await socket.receive_str() == "hello"
            await socket.close(code=4000)
        assert (await behind.farewells.get())["code"] == 4000


async def test_what_the_server_above_raises_comes_out_as_it_was() -> None:
    async def greet(_: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "hello"})

    async def gone(message: Message) -> None:
        if message["type"] == "websocket.send":
            raise ConnectionResetError("the client has gone")

    said = [{"type": "websocket.connect"}]
    silent = asyncio.Event()

    async def receive() -> Message:
        if not said:
            await silent.wait()
        return said.pop()

    async with uvicorn_server(Behind(greet)) as url, aclosing(ProxyApp(url)) as app:
        with pytest.raises(ConnectionResetError, match="the client has gone"):
            await app(ws_scope(), receive, gone)
