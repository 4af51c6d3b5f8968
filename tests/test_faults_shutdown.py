"""A server that is told to stop while responses are open: each ends as its client understands."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest
from faulty import tried
from imagecall.middleware.shutdown import STOPPING
from sockets import create
from stopping import MOUNTED, SERVED, PictureServer, draw, running
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError

SIGNALS = [signal.SIGTERM, signal.SIGINT]
COMMANDS = {"served": SERVED, "mounted": MOUNTED}

each_signal = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
each_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def assert_quiet(log: list[str], *, opened: bool = True) -> None:
    """See that people are told once what is going on, and nothing that looks like a failure."""
    told = [line for line in log if "Traceback" in line or "ERROR" in line or "Shutting down;" in line]
    assert len(told) == opened, "".join(log)


def assert_ended(code: int | None, number: signal.Signals) -> None:
    """See that it ended by itself: of SIGTERM, which it passes on at last, or after Ctrl+C."""
    assert code == (-signal.SIGTERM if number == signal.SIGTERM else 0)


async def read_all(socket: ClientConnection, heard: list[Any]) -> None:
    """Read until the connection is closed."""
    while True:
        heard.append(json.loads(await socket.recv()))


@each_signal
@each_command
async def test_all_that_is_open_ends_within_the_grace(
    command: list[str], number: signal.Signals, unused_tcp_port: int
) -> None:
    painter = PictureServer()
    async with running(command, unused_tcp_port, painter) as server:
        idle = await server.ask(draw("anything"), close=False)
        await idle.heard(b"\r\n0\r\n\r\n")
        between = await server.ask(draw("between"))
        await between.heard(b"image_generation_call.completed")
        painter.quick = False
        silent = await server.ask(draw("head"))
        text = await server.ask(draw("text"))
        await text.heard(b"output_text.delta")
        painting = await server.ask(draw("anything"))
        await painting.heard(b"image_generation_call.generating")
        whole = await server.ask(draw("anything", stream=False))
        await painter.was_asked(2)
        async with connect(f"{server.url.replace('http', 'ws')}/v1/responses") as socket:
            await socket.send(json.dumps(create()))
            await painter.was_asked(3)
            server.signal(number)
            heard: list[Any] = []
            with pytest.raises(ConnectionClosedError) as closed:
                await read_all(socket, heard)
        await painter.was_left(3)
        ends = {}
        for name, client in {"silent": silent, "text": text, "painting": painting, "whole": whole}.items():
            await client.heard_all()
            ends[name] = client.verdict()
        await between.heard_all()
        await idle.heard_all()
        await server.ended()
    assert (ends, between.verdict(), idle.verdict()) == (
        {
            "silent": "503 server_shutting_down",
            "text": "failed 0",
            "painting": "failed 0",
            "whole": "503 server_shutting_down",
        },
        "failed 1",
        "completed 1",
    )
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    if command is SERVED or closed.value.rcvd.reason:  # uvicorn by itself may close WebSockets earlier
        assert closed.value.rcvd.reason == STOPPING
        assert [event["type"] for event in heard][-2:] == ["error", "response.failed"]
        assert heard[-1]["response"]["error"] == {"code": "server_error", "message": STOPPING}
    assert json.loads(whole.body)["error"]["message"] == STOPPING
    assert whole.headers[b"retry-after"] == b"5"
    assert_quiet(server.log)
    assert_ended(server.code, number)
    tried("a stopping server", ends.keys() | {"between", "idle", "socket"})


@each_command
async def test_what_can_end_by_itself_within_the_grace_does(command: list[str], unused_tcp_port: int) -> None:
    painter = PictureServer()
    painter.quick = False
    async with running(command, unused_tcp_port, painter, grace="20") as server:
        streamed = await server.ask(draw("anything"))
        whole = await server.ask(draw("anything", stream=False))
        await painter.was_asked(2)
        server.signal(signal.SIGTERM)
        await server.logged("Shutting down;")
        painter.may_paint.set()
        await streamed.heard_all()
        await whole.heard_all()
        await server.ended()
    assert (streamed.verdict(), whole.verdict()) == ("completed 1", "completed 1")
    assert_quiet(server.log)
    assert_ended(server.code, signal.SIGTERM)
    tried("a stopping server", ["streamed", "whole"])


async def test_nobody_connects_to_workers_that_end_what_is_open(unused_tcp_port: int) -> None:
    painter = PictureServer()
    painter.quick = False
    options = ("--workers", "2", "--store", "none")
    async with running(SERVED, unused_tcp_port, painter, *options, grace="20") as server:
        await server.logged("startup complete", 2)
        client = await server.ask(draw("anything"))
        await painter.was_asked(1)
        server.signal(signal.SIGTERM)
        await server.logged("Waiting for connections to close")
        await server.logged("Finished server process")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        painter.may_paint.set()
        await client.heard_all()
        await server.ended()
    assert client.verdict() == "completed 1"
    assert_quiet(server.log)
    tried("a stopping server")


@each_signal
@each_command
async def test_a_server_with_nothing_open_ends_at_once(
    command: list[str], number: signal.Signals, unused_tcp_port: int
) -> None:
    async with running(command, unused_tcp_port, PictureServer(), grace="1000") as server:
        server.signal(number)
        await server.ended()
    assert_quiet(server.log, opened=False)
    assert_ended(server.code, number)
    tried("a stopping server")


@pytest.mark.parametrize("options", [(), ("--workers", "2", "--store", "none")], ids=["one", "workers"])
async def test_what_is_not_ours_is_cut_without_a_word(options: tuple[str, ...], unused_tcp_port: int) -> None:
    async with running(SERVED, unused_tcp_port, PictureServer(), *options) as server:
        request = {"model": "text", "input": "Hello.", "stream": True}
        client = await server.ask(request)
        await client.heard(b"output_text.delta")
        async with connect(f"{server.url.replace('http', 'ws')}/v1/responses") as socket:
            await socket.send(json.dumps({"type": "response.create", **request}))
            while "output_text.delta" not in str(await socket.recv()):
                pass
            server.signal(signal.SIGTERM)
            event = json.loads(await socket.recv())
            with pytest.raises(ConnectionClosedError):
                await socket.recv()
        await client.heard_all()
        await server.ended()
    assert not client.whole
    assert (event["status"], event["error"]["message"]) == (503, STOPPING)
    assert_quiet(server.log, opened=False)
    tried("a stopping server", ["stream", "socket"])


@each_command
async def test_a_second_ctrl_c_means_at_once(command: list[str], unused_tcp_port: int) -> None:
    painter = PictureServer()
    painter.quick = False
    async with running(command, unused_tcp_port, painter, grace="1000") as server:
        client = await server.ask(draw("anything"))
        await painter.was_asked(1)
        server.signal(signal.SIGINT)
        await server.logged("Waiting for connections to close")
        server.signal(signal.SIGINT)
        await client.heard_all()
        await server.ended()
        await painter.was_left(1)
    assert client.verdict() == "failed 0"
    assert not any("Exception in ASGI application" in line for line in server.log), "".join(server.log)
    tried("a stopping server")


async def test_a_server_that_is_less_patient_gets_the_same_end(unused_tcp_port: int) -> None:
    painter = PictureServer()
    painter.quick = False
    options = ("--timeout-graceful-shutdown", "1")
    async with running(MOUNTED, unused_tcp_port, painter, *options, grace="1000") as server:
        streamed = await server.ask(draw("anything"))
        whole = await server.ask(draw("anything", stream=False))
        await painter.was_asked(2)
        server.signal(signal.SIGTERM)
        await streamed.heard_all()
        await whole.heard_all()
        await server.ended()
        await painter.was_left(2)
    assert (streamed.verdict(), whole.verdict()) == ("failed 0", "503 server_shutting_down")
    assert not any("Traceback" in line for line in server.log), "".join(server.log)
    tried("a stopping server", ["streamed", "whole"])


async def test_the_streams_of_others_learn_of_it_as_they_did(unused_tcp_port: int) -> None:
    async with running(MOUNTED, unused_tcp_port, PictureServer(), grace="1000") as server:
        client = await server.ask({}, path="/ticks", method="GET")
        await client.heard(b"tick")
        server.signal(signal.SIGTERM)
        await client.heard_all()
        await server.ended()
    assert_ended(server.code, signal.SIGTERM)
    tried("a stopping server")
