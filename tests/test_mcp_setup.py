"""How a backend for MCP servers is set up, and which of a server's tools it calls how."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from typing import Any

import pytest
from imagecall.middleware.backends.base import Image
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.mcp_client.transport import make_server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.utilities.types import Image as Picture
from mcp_backends import http_backend, paint, refusal
from mcp_servers.shapes import DOT, DOT_BASE64
from mcp_types import CallToolResult, TextContent

URL = "http://127.0.0.1:1/mcp"
SEE = "its own error output tells why"

REFUSING = """
import json
while True:
    request = json.loads(input())
    error = {"code": -32601, "message": "I know no such thing"}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
"""
DOT_IMAGE = Image(DOT, "png", 1, 1, transparent=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give one of them"),
        ({"url": URL, "command": "x"}, "give one of them"),
        ({"command": " "}, "The MCP server's command is empty."),
        ({"command": "x 's3cret"}, "The MCP server's command has a quote that does not end."),
        ({"url": URL, "headers": {"X Y": "s3cret"}}, "The header 'X Y' is malformed."),
        ({"url": URL, "api_key": "s3cret\nX: Y"}, "The API key holds a letter that no header may hold."),
        ({"command": "x", "api_key": "s3cret"}, "A command has no headers"),
        ({"command": "x", "headers": {"X": "s3cret"}}, "A command has no headers"),
        ({"url": URL, "env": {"KEY": "s3cret"}}, "env belongs to a command"),
        ({"url": "127.0.0.1:8000/s3cret"}, "is not http:// or https://"),
        ({"url": "http://[s3cret"}, "The MCP server's URL is none"),
        ({"url": "http://user:s3cret@127.0.0.1/"}, "holds a user or password"),
        ({"url": URL, "arguments": {"prompt": "a kite"}}, "has no {prompt}"),
        ({"url": URL, "origins": ["example.com"]}, "'example.com' is no origin"),
    ],
)
def test_what_cannot_work_is_refused_at_once_and_no_secret_is_repeated(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        MCPBackend(**options)
    assert "s3cret" not in str(caught.value)


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ImportError) as caught:
        MCPBackend(url=URL)
    assert str(caught.value) == (
        "The MCP backend needs the official SDK, which is missing: pip install 'imagecall[mcp]'."
    )


def test_a_command_line_is_split_into_words() -> None:
    plain: dict[str, Any] = {"headers": {}, "env": {}, "api_key": None, "timeout": 1.0, "max_bytes": 1}
    server = make_server(None, "uvx 'my server' --port 5", **plain)
    assert server == make_server(None, ["uvx", "my server", "--port", "5"], **plain)


def test_a_server_shows_itself_without_its_secrets() -> None:
    options: dict[str, Any] = {"timeout": 1.0, "max_bytes": 1}
    http = make_server(
        f"{URL}?key=s3cret", None, headers={"X": "s3cret"}, env={}, api_key="s3cret", **options
    )
    stdio = make_server(None, ["x", "s3cret"], headers={}, env={"K": "s3cret"}, api_key=None, **options)
    assert "s3cret" not in f"{http!r} {http.name} {stdio!r} {stdio.name}"


@pytest.mark.parametrize(
    ("url", "headers", "api_key"),
    [
        (URL, {}, "canary-1\n"),
        (URL, {"x-tenant": "canary-1"}, None),
        (f"{URL}?x=canary-1", {}, None),
        (f"{URL}?key=canary-1", {}, None),
        (f"{URL}?x=canary%2D1", {}, None),
        (f"{URL}/canary-1-but-longer/sse", {}, None),
    ],
)
def test_whatever_may_be_a_key_of_a_url_is_struck_out(
    url: str, headers: dict[str, str], api_key: str | None
) -> None:
    server = make_server(url, None, headers=headers, env={}, api_key=api_key, timeout=1.0, max_bytes=1)
    struck = server.secrets.strike("mcp: canary-1 canary%2D1 canary-1-but-longer")
    assert "[secret]" in struck
    assert struck.startswith("mcp: ")


@pytest.mark.parametrize(
    ("command", "env"),
    [
        (["x"], {"FAL_KEY": "canary-1"}),
        (["x"], {"PIN": "canary-1"}),
        (["x", "--api-key", "canary-1"], {}),
        (["x", "--token=canary-1"], {}),
        (["x", "--header", "Authorization: Bearer canary-1"], {}),
        (["x", "http://127.0.0.1/?token=canary-1"], {}),
    ],
)
def test_whatever_may_be_a_key_of_a_command_is_struck_out(command: list[str], env: dict[str, str]) -> None:
    server = make_server(None, command, headers={}, env=env, api_key=None, timeout=1.0, max_bytes=1)
    assert server.secrets.strike("x: canary-1, header") == "x: [secret], header"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["/no/such/program", "s3cret"],
            "The MCP server's command cannot be started: No such file or directory.",
        ),
        (
            [sys.executable, "-c", "pass"],
            f"The MCP server's command ended before it answered; {SEE}.",
        ),
        (
            [sys.executable, "-c", REFUSING],
            "The MCP server cannot be used: I know no such thing",
        ),
    ],
)
async def test_a_command_that_does_not_work_is_told_each_time(command: list[str], message: str) -> None:
    async with MCPBackend(command=command) as backend:
        for _ in range(2):
            error = await refusal(backend, "a kite")
            assert (error.code, error.message) == ("mcp_unavailable", message)


async def test_a_backend_that_was_never_opened_has_no_session() -> None:
    backend = MCPBackend(url=URL)
    assert (await refusal(backend, "a kite")).message == "The MCP server's session is closed."
    await backend.__aexit__(None, None, None)
    async with MCPBackend(url=URL):
        pass


async def test_a_session_that_was_only_asked_for_is_not_opened_at_shutdown() -> None:
    async with MCPBackend(url=URL) as backend:
        call = asyncio.create_task(refusal(backend, "a kite"))
        await asyncio.sleep(0)
    assert (await call).message == "The MCP server's session is closed."


class Atelier:
    """A server with whatever tools a test gives it."""

    def __init__(self) -> None:
        self.server = MCPServer("atelier", log_level="CRITICAL")
        self.calls: list[dict[str, Any]] = []

    def note(self, **arguments: Any) -> Picture:
        self.calls.append(arguments)
        return Picture(data=DOT, format="png")


async def test_a_template_fills_what_synonyms_cannot() -> None:
    atelier = Atelier()

    @atelier.server.tool()
    def run_workflow(workflow: str, inputs: dict[str, Any]) -> Picture:
        return atelier.note(workflow=workflow, inputs=inputs)

    template = {"workflow": "flux", "inputs": {"6": {"text": "{prompt}"}, "5": {"width": "{width}"}}}
    async with http_backend(
        atelier.server.streamable_http_app(), tool="run_workflow", arguments=template
    ) as backend:
        assert (await paint(backend, "a kite", size="512x256")).data == DOT
        error = await refusal(backend, "a kite", images=(DOT_IMAGE,))
    assert atelier.calls == [{"workflow": "flux", "inputs": {"6": {"text": "a kite"}, "5": {"width": 512}}}]
    assert error.code == "edit_not_supported"


async def test_a_template_with_a_place_for_pictures_serves_for_edits() -> None:
    atelier = Atelier()

    @atelier.server.tool()
    def draw(words: str, over: str = "") -> Picture:
        return atelier.note(words=words, over=over)

    template = {"words": "{prompt}", "over": "{image}"}
    async with http_backend(atelier.server.streamable_http_app(), tool="draw", arguments=template) as backend:
        await paint(backend, "a kite")
        await paint(backend, "bluer", images=(DOT_IMAGE,))
    assert atelier.calls == [{"words": "a kite", "over": ""}, {"words": "bluer", "over": DOT_BASE64}]


async def test_edits_go_to_the_configured_tool() -> None:
    atelier = Atelier()

    @atelier.server.tool()
    def generate_image(prompt: str) -> Picture:
        return atelier.note(prompt=prompt)

    @atelier.server.tool()
    def retouch(prompt: str, image: str) -> Picture:
        return atelier.note(prompt=prompt, image=image)

    app = atelier.server.streamable_http_app()
    async with http_backend(app, edit_tool="retouch") as backend:
        await paint(backend, "bluer", images=(DOT_IMAGE,))
    assert atelier.calls == [{"prompt": "bluer", "image": DOT_BASE64}]


async def test_a_tool_that_is_added_later_is_found(caplog: pytest.LogCaptureFixture) -> None:
    atelier = Atelier()
    async with http_backend(atelier.server.streamable_http_app()) as backend:
        error = await refusal(backend, "a kite")
        assert (error.code, error.message[-12:]) == ("mcp_no_tool", "none at all.")
        assert ("imagecall", logging.WARNING, error.message) in caplog.record_tuples

        @atelier.server.tool()
        def generate_image(prompt: str) -> Picture:
            return atelier.note(prompt=prompt)

        assert (await paint(backend, "a kite")).data == DOT


async def test_a_picture_on_a_strange_server_is_told_with_the_tools_own_words() -> None:
    atelier = Atelier()

    @atelier.server.tool()
    def generate_image(prompt: str) -> CallToolResult:
        text = "Image 1: https://cdn.example.com/a.png"
        return CallToolResult(content=[TextContent(type="text", text=text)])

    async with http_backend(atelier.server.streamable_http_app()) as backend:
        error = await refusal(backend, "a kite")
    assert error.code == "url_not_allowed"
    assert error.message == (
        "The picture's URL is on https://cdn.example.com, which is not the image server's own origin. "
        "Allow it with backend_origins. The server said: Image 1: https://cdn.example.com/a.png"
    )


async def test_a_tool_that_fails_without_a_word_is_named() -> None:
    atelier = Atelier()

    @atelier.server.tool()
    def generate_image(prompt: str) -> CallToolResult:
        return CallToolResult(content=[], is_error=True)

    async with http_backend(atelier.server.streamable_http_app()) as backend:
        error = await refusal(backend, "a kite")
    assert error.message == "The MCP tool 'generate_image' failed."
