"""The commands' own uvicorn when it stops: nobody is cancelled, nobody is waited for for ever."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from imagecall.middleware import server as server_module
from imagecall.middleware.server import Config, Server, Worker, Workers
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


def test_a_grace_without_an_end_is_one() -> None:
    assert Config("stopping_app:app", math.inf, log_config=None).timeout_graceful_shutdown is None


HANGING = """
import asyncio, sys
from imagecall.middleware.serving import listening, serve_one
from imagecall.middleware.settings import Settings

async def app(scope, receive, send):
    asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for _ in range(2):
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        print(kind, flush=True)

serve_one(app, listening("127.0.0.1", 0, Settings())[0], 0.0, log_level="critical")
"""
"""A server with a thread that does not end."""


def test_another_ctrl_c_ends_the_process_in_silence_though_a_thread_still_works() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HANGING], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"lifespan.startup\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"lifespan.shutdown\n"
        for _ in range(100):  # the server itself takes note of those that come before its very end
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
                break
        _, words = process.communicate()
    assert (process.returncode, words) == (-signal.SIGINT, b"")


def test_behind_the_servers_end_ctrl_c_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[int] = []

    async def serve(self: Server, sockets: list[socket.socket]) -> None:
        self.handle_exit(signal.SIGINT, None)

    monkeypatch.setattr(Server, "serve", serve)
    before = signal.getsignal(signal.SIGINT)
    try:
        Server(Config("stopping_app:app", 0.0, log_config=None)).run([])
        signal.raise_signal(signal.SIGINT)  # as uvicorn passes it on
        handler = signal.getsignal(signal.SIGINT)
        monkeypatch.setattr(signal, "raise_signal", raised.append)
        assert callable(handler)
        handler(signal.SIGINT, None)
        assert (raised, signal.getsignal(signal.SIGINT)) == ([signal.SIGINT], signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGINT, before)


def test_workers_that_are_told_to_stop_find_the_port_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Workers(Config("stopping_app:app", 0.0, log_config=None), [listener]).terminate_all()
        assert listener.fileno() == -1


def test_each_of_several_workers_has_such_a_server() -> None:
    worker = Worker(Config("stopping_app:app", 0.0, log_config=None), [])
    server = worker.server
    assert isinstance(server, Server)
    assert worker.server is server
    worker.parent_conn.close()
    worker.child_conn.close()
