"""The commands' own uvicorn when it stops: nobody is cancelled, nobody is waited for for ever."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from imagecall.middleware import server as server_module
from imagecall.middleware.server import Config, Server, Worker
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from waiting import no_hanging


class Stream:
    """An application with a stream that has no end.

    Attributes:
        told: how it learnt that its client has gone.
        raised: what was thrown at it instead.
        stays: whether it cares.
    """

    def __init__(self, *, stays: bool = False) -> None:
        self.told: Message | None = None
        self.raised: BaseException | None = None
        self.begun = asyncio.Event()
        self._stays = stays

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        self.begun.set()
        try:
            self.told = await receive()
            if self._stays:
                await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            self.raised = error
            raise


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[tuple[Server, bytes]]:
    """Run the server, with one client in the midst of a stream; wait until it has stopped."""
    server = Server(Config(app, 0.0, log_config=None, lifespan="off"))
    with no_hanging() as deadline, socket.create_server(("127.0.0.1", 0)) as listener:
        async with deadline:
            running = asyncio.create_task(server.serve(sockets=[listener]))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await reader.readuntil(b"first\r\n")
            yield server, head
            server.should_exit = True
            await running
            assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize("forced", [False, True])
async def test_a_stream_that_is_still_open_ends_as_if_its_client_had_left(
    forced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = Stream()
    async with serving(app) as (server, _):
        server.force_exit = forced
    assert app.told == {"type": "http.disconnect"}
    assert app.raised is None
    assert "ERROR" not in [record.levelname for record in caplog.records]


async def test_an_application_that_does_not_care_is_cancelled_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "_STUBBORN", 0.0)
    monkeypatch.setattr(server_module, "_FAREWELL", 0.1)
    app = Stream(stays=True)
    async with serving(app):
        pass
    assert app.told == {"type": "http.disconnect"}
    assert isinstance(app.raised, asyncio.CancelledError)


def test_each_of_several_workers_has_such_a_server() -> None:
    worker = Worker(Config("stopping_app:app", 0.0, log_config=None), [])
    server = worker.server
    assert isinstance(server, Server)
    assert worker.server is server
    worker.parent_conn.close()
    worker.child_conn.close()
