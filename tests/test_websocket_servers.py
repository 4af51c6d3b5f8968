"""WebSocket mode on real sockets: uvicorn, `websockets`, OpenAI's SDK, a server behind `ProxyApp`."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import PIL.Image
import pytest
from asgi import middleware
from commands import run
from fastapi import FastAPI, WebSocket
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.embedded.llm import LanguageModel, available
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.server import Server
from kite import KITE, kite_stream, usage
from loopback import uvicorn_server
from model_server import HOSTED, KITE_TURNS, ModelServer, calling, saying
from openai.resources.responses.responses import AsyncResponsesConnection
from painters import Painter, png, raising
from parts import require
from sockets import ENDS, create
from starlette.types import ASGIApp, Receive, Scope, Send
from waiting import no_hanging
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError

EXPECTED = kite_stream(spent=usage(200, 20))
TEXT = {"type": "response.create", "model": "local-model", "input": "Hello."}


@asynccontextmanager
async def slowly_talking(app: ASGIApp, **how: Any) -> AsyncIterator[ClientConnection]:
    """Open a WebSocket to an application under uvicorn."""
    async with (
        uvicorn_server(app) as url,
        connect(f"{url.replace('http', 'ws')}/v1/responses", max_size=None, **how) as client,
    ):
        yield client


@asynccontextmanager
async def talking(app: ASGIApp, **how: Any) -> AsyncIterator[ClientConnection]:
    """Do the same where nothing takes long."""
    with no_hanging() as deadline:
        async with deadline, slowly_talking(app, **how) as client:
            yield client


async def respond(client: ClientConnection, message: Any) -> list[dict[str, Any]]:
    """Ask, and read to the end of the response."""
    await client.send(json.dumps(message))
    events = []
    while not events or events[-1]["type"] not in ENDS:
        events.append(json.loads(await client.recv()))
    return events


async def test_two_responses_on_one_connection() -> None:
    async with talking(middleware(ModelServer(*KITE_TURNS, *KITE_TURNS), Painter())) as client:
        assert await respond(client, create()) == EXPECTED
        again = await respond(client, create())
        assert [event["type"] for event in again] == [event["type"] for event in EXPECTED]


async def test_a_picture_of_six_megabytes_comes_in_one_message() -> None:
    noise = random.Random(1).randbytes(1_500 * 1_000 * 3)
    file = io.BytesIO()
    PIL.Image.frombytes("RGB", (1_500, 1_000), noise).save(file, "png", compress_level=0)
    painter = Painter(makes=lambda _: file.getvalue())
    async with talking(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        events = await respond(client, create())
    [done] = [event for event in events if event.get("item", {}).get("result")]
    assert len(done["item"]["result"]) > 6_000_000
    assert PIL.Image.open(io.BytesIO(base64.b64decode(done["item"]["result"]))).tobytes() == noise
    assert events[-1]["response"]["output"][0] == done["item"]


async def test_a_client_that_closes_cancels_the_picture() -> None:
    painter = Painter(waits=True)
    async with talking(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        await client.send(json.dumps(create()))
        await painter.was_asked()
        await client.close(4000, "enough")
        await painter.was_cancelled()
    assert painter.cancelled == [KITE]


async def test_a_client_whose_connection_breaks_cancels_the_picture() -> None:
    painter = Painter(waits=True)
    async with talking(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        await client.send(json.dumps(create()))
        await painter.was_asked()
        client.transport.abort()
        await painter.was_cancelled()
    assert painter.cancelled == [KITE]


async def test_a_binary_message_is_answered_with_a_close_code() -> None:
    async with talking(middleware(ModelServer(), Painter())) as client:
        await client.send(b"\x00")
        with pytest.raises(ConnectionClosedError) as closed:
            await client.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1003, "Send JSON in text messages.")


def test_serve_takes_messages_as_large_as_bodies(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(Server, "run", lambda self, sockets: limits.append(self.config.ws_max_size))
    words = ("--upstream", "http://h", "--max-body", "12345", "--port", str(unused_tcp_port))
    assert run(monkeypatch, "serve", *words) == 0
    assert limits == [12345]


async def test_what_the_client_offered_is_taken() -> None:
    async with talking(middleware(ModelServer(), Painter()), subprotocols=["realtime", "b"]) as client:
        assert client.subprotocol == "realtime"


# -- OpenAI's SDK --------------------------------------------------------------------------------


@asynccontextmanager
async def official(app: ASGIApp) -> AsyncIterator[AsyncResponsesConnection]:
    """Open a connection as OpenAI's own client opens it."""
    with no_hanging() as deadline:
        async with (
            deadline,
            uvicorn_server(app) as url,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
            client.responses.connect() as connection,
        ):
            yield connection


async def events_of(connection: Any) -> list[Any]:
    events = []
    async for event in connection:
        events.append(event)
        if event.type in ENDS:
            return events
    raise AssertionError("the connection ended")


