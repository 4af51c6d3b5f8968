"""An MCP server behind a URL: its key, its limits, and what it may answer instead of MCP."""

from __future__ import annotations

import gzip
import logging
from typing import Any

import pytest
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.mcp_client.transport import Faults, HTTPServer
from loopback import answering, raw_server
from mcp_backends import HTTP, Front, http_backend, paint, refusal
from mcp_servers import fast, official
from mcp_servers.shapes import DOT, large_png
from mcp_servers.studio import Studio
from serving import serve

KEY = "canary-key-5f3a"
HEADER = "canary-header-77b1"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    own = (record for record in caplog.records if record.name == "imagecall")
    return [record.getMessage() for record in own if record.levelno >= logging.WARNING]


def front(**options: Any) -> Front:
    return Front(official.http_app(Studio()), **options)


@pytest.mark.parametrize("kind", HTTP)
async def test_the_key_and_the_headers_reach_the_server_and_no_log(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = Front(HTTP[kind].http_app(Studio()), key=KEY)
    async with http_backend(server, api_key=KEY, headers={"X-Tenant": HEADER}) as backend:
        assert (await paint(backend, "a kite")).data == DOT
        error = await refusal(backend, f"fail: your key {KEY} and {HEADER} are no good")
    assert error.message == "your key [secret] and [secret] are no good"
    assert {headers[b"authorization"] for headers in server.headers} == {f"Bearer {KEY}".encode()}
    assert {headers[b"x-tenant"] for headers in server.headers} == {HEADER.encode()}
    # The prompt with the canary in it is this test's own, and prompts are logged at DEBUG.
    told = [line for line in caplog.text.splitlines() if "are no good" not in line]
    assert [line for line in told if KEY in line or HEADER in line] == []


async def test_a_header_of_ones_own_wins_over_the_key() -> None:
    server = front()
    async with http_backend(server, api_key="one", headers={"authorization": "Basic two"}) as backend:
        await paint(backend, "a kite")
    assert server.headers[0][b"authorization"] == b"Basic two"


async def test_a_wrong_key_is_told_and_never_repeated() -> None:
    with serve(front(key="right")) as url:
        async with MCPBackend(url=f"{url}/mcp", api_key=KEY) as backend:
            error = await refusal(backend, "a kite")
    assert error.code == "mcp_unavailable"
    assert error.message == "The MCP server answered HTTP 401: check backend_api_key and backend_headers."


async def test_a_wrong_path_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with serve(front()) as url:
        async with MCPBackend(url=f"{url}/wrong?key={KEY}") as backend:
            error = await refusal(backend, "a kite")
    assert error.message == "The MCP server answered HTTP 404: check its URL."
    assert warnings(caplog) == [f"The MCP server at {url}: {error.message} [MCPError]"]


async def test_a_server_that_is_not_there_is_told_in_the_systems_own_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serve(front()) as url:
        pass
    async with MCPBackend(url=f"{url}/mcp") as backend:
        error = await refusal(backend, "a kite")
    assert error.message == "The MCP server cannot be reached."
    words = "All connection attempts failed"
    assert warnings(caplog) == [f"The MCP server at {url}: {error.message} [{words}]"]


async def test_a_status_that_comes_later_is_told() -> None:
    server = front()
    async with http_backend(server) as backend:
        await paint(backend, "a kite")
        server.refusing = 413
        error = await refusal(backend, "a kite")
    assert error.code == "mcp_error"
    assert error.message == (
        "The MCP server refused the request: Server returned an error response (HTTP 413)"
    )


async def test_a_server_that_speaks_no_mcp_is_told() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    async with (
        raw_server(answering(page, page, page)) as url,
        MCPBackend(url=url) as backend,
    ):
        error = await refusal(backend, "a kite")
        assert error.code == "mcp_unavailable"
        assert error.message == "The MCP server cannot be used: Unexpected content type: text/html"


LEGACY = pytest.mark.parametrize("legacy", [False, True], ids=["as JSON", "as an event"])
"""The newest servers answer in JSON, unless they have something to say before, older ones in events."""


@LEGACY
@pytest.mark.parametrize("kind", HTTP)
async def test_a_large_picture_arrives_whole(kind: str, legacy: bool) -> None:
    async with http_backend(Front(HTTP[kind].http_app(Studio()), legacy=legacy)) as backend:
        assert (await paint(backend, "large")).data == large_png(6.0)


@LEGACY
async def test_an_answer_above_the_limit_is_refused_and_the_session_lives_on(legacy: bool) -> None:
    async with http_backend(front(legacy=legacy), max_bytes=1_000_000) as backend:
        error = await refusal(backend, "large")
        assert error.code == "image_too_large"
        assert error.message == "The MCP server's answer is larger than any picture that max_image allows."
        assert (await paint(backend, "a kite")).data == DOT


COMPRESSED = "The MCP server's answer is compressed, though nobody asked for that: switch it off there."


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
@pytest.mark.parametrize("opened", [False, True])
async def test_a_body_that_is_compressed_unasked_is_not_unpacked(kind: bytes, opened: bool) -> None:
    server = front()
    bomb = gzip.compress(bytes(4 << 20))
    server.instead = ({b"content-type": kind, b"content-encoding": b"gzip"}, bomb)
    instead, server.instead = server.instead, None
    async with http_backend(server, max_bytes=1_000) as backend:
        if opened:
            await paint(backend, "a kite")
        server.instead = instead
        assert (await refusal(backend, "a kite")).message == COMPRESSED
        server.instead = None
        assert (await paint(backend, "a kite")).data == DOT
    assert {headers[b"accept-encoding"] for headers in server.headers} == {b"identity"}


def test_a_server_that_compresses_from_the_first_answer_on_is_told_so() -> None:
    server = HTTPServer("http://127.0.0.1/mcp", {}, timeout=1.0, max_bytes=1_000)
    error = server.refused(OSError("whatever became of it"), Faults(compressed=True))
    assert error is not None
    assert (error.code, error.message) == ("mcp_unavailable", COMPRESSED)


async def test_a_key_may_end_with_a_line_feed() -> None:
    async with http_backend(front(key="right"), api_key="right\n") as backend:
        assert (await paint(backend, "a kite")).data == DOT


async def test_a_server_that_only_answers_in_json_is_understood() -> None:
    app = Front(fast.http_app(Studio(), json_response=True), legacy=True)
    async with http_backend(app) as backend:
        assert (await paint(backend, "a kite")).data == DOT


@pytest.mark.parametrize(
    ("kind", "tool", "words"),
    [
        ("official http", "raising", "Error executing tool raising"),
        ("fastmcp http", "raising", "Error calling tool 'raising': the brush is broken"),
    ],
)
async def test_a_tool_that_raises_fails_the_call(kind: str, tool: str, words: str) -> None:
    async with http_backend(HTTP[kind].http_app(Studio()), tool=tool) as backend:
        error = await refusal(backend, "a kite")
    assert (error.code, error.message) == ("mcp_tool_error", words)


@pytest.mark.parametrize(
    ("kind", "tool"),
    [("official http", "native"), ("fastmcp http", "native"), ("fastmcp http", "dictionary")],
)
async def test_what_a_servers_own_kit_makes_of_a_picture_is_understood(kind: str, tool: str) -> None:
    async with http_backend(HTTP[kind].http_app(Studio()), tool=tool) as backend:
        image = await paint(backend, "a kite")
    assert (image.data, image.revised_prompt) == (DOT, "A KITE" if tool == "dictionary" else None)
