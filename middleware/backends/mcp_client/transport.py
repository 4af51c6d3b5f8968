"""How an MCP server is reached: a command that is started here, or a URL."""

from __future__ import annotations

import re
import shlex
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from yarl import URL

from ..base import ImageError
from ..option_error import OptionError
from ..own_headers import own_headers
from ..secret_values import Secrets, named_secrets

if TYPE_CHECKING:
    import httpx2

__all__ = ["COMPRESSED", "Faults", "HTTPServer", "StdioServer", "make_server"]

COMPRESSED = "The MCP server's answer is compressed, though nobody asked for that: switch it off there."

_SLACK = 1 << 20

_LOOKS_RANDOM = re.compile(r"(?=.*\d)[\w~.%-]{16,}")
"""A part of a path that may be a key: some hosts of MCP servers know their users by it."""

_CONNECT = 30.0
"""Seconds for connecting and sending; waiting for an answer has its own limit."""

_PATIENCE = 60.0
"""Seconds more than a call's own silence, after which a request that nobody awaits any more is dropped."""


@dataclass(slots=True)
class Faults:
    """What HTTP answered that the SDK does not tell.

    Attributes:
        status: that of the last request, if it was 400 or above.
        expired: whether the server no longer knows the session: it answered 404 to a request with a
            session's id, and the protocol demands a new session then.
        compressed: whether the last answer was, and therefore was not read.
    """

    status: int | None = None
    expired: bool = False
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is started by a command and speaks over its standard streams.

    Its error output goes where this process's own goes. Of the environment it gets PATH, HOME and the like,
    and `env`.
    """

    command: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """What the log may show of it: not its arguments."""
        return f"{self.command[0][:100]!r}"

    @property
    def secrets(self) -> Secrets:
        """What may not be shown."""
        return Secrets(named_secrets([self.env, *_options(self.command)]), self.env.values())

    def connect(self, _: Faults) -> AbstractAsyncContextManager[Any]:
        """Make the transport."""
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        program, *arguments = self.command
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(self.env))
        return stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr)

    def reason(self, problem: BaseException) -> str:
        """Name a problem for the log."""
        return type(problem).__name__

    def refused(self, problem: BaseException, _: Faults) -> ImageError | None:
        """Say why it could not be reached, if that is known; None for what the protocol itself says."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        if isinstance(problem, OSError):
            reason = problem.strerror or type(problem).__name__
            message = f"The MCP server's command cannot be started: {reason}."
        elif isinstance(problem, MCPError) and problem.code == CONNECTION_CLOSED:
            message = "The MCP server's command ended before it answered; its own error output tells why."
        else:
            return None
        return ImageError(message, code="mcp_unavailable")


