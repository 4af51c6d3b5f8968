"""How long a call of an MCP tool may take: as long as the server says that it is at work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.mcp import MCPBackend
from loopback import Upstream, raw_server
from mcp_backends import HTTP, Front, http_backend, paint, refusal
from mcp_servers import official
from mcp_servers.shapes import DOT
from mcp_servers.studio import Studio
from waiting import Clock, News, no_hanging


class Heard(logging.Handler):
    """Counts the log's words about progress, so that a test can wait for them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0
        self.news = News()

    def emit(self, record: logging.LogRecord) -> None:
        if "still painting" in record.getMessage():
            self.count += 1
            self.news.tell()


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    log = logging.getLogger("imagecall")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.mark.parametrize("kind", HTTP)
async def test_progress_keeps_a_call_alive_and_silence_ends_it(kind: str, heard: Heard) -> None:
    async with http_backend(HTTP[kind].http_app(Studio())) as backend:
        call = asyncio.create_task(paint(backend, "wait here"))
        await paint(backend, "until waiting here")
        clock = Clock()
        for count in (1, 2, 3):
            await clock.forward(200)
            await paint(backend, "tick here")
            await heard.news.until(lambda count=count: heard.count == count)
        await paint(backend, "finish here")
        assert (await call).data == DOT

        call = asyncio.create_task(paint(backend, "hang"))
        await paint(backend, "until hanging")
        await clock.forward(301)
        with pytest.raises(ImageError, match="was silent for the 300 seconds that backend_timeout") as caught:
            await call
        assert caught.value.code == "timeout"
        assert (await paint(backend, "until cancelled")).data == DOT


async def test_when_all_calls_get_no_answer_the_session_is_given_up() -> None:
    front = Front(official.http_app(Studio()), legacy=True)
    async with http_backend(front) as backend:
        calls = [asyncio.create_task(refusal(backend, f"wait {name}")) for name in ("one", "two")]
        await paint(backend, "until waiting one")
        await paint(backend, "until waiting two")
        await Clock().forward(301)
        assert [(await call).code for call in calls] == ["timeout", "timeout"]
        assert (await paint(backend, "a kite")).data == DOT
    assert len([body for body in front.bodies if b'"initialize"' in body]) == 2


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Run a server that never answers; yield its URL and what tells that somebody has come."""
    upstream = Upstream()
    with no_hanging() as deadline:
        async with deadline, raw_server(upstream.serve) as url:
            yield url, upstream.connected
            upstream.released.set()


async def test_a_server_that_does_not_answer_cannot_be_opened() -> None:
    async with silent_server() as (url, connected), MCPBackend(url=url) as backend:
        call = asyncio.create_task(refusal(backend, "a kite"))
        await connected.wait()
        await Clock().forward(301)
        error = await call
    assert error.code == "mcp_unavailable"
    allowed = "the 300 seconds that backend_timeout allows"
    assert error.message == f"The MCP server did not answer within {allowed}."


async def test_shutdown_does_not_wait_for_a_server_that_does_not_answer() -> None:
    async with silent_server() as (url, connected):
        async with MCPBackend(url=url) as backend:
            call = asyncio.create_task(refusal(backend, "a kite"))
            await connected.wait()
        error = await call
    assert (error.code, error.message) == ("mcp_unavailable", "The MCP server's session is closed.")


async def test_shutdown_fails_the_calls_under_way_and_those_that_come_later() -> None:
    async with http_backend(official.http_app(Studio())) as backend:
        call = asyncio.create_task(refusal(backend, "hang"))
        await paint(backend, "until hanging")
    assert (await call).message == "The MCP server's session is closed."
    assert (await refusal(backend, "a kite")).message == "The MCP server's session is closed."