async def test_openais_own_client_gets_typed_events_and_its_picture() -> None:
    server = ModelServer(*KITE_TURNS, *KITE_TURNS)
    async with official(middleware(server, Painter())) as connection:
        tools: Any = [{**HOSTED, "partial_images": 1}]
        await connection.response.create(model="local-model", input="Draw a kite.", tools=tools)
        events = await events_of(connection)
        await connection.response.create(model="local-model", input="Again.", tools=tools, stream_id="two")
        again = await events_of(connection)
    assert dict(server.asked[0].scope["headers"])[b"authorization"] == b"Bearer k"
    assert [type(event).__name__ for event in events if "image" in event.type] == [
        "ResponseImageGenCallInWsProgress",
        "ResponseImageGenCallWsGenerating",
        "ResponseImageGenCallPartialWsImage",
        "ResponseImageGenCallWsCompleted",
    ]
    picture, message = events[-1].response.output
    assert base64.b64decode(picture.result) == png(KITE)
    assert message.type == "message"
    assert {event.stream_id for event in again} == {"two"}


async def test_openais_own_client_gets_typed_errors() -> None:
    async with official(middleware(ModelServer(), Painter())) as connection:
        await connection.response.create(model="local-model", input="x", generate=False)
        [told] = await events_of(connection)
        await connection.response.steer(input="Greener.", previous_response_id="resp_1")
        [steered] = await events_of(connection)
    assert (told.type, told.status, told.error.param) == ("error", 400, "generate")
    assert steered.error.code == "steering_not_supported"


async def test_openais_own_client_goes_on_after_a_failed_picture_and_two_at_once() -> None:
    failing = middleware(ModelServer(*KITE_TURNS), raising(ImageError("No paint.", code="busy")))
    async with official(failing) as connection:
        await connection.response.create(model="m", input="Draw.", tools=[{"type": "image_generation"}])
        events = await events_of(connection)
    assert [item.status for item in events[-1].response.output] == ["failed", "completed"]
    both = middleware(ModelServer(calling("one", "two"), saying("Both.")), Painter())
    async with official(both) as connection:
        await connection.response.create(model="m", input="Draw.", tools=[{"type": "image_generation"}])
        events = await events_of(connection)
    pictures = [base64.b64decode(item.result) for item in events[-1].response.output[:2]]
    assert pictures == [png("one"), png("two")]


# -- a server behind the proxy -------------------------------------------------------------------


@asynccontextmanager
async def behind(upstream: ASGIApp, painter: Painter) -> AsyncIterator[ClientConnection]:
    """Put the middleware and the proxy in front of a server on a socket of its own."""
    async with uvicorn_server(upstream) as url, talking(middleware(ProxyApp(url), painter)) as client:
        yield client


async def test_through_the_proxy_to_a_server_without_websocket() -> None:
    async with behind(scripted_app(), Painter()) as client:
        drawn = await respond(client, create(input="Draw a red kite."))
        said = await respond(client, TEXT)
    output = drawn[-1]["response"]["output"]
    assert "image_generation_call" in [item["type"] for item in output]
    assert "image_generation_call" not in [item["type"] for item in said[-1]["response"]["output"]]


async def test_through_the_proxy_to_nobody() -> None:
    async with talking(middleware(ProxyApp("http://127.0.0.1:9"), Painter())) as client:
        [told] = await respond(client, create())
    assert (told["type"], told["status"], told["error"]["code"]) == ("error", 502, "upstream_unreachable")


async def test_through_the_proxy_to_a_server_with_websocket_of_its_own() -> None:
    app = FastAPI()
    heard: list[Any] = []

    @app.websocket("/v1/responses")
    async def speak(socket: WebSocket) -> None:
        await socket.accept()
        async for message in socket.iter_json():
            heard.append(message)
            await socket.send_json({"type": "response.completed", "theirs": True})

    async def upstream(scope: Scope, receive: Receive, send: Send) -> None:
        await (http if scope["type"] == "http" else app)(scope, receive, send)

    http = ModelServer(*KITE_TURNS)
    async with behind(upstream, Painter()) as client:
        assert await respond(client, TEXT) == [{"type": "response.completed", "theirs": True}]
        assert await respond(client, create()) == EXPECTED
        assert await respond(client, TEXT) == [{"type": "response.completed", "theirs": True}]
    assert heard == [TEXT, TEXT]


@pytest.mark.llm
async def test_through_the_proxy_to_llama_cpp() -> None:
    require(available() is None, str(available()))
    async with LanguageModel() as url, slowly_talking(middleware(ProxyApp(url), "scene")) as client:
        drawn = await respond(client, create(input="Draw a red cat", tools=[{**HOSTED, "size": "64x64"}]))
        said = await respond(client, {**TEXT, "max_output_tokens": 8})
    output = drawn[-1]["response"]["output"]
    [picture] = [item for item in output if item["type"] == "image_generation_call"]
    assert (picture["status"], picture["size"]) == ("completed", "64x64")
    assert said[-1]["response"]["output"][0]["type"] == "message"
