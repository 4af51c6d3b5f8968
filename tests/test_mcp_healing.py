"""A session that dies: the next call opens a new one, and nobody hangs."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from imagecall.middleware.backends.mcp import MCPBackend
from mcp_backends import HTTP, STDIO, Front, http_backend, paint, refusal, stdio_backend
from mcp_servers import official
from mcp_servers.shapes import DOT
from mcp_servers.studio import Studio
from serving import serve


@pytest.mark.parametrize("kind", STDIO)
async def test_a_process_that_has_died_is_started_anew(kind: str) -> None:
    async with stdio_backend(STDIO[kind]) as backend:
        pid = int((await refusal(backend, "tell X")).message.split()[0])
        os.kill(pid, signal.SIGKILL)
        assert (await paint(backend, "a kite")).data == DOT


async def test_a_process_that_dies_in_the_midst_of_calls_is_started_anew_for_all_of_them(
    tmp_path: Path,
) -> None:
    async with stdio_backend(official) as backend:
        others = [asyncio.create_task(paint(backend, "together 3")) for _ in range(3)]
        assert (await paint(backend, f"exit {tmp_path / 'exited'}")).data == DOT
        assert {image.data for image in await asyncio.gather(*others)} == {DOT}
        # A call that kills each process must not have them started for ever.
        error = await refusal(backend, "exit")
        assert error.code == "mcp_unavailable"
        assert (
            error.message == "The MCP server ended the session twice before it answered: Connection closed."
        )
        assert (await paint(backend, "a kite")).data == DOT


@pytest.mark.parametrize("legacy", [False, True], ids=["stateless", "with a session"])
@pytest.mark.parametrize("kind", HTTP)
async def test_a_server_that_was_away_is_found_again(kind: str, legacy: bool) -> None:
    app = HTTP[kind].http_app
    with serve(Front(app(Studio()), legacy=legacy)) as url:
        backend = await MCPBackend(url=f"{url}/mcp").__aenter__()
        assert (await paint(backend, "a kite")).data == DOT
    error = await refusal(backend, "a kite")
    assert error.code == "mcp_unavailable"
    assert error.message == "The MCP server cannot be reached."
    with serve(Front(app(Studio()), legacy=legacy), urlsplit(url).port or 0):
        assert (await paint(backend, "a kite")).data == DOT
        await backend.__aexit__(None, None, None)


async def test_a_server_that_has_forgotten_the_session_gets_a_new_one() -> None:
    with serve(Front(official.http_app(Studio()), legacy=True)) as url:
        backend = await MCPBackend(url=f"{url}/mcp").__aenter__()
        assert (await paint(backend, "a kite")).data == DOT
    with serve(Front(official.http_app(Studio()), legacy=True), urlsplit(url).port or 0):
        assert (await paint(backend, "a kite")).data == DOT
        await backend.__aexit__(None, None, None)


async def test_an_answer_that_ends_before_it_has_begun_is_asked_for_once_more() -> None:
    front = Front(official.http_app(Studio()))
    async with http_backend(front) as backend:
        front.cutting = 1
        assert (await paint(backend, "a kite")).data == DOT
        front.cutting = 2
        error = await refusal(backend, "a kite")
        assert error.code == "mcp_unavailable"
        why = "SSE stream ended without a response"
        assert error.message == f"The MCP server ended the session twice before it answered: {why}."
        assert (await paint(backend, "a kite")).data == DOT
