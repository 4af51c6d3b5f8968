"""One long-lived session with an MCP server, opened anew after it has died.

A session's cancel scopes belong to the task that opened it, and pictures are asked for in the tasks of many
requests. So one task opens, holds and closes all sessions, one after the other; everybody else only sends
requests over the open one, which the SDK allows from any task, and tells when it is found dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..base import ImageError
from ..words import Words
from .logs import without_secrets
from .schema import ImageTool, read_tool
from .transport import COMPRESSED, Faults, HTTPServer, StdioServer

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, Tool

__all__ = ["Connection", "ConnectionLostError", "MCPSession"]

log = logging.getLogger("imagecall")

_CLOSING = 15.0
"""Seconds for an orderly end. A process that ignores it is killed after half of them."""

_CLOSED = ("connection closed", "sse stream", "bad request: no valid session", "session not found")
"""How the SDK tells that a connection has ended, and how servers that give it the same number, which has
other uses as well, tell that they have forgotten a session."""

_PAGES = 50
"""Pages of a list of tools; a server that never ends it cannot hold anybody up."""


class ConnectionLostError(Exception):
    """The session ended before the answer came; in words, if there are any."""


class Connection:
    """One opening of the session.

    Attributes:
        settled: set when it is open, or has failed to open.
        failure: why it failed to open.
        over: set when it is dead or no longer wanted.
        opening: whether its turn has come.
        calls: how many requests are under way.
    """

    def __init__(self, words: Words) -> None:
        self.settled = asyncio.Event()
        self.over = asyncio.Event()
        self.failure: ImageError | None = None
        self.faults = Faults()
        self.opening = False
        self.calls = 0
        self._words = words
        self._client: Client | None = None

    def opened(self, client: Client) -> None:
        """Let the waiting calls begin."""
        self._client = client
        self.settled.set()

    def ended(self, failure: ImageError) -> None:
        """Let nobody wait for it any more."""
        if not self.settled.is_set():
            self.failure = failure
        self.over.set()
        self.settled.set()

    async def tools(self) -> tuple[ImageTool, ...]:
        """List the server's tools, as they are now: it may have been replaced without a word.

        Raises:
            ConnectionLostError: the session has died.
            ImageError: the server refuses to tell.
        """
        found: list[ImageTool] = []
        cursor = None
        with self._asking() as client:
            for _ in range(_PAGES):
                page = await client.list_tools(cursor=cursor)
                found += await asyncio.to_thread(_read_tools, page.tools)
                cursor = page.next_cursor
                if cursor is None:
                    break
        return tuple(found)

    async def call(self, name: str, arguments: dict[str, Any], alive: Callable[[], None]) -> CallToolResult:
        """Call a tool; cancelling this cancels the tool on the server.

        Args:
            name: the tool's.
            arguments: what to call it with.
            alive: called whenever the server says that it is still at work.

        Raises:
            ConnectionLostError: the session has died.
            ImageError: the server refuses the call, or breaks the protocol.
        """

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            log.debug("the MCP tool %s: %g of %s %s", name, progress, total, self._words.show(message or ""))
            alive()

        with self._asking() as client:
            return await client.call_tool(name, arguments, progress_callback=progressed)

    async def read(self, uri: str) -> list[str]:
        """Read a resource; give what it holds in base64.

        Raises:
            ConnectionLostError: the session has died.
            ImageError: the server refuses it.
        """
        with self._asking() as client:
            resource = await client.read_resource(uri)
        blobs = (getattr(content, "blob", None) for content in resource.contents)
        return [blob for blob in blobs if isinstance(blob, str)]

    @contextmanager
    def _asking(self) -> Iterator[Client]:
        """Translate all that a request may raise. A traceback would show the server's words as they came."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        client = self._client
        if client is None or self.over.is_set():
            raise ConnectionLostError
        self.calls += 1
        try:
            yield client
        except MCPError as error:
            if self.faults.compressed:
                self.over.set()
                raise ImageError(COMPRESSED, code="mcp_error") from None
            if self._is_lost(error):
                self.over.set()
                raise ConnectionLostError(self._words.show(error.message)) from None
            if error.code == CONNECTION_CLOSED and self.calls == 1:
                self.over.set()  # likely a server's own use of the number; if not, the next call heals it
            if "byte limit" in error.message:
                message = "The MCP server's answer is larger than any picture that max_image allows."
                raise ImageError(message, code="image_too_large") from None
            raise ImageError(self._said(error), code="mcp_error") from None
        except (RuntimeError, ValidationError) as error:
            if self.over.is_set():
                raise ConnectionLostError from None
            said = self._words.show(f"The MCP server's answer breaks the protocol. {_fault(error)}")
            raise ImageError(said, code="mcp_error") from None
        finally:
            self.calls -= 1

    def _is_lost(self, error: Any) -> bool:
        """Tell whether a new session may do better: this one is closed, or the server has forgotten it."""
        from mcp_types import CONNECTION_CLOSED

        words = error.message.lower()
        closed = words.startswith(_CLOSED) and "byte limit" not in words
        return (error.code == CONNECTION_CLOSED and closed) or self.over.is_set() or self.faults.expired

    def _said(self, error: Any) -> str:
        status = f" (HTTP {self.faults.status})" if self.faults.status else ""
        return self._words.show(f"The MCP server refused the request: {error.message}{status}")


