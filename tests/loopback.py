"""Servers on loopback sockets and a client on ASGI's own calls, so that order and liveness can be seen."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Scope

__all__ = [
    "END",
    "STREAM",
    "STREAM_HEAD",
    "Client",
    "Upstream",
    "answering",
    "ask",
    "body_message",
    "body_of",
    "http_scope",
    "json_answer",
    "piece",
    "raw_server",
    "read_request",
    "reset",
    "uvicorn_server",
]

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
"""How an upstream begins a stream, and the two ASGI messages that begin and end it for the client."""
STREAM_HEAD: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream")],
}
END: Message = {"type": "http.response.body", "body": b"", "more_body": False}

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[str]:
    """Run `serve` for each connection; yield the URL, and wait at the end until each has returned."""
    connections: list[asyncio.Task[Any]] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 25)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
        server.close()
        await asyncio.gather(*connections)
    except BaseException:  # a failed test does not release what it holds
        for task in connections:
            task.cancel()
        raise
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read one whole request as it stands on the wire; b"" when the peer has closed."""
    head = b""
    with suppress(asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
    fields = head.lower().split(b"\r\n")
    if b"transfer-encoding: chunked" in fields:
        return head + await reader.readuntil(b"0\r\n\r\n")
    length = next((int(line[15:]) for line in fields if line.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection off with a RST."""
    link = writer.get_extra_info("socket")
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def answering(*answers: bytes, seen: list[bytes] | None = None) -> Serve:
    """Give the n-th request of a connection the n-th answer, then wait until the client closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            request = await read_request(reader)
            if not request:
                return
            if seen is not None:
                seen.append(request)
            writer.write(answer)
        assert await reader.read() == b""

    return serve


class _AnnouncedServer(uvicorn.Server):
    """A server that tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@asynccontextmanager
async def uvicorn_server(app: ASGIApp) -> AsyncIterator[str]:
    """Run a real uvicorn with its lifespan in this loop; yield its URL."""
    server = _AnnouncedServer(uvicorn.Config(app, lifespan="on", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            await server.listening.wait()
            yield f"http://{host}:{port}"
            server.should_exit = True


def http_scope(
    path: str = "/v1/responses",
    *,
    method: str = "POST",
    headers: Iterable[tuple[bytes, bytes]] = (),
    **more: Any,
) -> Scope:
    """Build the scope of a request; `more` replaces any of its keys."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": list(headers),
    } | more


class Client:
    """One client of an ASGI app: says what it likes when it likes, and takes each message as it comes."""

    def __init__(self, app: ASGIApp, scope: Scope) -> None:
        self.says: asyncio.Queue[Message] = asyncio.Queue()
        self.hears: asyncio.Queue[Message] = asyncio.Queue()
        self._app = app
        self._scope = scope

    async def run(self) -> None:
        """Drive the exchange; return when the app does."""
        await self._app(self._scope, self.says.get, self.hears.put)

    def say(self, kind: str, **fields: Any) -> None:
        """Give the app one more message to receive."""
        self.says.put_nowait({"type": kind, **fields})

    def send_body(self, body: bytes, *, more_body: bool = False) -> None:
        """Send one piece of the request's body, the last unless told otherwise."""
        self.say("http.request", body=body, more_body=more_body)

    def rest(self) -> list[Message]:
        """Return what the app sent and nobody has taken yet."""
        messages = []
        with suppress(asyncio.QueueEmpty):
            while True:
                messages.append(self.hears.get_nowait())
        return messages


async def ask(app: ASGIApp, scope: Scope, *pieces: bytes) -> list[Message]:
    """Make one whole request whose body comes in `pieces`; return all that the app sent."""
    client = Client(app, scope)
    for piece in pieces:
        client.send_body(piece, more_body=True)
    client.send_body(b"")
    await client.run()
    return client.rest()


def body_of(messages: Iterable[Message]) -> bytes:
    """Join a response's body; assert that it was ended, once and last."""
    bodies = [message for message in messages if message["type"] == "http.response.body"]
    assert [message["more_body"] for message in bodies] == [True] * (len(bodies) - 1) + [False]
    return b"".join(message["body"] for message in bodies)


def piece(body: bytes) -> bytes:
    """Frame one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def json_answer(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    """Write a whole answer that is said to be JSON; `more` are further lines of its head."""
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n"
    return head % (status, len(body), more) + body


def body_message(body: bytes) -> Message:
    """Build the message by which `body` reaches the client while more is to come."""
    return {"type": "http.response.body", "body": body, "more_body": True}


class Upstream:
    """A server whose one connection is driven by the test."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.connected = asyncio.Event()
        self.released = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.connected.set()
        await self.released.wait()

    async def rest(self) -> bytes:
        """Read until the peer closes, in whatever manner."""
        received = b""
        with suppress(ConnectionResetError):
            while data := await self.reader.read(1 << 16):
                received += data
        return received
