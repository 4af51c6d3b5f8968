"""Servers that the protocol allows and nobody expects, and some that break it."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.mcp_client.session import Connection, ConnectionLostError
from imagecall.middleware.backends.secret_values import Secrets
from imagecall.middleware.backends.words import Words
from loopback import uvicorn_server
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp_backends import http_backend, paint, refusal
from mcp_servers.shapes import DOT, DOT_BASE64
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)
from starlette.types import ASGIApp

PROMPT = {"type": "object", "properties": {"prompt": {"type": "string"}}}
SCHEMA = {"type": "object", "required": ["width"]}


class Pages:
    """A server that lists one tool a page: `last` as the last of so many, or for ever."""

    def __init__(self, pages: int, *, last: str = "generate_image", schema: Any = None) -> None:
        self.listed = 0
        self.waited = 0
        self.waiting = asyncio.Event()
        self.may_finish = asyncio.Event()
        self._pages = pages
        self._last = last
        self._schema = schema

    def app(self) -> ASGIApp:
        server = Server("pages", on_list_tools=self._list, on_call_tool=self._call)
        return server.streamable_http_app()

    async def _list(self, _: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        self.listed += 1
        page = int(params.cursor) if params is not None and params.cursor is not None else 1
        name = self._last if page == self._pages else f"tool_{page}"
        tool = Tool(name=name, input_schema=PROMPT, output_schema=self._schema)
        return ListToolsResult(tools=[tool], next_cursor=None if page == self._pages else str(page + 1))

    async def _call(self, _: Any, params: CallToolRequestParams) -> CallToolResult:
        if params.arguments == {"prompt": "refuse"}:
            raise MCPError(code=-32000, message="I am busy")
        if params.arguments == {"prompt": "refuse well"}:
            raise MCPError(code=-32602, message="I do not paint that")
        if params.arguments == {"prompt": "wait"}:
            self.waited += 1
            self.waiting.set()
            await self.may_finish.wait()
        image = ImageContent(type="image", data=DOT_BASE64, mime_type="image/png")
        return CallToolResult(content=[image], structured_content={"height": 1})


async def test_a_tool_on_a_later_page_is_found() -> None:
    async with http_backend(Pages(3).app()) as backend:
        assert (await paint(backend, "a kite")).data == DOT


async def test_a_list_of_tools_that_never_ends_holds_nobody_up() -> None:
    pages = Pages(0)
    async with http_backend(pages.app()) as backend:
        assert (await refusal(backend, "a kite")).code == "mcp_no_tool"
    assert pages.listed == 50


async def test_a_call_that_the_server_refuses_fails_with_its_words() -> None:
    async with http_backend(Pages(1).app()) as backend:
        error = await refusal(backend, "refuse well")
        assert error.code == "mcp_error"
        assert error.message.startswith("The MCP server refused the request: I do not paint that")
        # This number is also the SDK's own for a closed connection.
        error = await refusal(backend, "refuse")
        assert error.code == "mcp_error"
        assert error.message.startswith("The MCP server refused the request: I am busy")
        assert (await paint(backend, "a kite")).data == DOT


async def test_a_refusal_leaves_the_other_calls_alone() -> None:
    pages = Pages(1)
    async with uvicorn_server(pages.app()) as url, MCPBackend(url=f"{url}/mcp") as backend:
        waiting = asyncio.create_task(paint(backend, "wait"))
        await pages.waiting.wait()
        assert (await refusal(backend, "refuse")).code == "mcp_error"
        pages.may_finish.set()
        assert (await waiting).data == DOT
    assert pages.waited == 1


async def test_a_result_that_breaks_the_tools_own_schema_is_told() -> None:
    async with http_backend(Pages(1, schema=SCHEMA).app()) as backend:
        error = await refusal(backend, "a kite")
    assert error.code == "mcp_error"
    assert error.message.startswith(
        "The MCP server's answer breaks the protocol. Invalid structured content returned by tool"
    )


async def test_a_connection_that_is_over_asks_for_nothing_more() -> None:
    connection = Connection(Words(Secrets()))
    with pytest.raises(ConnectionLostError):
        await connection.tools()

    class Closing:
        async def list_tools(self, cursor: str | None) -> None:
            connection.over.set()
            raise RuntimeError("Client must be used within an async context manager")

    connection.opened(Closing())  # type: ignore[arg-type]  # a client's stand-in
    with pytest.raises(ConnectionLostError):
        await connection.tools()


async def test_an_answer_that_is_none_of_the_protocols_is_told_without_what_it_holds() -> None:
    class Odd:
        async def list_tools(self, cursor: str | None) -> ListToolsResult:
            return ListToolsResult.model_validate({"tools": [{"name": ["a kite"], "inputSchema": {}}]})

    connection = Connection(Words(Secrets()))
    connection.opened(Odd())  # type: ignore[arg-type]  # a client's stand-in
    with pytest.raises(ImageError) as caught:
        await connection.tools()
    assert caught.value.code == "mcp_error"
    assert caught.value.message == (
        "The MCP server's answer breaks the protocol. tools.0.name: Input should be a valid string"
    )
    assert "kite" not in "".join(traceback.format_exception(caught.value))


async def test_a_session_whose_task_was_cancelled_by_somebody_else_is_opened_anew() -> None:
    async with http_backend(Pages(1).app()) as backend:
        await paint(backend, "a kite")
        owner = backend._session._owner
        assert owner is not None
        owner.cancel()
        await asyncio.wait([owner])
        assert (await paint(backend, "a kite")).data == DOT
