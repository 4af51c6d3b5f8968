"""Pictures from an MCP server: whichever tool it has, called with what it takes, read from what it gives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .base import Image, ImageError, ImageRequest, OnPartial
from .mcp_client.arguments import fill_arguments
from .mcp_client.reader import PictureReader
from .mcp_client.results import places, revised_prompt, said
from .mcp_client.schema import ImageTool
from .mcp_client.session import Connection, ConnectionLostError, MCPSession
from .mcp_client.template import ArgumentsTemplate
from .mcp_client.tools import choose_edit_tool, choose_tool
from .mcp_client.transport import HTTPServer, make_server
from .words import Words

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["MCPBackend"]

log = logging.getLogger("imagecall")


class MCPBackend:
    """Makes pictures with a tool of an MCP server. Implements `ImageBackend`; an async context manager.

    One session serves all calls. It is opened with the first of them and again after it has died. A call
    that a dying session leaves without an answer is made once more on a new one: better twice than never.

    Args:
        url: of a server with the Streamable HTTP transport.
        command: instead of a URL, starts a server that speaks over stdio: a command line, or its words.
        headers: sent with each HTTP request, to the server's own origin only.
        env: variables for the command, beside PATH, HOME and the like; nothing else is handed on.
        api_key: sent as a bearer token, unless `headers` hold another authorization.
        tool: makes new pictures. Without one: generate_image, create_image, text_to_image, txt2img or
            image_generation, else the only tool that takes a `prompt`.
        edit_tool: changes pictures. Without one: edit_image, image_edit, image_to_image or img2img, else the
            tool for new ones, if it takes a picture.
        arguments: the tool's arguments as an `ArgumentsTemplate`, for tools whose own schema does not tell
            how to fill them. It serves for edits, too, if it has a place for pictures.
        model: named to the tool, if it takes one.
        files_dir: a folder which the server shares with us. Results that name files are read from it, and
            from nowhere else.
        origins: further origins from which pictures may be fetched by URL, beside the server's own.
        timeout: seconds of silence after which a call is given up; progress is no silence.
        max_bytes: the longest picture.

    Raises:
        ImportError: the extra `mcp` is not installed.
        OptionError: an argument is wrong, or contradicts another one.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        command: str | Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        api_key: str | None = None,
        tool: str | None = None,
        edit_tool: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        model: str | None = None,
        files_dir: str | Path | None = None,
        origins: Iterable[str] = (),
        timeout: float = 300.0,
        max_bytes: int = 32 << 20,
    ) -> None:
        try:
            import mcp  # noqa: F401  at the start: it takes its time
        except ImportError as error:
            message = (
                "The MCP backend needs the official SDK, which is missing: pip install 'imagecall[mcp]'."
            )
            raise ImportError(message, name="mcp") from error
        server = make_server(
            url,
            command,
            headers=headers or {},
            env=env or {},
            api_key=api_key,
            timeout=timeout,
            max_bytes=max_bytes,
        )
        self._words = Words(server.secrets)
        self._session = MCPSession(server, self._words, timeout)
        self._template = None if arguments is None else ArgumentsTemplate(arguments)
        self._reader = PictureReader(
            base=url,
            headers=server.headers if isinstance(server, HTTPServer) else {},
            origins=origins,
            files_dir=files_dir,
            max_bytes=max_bytes,
        )
        self._tool = tool
        self._edit_tool = edit_tool
        self._model = model
        self._timeout = timeout

    async def __aenter__(self) -> Self:
        self._session.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.stop()
        await self._reader.close()

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image:  # noqa: ARG002  see below
        """Call the tool and take the picture out of its result. MCP has no previews.

        Raises:
            ImageError: the server cannot be reached, has no fitting tool, fails, is silent for too long, or
                gives no picture; with the server's own words, where it has any.
        """
        try:
            return await self._attempt(request)
        except ConnectionLostError:
            log.info("The MCP server's session was lost; the call is made once more.")
        try:
            return await self._attempt(request)
        except ConnectionLostError as error:
            said = f": {error}." if str(error) else "."
            message = f"The MCP server ended the session twice before it answered{said}"
            raise ImageError(message, code="mcp_unavailable") from error

    async def _attempt(self, request: ImageRequest) -> Image:
        connection = await self._session.connection()
        loop = asyncio.get_running_loop()
        silence = asyncio.timeout(self._timeout)

        def alive() -> None:
            with suppress(RuntimeError):  # news that come after the end
                silence.reschedule(loop.time() + self._timeout)

        try:
            async with silence:
                return await self._make(connection, request, alive)
        except TimeoutError as error:
            if not connection.calls:  # nobody else got an answer either: the server may hang
                connection.over.set()
            message = (
                f"The MCP server was silent for the {self._timeout:g} seconds that backend_timeout allows."
            )
            raise ImageError(message, code="timeout") from error

    async def _make(self, connection: Connection, request: ImageRequest, alive: Callable[[], None]) -> Image:
        tools = await connection.tools()
        alive()
        try:
            tool = self._choose(tools, request)
            arguments = await asyncio.to_thread(self._fill, tool, request)
        except ImageError as error:
            if error.code in ("mcp_no_tool", "mcp_arguments"):  # tools and arguments by name, no prompt
                log.warning("%s", error.message)
            raise
        result = await connection.call(tool.name, arguments, alive)
        alive()
        if result.is_error:
            words = self._words.show(said(result.content, result.structured_content))
            raise ImageError(words or f"The MCP tool {tool.name[:40]!r} failed.", code="mcp_tool_error")
        return await self._read(connection, tool, result, alive)

    def _choose(self, tools: Sequence[ImageTool], request: ImageRequest) -> ImageTool:
        if not request.images:
            return choose_tool(tools, self._tool)
        if self._edit_tool is None and self._template is not None and self._template.edits:
            return choose_tool(tools, self._tool)
        return choose_edit_tool(tools, self._edit_tool, self._tool)

    def _fill(self, tool: ImageTool, request: ImageRequest) -> dict[str, Any]:
        """Fill the arguments; pictures in base64 take their time."""
        template = self._template
        if template is not None and (template.edits or not request.images):
            return template.fill(request, self._model)
        return fill_arguments(tool, request, model=self._model)

    async def _read(
        self, connection: Connection, tool: ImageTool, result: CallToolResult, alive: Callable[[], None]
    ) -> Image:
        """Take the first picture that a result holds."""
        content, structured = result.content, result.structured_content
        image, problem = await self._reader.read(places(content, structured), connection, alive)
        if image is not None:
            return replace(image, revised_prompt=revised_prompt(content, structured))
        words = self._words.show(said(content, structured))
        if problem is not None:
            message = f"{problem.message} The server said: {words}" if words else problem.message
            raise ImageError(message, code=problem.code) from problem
        raise ImageError(words or f"The MCP tool {tool.name[:40]!r} returned no picture.", code="no_image")