class MCPSession:
    """Holds the one session; an async context manager.

    Args:
        server: how to reach it.
        words: what may be shown of what it says.
        timeout: seconds that opening may take.
    """

    def __init__(self, server: StdioServer | HTTPServer, words: Words, timeout: float) -> None:
        self._server = server
        self._words = words
        self._timeout = timeout
        self._current: Connection | None = None
        self._wanted: asyncio.Queue[Connection | None] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None
        self._closed = True

    def start(self) -> None:
        """Begin the life of the task that owns the sessions; none is opened yet."""
        self._closed = False
        self._owner = asyncio.create_task(self._own())

    async def stop(self) -> None:
        """Close the session and end the task. Calls under way fail."""
        self._closed = True
        if self._owner is None:
            return
        self._wanted.put_nowait(None)
        if self._current is not None:
            if self._current.opening and not self._current.settled.is_set():
                self._owner.cancel()
            self._current.over.set()
        await asyncio.wait([self._owner])

    async def connection(self) -> Connection:
        """Return the open session, opening one first if there is none.

        Raises:
            ImageError: it cannot be opened. The next call tries again.
        """
        if self._closed or self._owner is None:
            raise _closed()
        if self._current is None or self._current.over.is_set():
            self._current = Connection(self._words)
            self._wanted.put_nowait(self._current)
        if self._owner.done():  # cancelled by something that was none of its business
            self._owner = asyncio.create_task(self._own())
        current = self._current
        await current.settled.wait()
        if current.failure is not None:
            raise current.failure
        return current

    async def _own(self) -> None:
        with without_secrets(self._server.secrets):
            while connection := await self._wanted.get():
                if connection.over.is_set():  # stopped before its turn had come
                    connection.ended(_closed())
                else:
                    await self._hold(connection)

    async def _hold(self, connection: Connection) -> None:
        """Open a session, wait until it is over, close it."""
        failure = _closed()
        connection.opening = True
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._timeout):
                    client = await stack.enter_async_context(self._client(connection))
                connection.opened(client)
                await connection.over.wait()
                async with asyncio.timeout(_CLOSING):
                    await stack.aclose()
        except Exception as error:  # noqa: BLE001  a group of whatever the transport's tasks raised
            problem = _first(error)
            failure = self._failure(problem, connection.faults)
            self._log(problem, failure, opened=connection.settled.is_set())
        finally:
            connection.ended(failure)

    def _client(self, connection: Connection) -> Client:
        from mcp import Client

        return Client(self._server.connect(connection.faults))

    def _log(self, problem: BaseException, failure: ImageError, *, opened: bool) -> None:
        """Tell whoever runs this what broke. Before it is open, a server knows of no prompt to repeat."""
        reason = self._server.reason(problem) or type(problem).__name__
        if opened:
            log.info("The session with the MCP server %s broke: %s", self._server.name, reason)
        else:
            log.warning("The MCP server %s: %s [%s]", self._server.name, failure.message, reason)

    def _failure(self, problem: BaseException, faults: Faults) -> ImageError:
        if isinstance(problem, TimeoutError):  # which is an OSError, too
            seconds = f"the {self._timeout:g} seconds that backend_timeout allows"
            message = f"The MCP server did not answer within {seconds}."
        elif refused := self._server.refused(problem, faults):
            return refused
        else:
            message = self._words.show(f"The MCP server cannot be used: {_fault(problem)}")
        return ImageError(message, code="mcp_unavailable")


def _closed() -> ImageError:
    return ImageError("The MCP server's session is closed.", code="mcp_unavailable")


def _first(error: BaseException) -> BaseException:
    """Unwrap the first error of a group of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _fault(error: BaseException) -> str:
    """Say what is wrong; of an answer that is none of the protocol's, where, and nothing of what it holds."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _read_tools(tools: Iterable[Tool]) -> list[ImageTool]:
    return [read_tool(tool.name, tool.input_schema) for tool in tools]
