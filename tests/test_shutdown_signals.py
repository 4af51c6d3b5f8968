"""How a stopping server is noticed: by its own signals, whose handlers go on working."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest
from imagecall.middleware.shutdown import Shutdown
from waiting import Clock, no_hanging, settle


class Server:
    """What handles the signals."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.taken.append(number)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that has taken the signals' handlers."""
    server = Server()
    before = {number: signal.signal(number, server.handle) for number in (signal.SIGTERM, signal.SIGINT)}
    yield server
    for number, handler in before.items():
        signal.signal(number, handler)


async def send(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)
    await settle()


class Open:
    """Something open, which counts how often it is told to end."""

    def __init__(self) -> None:
        self.told = 0

    def stop(self) -> None:
        self.told += 1


async def test_a_signal_begins_the_shutdown_and_reaches_the_server(server: Server) -> None:
    one, another = Shutdown(5), Shutdown(5)
    for shutdown in (one, another, one):
        shutdown.watch()
    await send()
    assert (one.begun, another.begun) == (True, True)
    assert server.taken == [signal.SIGTERM]
    one.reopen()
    another.reopen()


async def test_the_servers_object_is_still_found_by_its_handler(server: Server) -> None:
    Shutdown(5).watch()
    assert signal.getsignal(signal.SIGTERM) != server.handle
    assert signal.getsignal(signal.SIGTERM).__self__ is server  # type: ignore[union-attr]  # a method


async def test_a_handler_that_takes_our_place_is_told_apart(server: Server) -> None:
    shutdown = Shutdown(5)
    shutdown.watch()
    ours = signal.getsignal(signal.SIGTERM)
    assert callable(ours)

    def wrapper(number: int, frame: FrameType | None) -> None:
        ours(number, frame)

    signal.signal(signal.SIGTERM, wrapper)
    shutdown.watch()
    await send()
    assert shutdown.begun
    assert server.taken == [signal.SIGTERM]
    shutdown.reopen()


async def test_a_handler_of_the_loop_is_called_as_well(server: Server) -> None:
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, heard.set)
    shutdown = Shutdown(5)
    shutdown.watch()
    with no_hanging() as deadline:
        async with deadline:
            await send()
            await heard.wait()
    assert shutdown.begun
    loop.remove_signal_handler(signal.SIGTERM)
    shutdown.reopen()


async def test_what_is_open_is_told_after_the_grace_and_a_second_ctrl_c_ends_that(server: Server) -> None:
    clock = Clock()
    shutdown, patient, hasty, late = Shutdown(5), Open(), Open(), Open()
    with shutdown.holding(patient.stop), shutdown.holding(hasty.stop, at_once=True):
        await send(signal.SIGINT)
        assert (patient.told, hasty.told) == (0, 1)
        await send(signal.SIGTERM)
        await clock.forward(4)
        assert patient.told == 0
        await send(signal.SIGINT)
        assert (patient.told, hasty.told) == (1, 1)
        with shutdown.holding(late.stop):
            assert late.told == 1
        await clock.forward(5)
        assert (patient.told, hasty.told, late.told) == (1, 1, 1)


async def test_nothing_is_waited_for_for_ever() -> None:
    clock = Clock()
    shutdown, stubborn = Shutdown(5), Open()
    shutdown.watch()
    with shutdown.holding(stubborn.stop):
        closing = asyncio.create_task(shutdown.close())
        await settle()
        assert stubborn.told == 1
        assert not closing.done()
        await clock.forward(2)
        await closing
    assert stubborn.told == 1


async def test_a_process_that_takes_no_signals_is_left_alone() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert before[0] == signal.SIG_DFL
    Shutdown(5).watch()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


async def test_a_signal_that_is_ignored_stays_so(server: Server) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Shutdown(5).watch()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


async def test_a_server_in_another_thread_has_no_signals(server: Server) -> None:
    await asyncio.to_thread(lambda: asyncio.run(_watch()))
    assert signal.getsignal(signal.SIGTERM) == server.handle
    assert threading.current_thread() is threading.main_thread()


async def _watch() -> None:
    Shutdown(5).watch()


def test_a_signal_that_comes_when_the_loop_is_closed_reaches_the_server_alone(server: Server) -> None:
    shutdown = Shutdown(5)

    async def watch() -> None:
        shutdown.watch()

    asyncio.run(watch())
    os.kill(os.getpid(), signal.SIGTERM)
    assert server.taken == [signal.SIGTERM]
    assert not shutdown.begun