@dataclass(frozen=True, slots=True)
class HTTPServer:
    """A server behind a URL, with the Streamable HTTP transport.

    Attributes:
        headers: sent with each request, to this server's origin only.
        timeout: seconds of silence that a call allows.
        max_bytes: of one picture.
    """

    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    timeout: float
    max_bytes: int

    @property
    def name(self) -> str:
        """What the log may show of it: no path and no query, which may hold a key."""
        return f"at {URL(self.url).origin()}"

    @property
    def secrets(self) -> Secrets:
        """What may not be shown."""
        url = URL(self.url)
        quoted = (pair.partition("=")[2] for pair in url.raw_query_string.split("&"))
        hosted = (part for part in url.raw_parts if _LOOKS_RANDOM.fullmatch(part))
        keys = named_secrets([self.headers, url.query])
        return Secrets([*keys, *hosted], [*self.headers.values(), *url.query.values(), *quoted])

    @property
    def max_event(self) -> int:
        """The longest event: servers tend to send a picture twice, as a block and as structured content."""
        return 2 * -(-self.max_bytes // 3) * 4 + _SLACK

    @asynccontextmanager
    async def connect(self, faults: Faults) -> AsyncIterator[Any]:
        """Make the transport; it notes its `faults`."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def answered(response: httpx2.Response) -> None:
            status = response.status_code
            packed = response.headers.pop("content-encoding", "identity").lower() != "identity"
            if response.request.method == "POST":
                faults.status = status if status >= 400 else None
                faults.expired |= status == 404 and "mcp-session-id" in response.request.headers
                faults.compressed = packed
            if packed:
                # Some kilobytes of it may become gigabytes.
                response.stream = _bounded(response.stream, 0, "The body is compressed, unasked.")
            elif not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                words = f"The body exceeded the {self.max_event} byte limit."
                response.stream = _bounded(response.stream, self.max_event, words)

        async with (
            httpx2.AsyncClient(
                headers=[
                    (name.encode(), value.encode())
                    for name, value in ({"Accept-Encoding": "identity"} | self.headers).items()
                ],
                timeout=httpx2.Timeout(_CONNECT, read=self.timeout + _PATIENCE),
                event_hooks={"response": [answered]},
                trust_env=False,  # neither its proxies nor its netrc: a key stands in each request
                verify=ssl.create_default_context(),
            ) as client,
            # Its default loses every picture above 768 kB.
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=self.max_event
            ) as streams,
        ):
            yield streams

    def reason(self, problem: BaseException) -> str:
        """Name a problem for the log; other words than the system's own may hold a key."""
        import httpx2

        return str(problem) if isinstance(problem, httpx2.ConnectError) else type(problem).__name__

    def refused(self, problem: BaseException, faults: Faults) -> ImageError | None:
        """Say why it could not be reached, if that is known; None for what the protocol itself says."""
        import httpx2

        if faults.compressed:
            message = COMPRESSED
        elif isinstance(problem, httpx2.TransportError | OSError):
            message = "The MCP server cannot be reached."
        elif faults.status in (401, 403):
            message = (
                f"The MCP server answered HTTP {faults.status}: check backend_api_key and backend_headers."
            )
        elif faults.status is not None:
            message = f"The MCP server answered HTTP {faults.status}: check its URL."
        else:
            return None
        return ImageError(message, code="mcp_unavailable")


def make_server(
    url: str | None,
    command: str | Sequence[str] | None,
    *,
    headers: Mapping[str, str],
    env: Mapping[str, str],
    api_key: str | None,
    timeout: float,
    max_bytes: int,
) -> StdioServer | HTTPServer:
    """Check how a server is to be reached.

    Raises:
        OptionError: neither or both of url and command are given, the URL is none, or something is given that
            belongs to the other of the two.
    """
    if (url is None) == (command is None):
        message = "An MCP server is reached by a URL or by a command: give one of them."
        raise OptionError("url", message)
    if command is not None:
        if headers or api_key:
            message = "A command has no headers: give it its key in its environment, by env."
            raise OptionError("headers" if headers else "api_key", message)
        return StdioServer(_words(command), env)
    if env:
        raise OptionError("env", "A URL has no environment: env belongs to a command.")
    assert url is not None
    url = url.strip()
    _check_url(url)
    return HTTPServer(url, own_headers(api_key, headers), timeout, max_bytes)


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        raise OptionError("command", "The MCP server's command has a quote that does not end.") from None
    if not words:
        raise OptionError("command", "The MCP server's command is empty.")
    return tuple(words)


def _options(command: Sequence[str]) -> Iterator[dict[str, str]]:
    """Give the options of a command line: `--name value`, `--name=value`, `name: value`."""
    for word, following in pairwise([*command, ""]):
        name, sign, value = word.partition("=")
        if not sign:
            name, sign, value = word.partition(":")
        if sign or word.startswith("-"):
            yield {name: value if sign else following}


def _check_url(url: str) -> None:
    # `from None` and no echo: what stands in the URL by mistake may be a password.
    example = "give one such as http://127.0.0.1:8000/mcp"
    try:
        parsed = URL(url)
    except ValueError:
        raise OptionError("url", f"The MCP server's URL is none: {example}.") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise OptionError("url", f"The MCP server's URL is not http:// or https://: {example}.")
    if parsed.raw_user is not None or parsed.raw_password is not None:
        message = "The MCP server's URL holds a user or password: use the API key or headers."
        raise OptionError("url", message)


def _bounded(stream: Any, limit: int, words: str) -> Any:
    """Bound a body that the SDK would read whole, whatever its length; beyond `limit` it fails in `words`."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = limit
            async for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise httpx2.StreamError(words)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
