"""An MCP server behind the whole middleware: what the client and the model see of it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest
from asgi import Client, draw, lifespan, middleware, post
from imagecall.middleware.backends.mcp import MCPBackend
from kite import KITE, pair
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp_backends import HTTP, KINDS, PYTHONPATH, STDIO, Front, command, serving
from mcp_servers import official
from mcp_servers.shapes import DOT, DOT_BASE64, SHAPES
from mcp_servers.studio import Studio
from model_server import HOSTED, JSON, Answer, ModelServer, calling, frames, saying, whole
from rules import check_stream, read_events
from serving import serve
from starlette.types import ASGIApp
from transcript import call
from waiting import no_hanging

Json = dict[str, Any]

SAYS = saying("Here it is.")


async def ask(app: ASGIApp, **options: Any) -> Client:
    client = Client(app, draw(**options), post())
    with no_hanging() as deadline:
        async with deadline:
            await client.run()
    assert client.raised is None
    return client


def final(client: Client) -> Json:
    """Give the response of a stream that keeps all rules."""
    assert check_stream(client.body, tools=[HOSTED], tool_choice="auto") == []
    response: Json = read_events(client.body)[-1]["response"]
    return response


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_server_makes_pictures_in_both_modes(kind: str) -> None:
    before = asyncio.all_tasks()
    bodies = [Answer([whole(turn)], headers=JSON) for turn in (calling(KITE), SAYS)]
    server = ModelServer(calling(KITE), SAYS, *bodies)
    server_kind = kind.partition(" ")[2]
    if server_kind == "stdio":
        await _both_modes(server, MCPBackend(command=command(STDIO[kind]), env=PYTHONPATH))
    else:
        with serving(HTTP[kind]) as url:
            await _both_modes(server, MCPBackend(url=url))
    assert asyncio.all_tasks() == before


async def _both_modes(server: ModelServer, backend: MCPBackend) -> None:
    app = middleware(server, backend)
    async with lifespan(app):
        streamed = final(await ask(app))
        answered = (await ask(app, stream=False)).json
    item = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "completed",
        "result": DOT_BASE64,
        "revised_prompt": KITE,
        "action": "generate",
        "background": "transparent",
        "output_format": "png",
        "quality": "auto",
        "size": "1x1",
    }
    for response, number in ((streamed, 1), (answered, 2)):
        assert response["status"] == "completed"
        assert response["output"][0] == {**item, "id": f"ig_{number}"}
        assert response["output"][1]["content"][0]["text"] == "Here it is."


def atelier(calls: list[str]) -> ASGIApp:
    """Build a server whose tools have names of their own."""
    server = MCPServer("atelier", log_level="CRITICAL")

    @server.tool()
    def weather(city: str) -> str:
        return "rain"

    @server.tool()
    def paint_me_something(prompt: str) -> Image:
        calls.append(prompt)
        return Image(data=DOT, format="png")

    return server.streamable_http_app()


async def test_the_server_gets_the_call_whatever_its_tool_is_called_and_the_model_sees_one_function() -> None:
    calls: list[str] = []
    model = ModelServer(calling(KITE), SAYS)
    with serve(atelier(calls)) as url:
        app = middleware(model, MCPBackend(url=f"{url}/mcp"))
        async with lifespan(app):
            output = final(await ask(app))["output"]
    assert calls == [KITE]
    assert (output[0]["status"], output[0]["result"]) == ("completed", DOT_BASE64)
    for asked in model.asked:
        assert [tool["name"] for tool in asked.json["tools"]] == ["image_generation"]
        assert b"paint_me_something" not in asked.body
    made, _ = pair(model.asked[1].json)
    assert made["name"] == "image_generation"


async def test_a_call_by_the_tools_own_name_stays_the_clients_business() -> None:
    calls: list[str] = []
    item = {
        "id": "fc_0",
        "type": "function_call",
        "call_id": "call_0",
        "name": "paint_me_something",
        "arguments": '{"prompt":"a kite"}',
        "status": "completed",
    }
    model = ModelServer(frames(call(0, item, item["arguments"])))
    with serve(atelier(calls)) as url:
        app = middleware(model, MCPBackend(url=f"{url}/mcp"))
        async with lifespan(app):
            output = final(await ask(app))["output"]
    assert calls == []
    assert [(one["type"], one["name"]) for one in output] == [("function_call", "paint_me_something")]
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("prompt", "code", "message"),
    [
        ("an excuse", "no_image", "❌ The quota is used up."),
        ("fail: no brush", "mcp_tool_error", "no brush"),
    ],
)
async def test_the_model_is_told_of_a_failure_and_the_response_is_completed(
    prompt: str, code: str, message: str
) -> None:
    model = ModelServer(calling(prompt), SAYS)
    with serving(official) as url:
        app = middleware(model, MCPBackend(url=url))
        async with lifespan(app):
            response = final(await ask(app))
    item, said = response["output"]
    assert (response["status"], item["status"], item["result"]) == ("completed", "failed", "")
    assert (item["error"]["code"], item["error"]["message"]) == (code, message)
    assert said["content"][0]["text"] == "Here it is."
    _, told = pair(model.asked[1].json)
    assert json.loads(told["output"])["error"] == {"code": code, "message": message}


async def test_the_model_never_gets_what_the_result_holds() -> None:
    shapes = list(SHAPES)
    model = ModelServer(calling(*shapes), SAYS)
    with serving(official) as url:
        app = middleware(model, MCPBackend(url=url))
        async with lifespan(app):
            output = final(await ask(app))["output"]
    assert [one["result"] for one in output[: len(shapes)]] == [DOT_BASE64] * len(shapes)
    outputs = [one["output"] for one in model.asked[1].json["input"] if "output" in one]
    assert len(outputs) == len(shapes)
    assert max(map(len, outputs)) < 2_000
    assert not re.search(rb"[A-Za-z0-9+/=]{100}", model.asked[1].body)


async def test_no_secret_reaches_a_client_the_model_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key, header = "canary-key-09c2", "canary-header-e41d"
    server = Front(official.http_app(Studio()), key=key)
    model = ModelServer(calling(KITE), SAYS, calling(KITE), SAYS)
    with serve(server) as url:
        app = middleware(model, MCPBackend(url=f"{url}/mcp", api_key=key, headers={"X-Tenant": header}))
        async with lifespan(app):
            done = await ask(app)
            server.refusing = 401
            failed = await ask(app)
    assert [final(client)["output"][0]["status"] for client in (done, failed)] == ["completed", "failed"]
    assert b"canary" not in done.body + failed.body + b"".join(asked.body for asked in model.asked)
    assert "canary" not in caplog.text
    assert {headers.get(b"x-tenant") for headers in server.headers} == {header.encode()}
    assert {headers.get(b"authorization") for headers in server.headers} == {f"Bearer {key}".encode()}
