"""The middleware under a real uvicorn, on real sockets, as people run it."""

from __future__ import annotations

import asyncio
import base64
import importlib
import inspect
import io
import json
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import PIL.Image
import pytest
from asgi import draw, middleware
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from kite import KITE, kite_stream, usage
from loopback import uvicorn_server
from model_server import HOSTED, KITE_TURNS, calling, saying
from painters import Painter, Studio, png
from rules import check_stream, read_events
from starlette.background import BackgroundTask
from waiting import settle

EXPECTED = kite_stream(spent=usage(200, 20))


class Model:
    """A FastAPI application in the manner of model servers: a picture for each request, and then some words.

    Attributes:
        app: the application.
        clients: host and port of each request's client.
        started: whether its lifespan has begun, and `stopped` whether it is over.
        background: a task that each answer leaves behind; `finished` counts those that are done.
    """

    def __init__(self, *turns: list[bytes]) -> None:
        self._turns = turns or KITE_TURNS
        self.app = FastAPI(lifespan=self._lifespan)
        self.app.post("/v1/responses")(self._respond)
        self.clients: list[Any] = []
        self.started = self.stopped = False
        self.background = asyncio.Event()
        self.background.set()
        self.finished = 0

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self.started = True
        yield
        self.stopped = True

    async def _respond(self, request: Request) -> StreamingResponse:
        asked = await request.json()
        assert "image_generation" not in [tool["type"] for tool in asked["tools"]]
        self.clients.append(request.client)
        turn = self._turns[isinstance(asked["input"], list)]
        return StreamingResponse(
            self._pieces(turn), media_type="text/event-stream", background=BackgroundTask(self._after)
        )

    async def _pieces(self, turn: list[bytes]) -> AsyncIterator[bytes]:
        for frame in turn:
            yield frame
            await asyncio.sleep(0)

    async def _after(self) -> None:
        await self.background.wait()
        self.finished += 1


@asynccontextmanager
async def talking(url: str, request: dict[str, Any] | None = None) -> AsyncIterator[asyncio.StreamReader]:
    """Make a request by hand; close the socket at the end, whatever has come by then."""
    host, port = url.removeprefix("http://").split(":")
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=link)
    body = json.dumps(request or draw()).encode()
    fields = f"Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(f"POST /v1/responses HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
    try:
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


async def post(session: aiohttp.ClientSession, url: str, request: dict[str, Any]) -> bytes:
    async with session.post(f"{url}/v1/responses", json=request) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


async def test_the_class_works_as_vllm_builds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_BACKEND", "scene")
    monkeypatch.setenv("IMAGECALL_KEEPALIVE", "30")
    path, _, name = "imagecall.middleware.ImageGenerationMiddleware".rpartition(".")
    imported = getattr(importlib.import_module(path), name)
    assert inspect.isclass(imported)
    model = Model()
    model.app.add_middleware(imported)
    async with uvicorn_server(model.app) as url, aiohttp.ClientSession() as session:
        assert model.started
        tools = [{**HOSTED, "size": "256x192", "partial_images": 2}]
        body = await post(session, url, draw(tools=tools))
        assert check_stream(body, tools=tools, tool_choice="auto") == []
        item, message = read_events(body)[-1]["response"]["output"]
        assert (item["status"], item["size"], message["type"]) == ("completed", "256x192", "message")
        async with session.get(f"{url}/openapi.json") as answer:
            assert "/v1/responses" in (await answer.json())["paths"]
    assert model.stopped


async def test_a_stream_arrives_whole_and_the_connection_is_used_again() -> None:
    model = Model()
    async with uvicorn_server(middleware(model.app, Painter())) as url, aiohttp.ClientSession() as session:
        assert read_events(await post(session, url, draw())) == EXPECTED
        again = await post(session, url, draw())
        assert check_stream(again, tools=[HOSTED]) == []
    assert len(model.clients) == 4
    assert len({client.port for client in model.clients}) == 1
    assert model.finished == 4


async def test_a_server_that_reads_json_of_any_type_has_the_tool_for_any_and_a_head_has_no_body() -> None:
    async with (
        uvicorn_server(middleware(Model().app, Painter())) as url,
        aiohttp.ClientSession(f"{url}/v1/") as session,
    ):
        async with session.post("responses", data=json.dumps(draw())) as answer:
            assert answer.request_info.headers["content-type"].startswith("text/plain")
            last = read_events(await answer.read())[-1]
        assert last == EXPECTED[-1]
        name = f"responses/{last['response']['id']}"
        async with session.get(name) as whole, session.head(name, params={"stream": "true"}) as head:
            assert (head.status, await head.read()) == (200, b"")
            assert head.headers["content-length"] == str(len(await whole.read()))


async def test_a_socket_that_is_closed_in_the_midst_of_a_picture_cancels_the_backend() -> None:
    painter = Painter(waits=True)
    async with uvicorn_server(middleware(Model().app, painter)) as url:
        async with talking(url) as reader:
            await reader.readuntil(b"event: response.image_generation_call.generating\n")
        await painter.was_cancelled()
    assert painter.cancelled == [KITE]


async def test_a_background_task_finishes_after_a_complete_response() -> None:
    model = Model()
    model.background.clear()
    async with uvicorn_server(middleware(model.app, Painter(), disconnect_grace=0)) as url:
        async with talking(url) as reader:
            whole = await reader.read()
        assert b"event: response.completed\n" in whole
        assert whole.endswith(b"\r\n0\r\n\r\n")
        assert model.finished == 0
        model.background.set()
    assert model.finished == 2


async def test_a_session_is_closed_when_the_server_stops() -> None:
    studio = Studio()
    async with uvicorn_server(middleware(Model().app, studio)) as url, aiohttp.ClientSession() as session:
        assert read_events(await post(session, url, draw())) == EXPECTED
        assert (len(studio.opened), studio.closed) == (1, [])
    assert studio.closed == studio.opened


async def test_a_picture_of_five_megabytes_arrives() -> None:
    file = io.BytesIO()
    noise = PIL.Image.frombytes("RGB", (1400, 1200), random.Random(3).randbytes(1400 * 1200 * 3))
    noise.save(file, "png", compress_level=0)
    app = middleware(Model().app, Painter(makes=lambda _: file.getvalue()))
    async with uvicorn_server(app) as url, aiohttp.ClientSession() as session:
        body = await post(session, url, draw())
    assert check_stream(body, tools=[HOSTED]) == []
    item = read_events(body)[-1]["response"]["output"][0]
    assert base64.b64decode(item["result"]) == file.getvalue()


async def test_two_requests_are_served_at_once() -> None:
    meeting = asyncio.Barrier(2)

    class Meeting:
        async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
            await meeting.wait()
            return png(request.prompt)

    app = middleware(Model().app, Meeting())
    async with uvicorn_server(app) as url, aiohttp.ClientSession() as session:
        bodies = await asyncio.gather(post(session, url, draw()), post(session, url, draw()))
    for body in bodies:
        assert check_stream(body, tools=[HOSTED]) == []


async def test_a_reader_that_pauses_holds_the_model_up_and_gets_every_frame() -> None:
    words = [f"word {count} " * 10_000 for count in range(40)]  # more than all the buffers on the way
    model = Model(calling(KITE), saying(*words))
    async with uvicorn_server(middleware(model.app, Painter())) as url, talking(url) as reader:
        await reader.readuntil(b"event: response.image_generation_call.completed\n")
        await settle()
        assert model.finished == 1
        rest = await reader.read()
    assert rest.count(b"event: response.output_text.delta\n") == len(words)
    assert model.finished == 2
