"""Frames that leave without the lock, beside those of everybody who has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from exchanges import Steps, ask, turn
from imagecall.events.actions import Action, Finish, Send
from imagecall.middleware.delivery import Delivery
from starlette.types import Message
from transcript import message

pytestmark = pytest.mark.lanes

CHUNKS = [frame + b"\n\n" for frame in turn(message(0, "msg_a", *"abcdef")).split(b"\n\n") if frame]
BEGINNING, (B, C, D) = CHUNKS[:5], CHUNKS[5:8]
"""What comes up to the first delta, and the next three, which can go the short way."""
OURS = b"event: of_ours\ndata: {}\n\n"


class _Client:
    """A sink whose writes wait until they are let go, one by one."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.taken: list[bytes] = []
        self.slow = False
        self.gone = False
        self._began = asyncio.Event()
        self._gates: list[asyncio.Event] = []

    def head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        raise AssertionError("nobody has a head here")

    async def write(self, frames: bytes) -> None:
        self.begun.append(frames)
        self._began.set()
        if self.gone:
            raise OSError("the client has gone")
        if self.slow:
            self._gates.append(gate := asyncio.Event())
            await gate.wait()
        self.taken.append(frames)

    async def keepalive(self) -> None:
        await self.write(b": alive\n\n")

    async def close(self, finish: Finish) -> None:
        raise AssertionError("nothing ends here")

    def go_on(self) -> None:
        """Let the oldest write that waits go."""
        self._gates.pop(0).set()

    async def begins(self, frames: bytes) -> None:
        """Wait until these are being written."""
        while frames not in self.begun:
            self._began.clear()
            await self._began.wait()


class _Talk:
    """A delivery whose server has just said the first delta of a text."""

    def __init__(self) -> None:
        self.client = _Client()
        self.left = 0
        self.log: list[bytes] = []
        self.delivery = Delivery(
            self._receive,
            self._send,
            self.client,
            Steps(ask()).translator,
            on_leave=self._leave,
            on_actions=self._act,
            log=self.log,
        )

    async def _receive(self) -> Message:
        raise AssertionError("nobody listens here")

    async def _send(self, message: Message) -> None:
        raise AssertionError("everything goes through the sink")

    def _leave(self) -> None:
        self.left += 1

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            assert isinstance(action, Send)
            self.delivery.push(action.frames)

    async def tell(self) -> None:
        """Send something of our own, as whoever has decided it does."""
        async with self.delivery.lock:
            self.delivery.push(OURS)
            await self.delivery.flush()


@asynccontextmanager
async def _talking() -> AsyncIterator[tuple[_Talk, _Client]]:
    talk = _Talk()
    for chunk in BEGINNING:
        await talk.delivery.stream(chunk)
    assert talk.client.taken[-1] == BEGINNING[-1]
    talk.client.taken.clear()
    talk.log.clear()
    talk.client.slow = True
    yield talk, talk.client
    assert not talk.delivery.busy
    assert talk.log == [frames for frames in talk.client.taken if not frames.startswith(b":")]


async def _settle() -> None:
    """Let everything that can go on do so: each step takes a turn of the loop."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_is_decided_meanwhile_leaves_after_the_frame_that_is_on_its_way() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        tasks.create_task(talk.delivery.stream(B))
        await client.begins(B)
        tasks.create_task(talk.tell())
        await _settle()
        assert client.begun[-1] == B
        assert talk.delivery.busy
        client.go_on()
        await client.begins(OURS)
        client.go_on()
    assert client.taken == [B, OURS]


async def test_a_frame_that_was_cancelled_on_its_way_leaves_before_what_was_decided_meanwhile() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        streaming = tasks.create_task(talk.delivery.stream(B))
        await client.begins(B)
        tasks.create_task(talk.tell())
        await _settle()
        client.slow = False
        streaming.cancel()
    assert client.taken == [B, OURS]


async def test_whoever_gives_up_waiting_for_a_frame_disturbs_nobody() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        tasks.create_task(talk.delivery.stream(B))
        await client.begins(B)
        telling = tasks.create_task(talk.tell())
        await _settle()
        telling.cancel()
        await _settle()
        client.slow = False
        client.go_on()
        await _settle()
        await talk.delivery.stream(C)
    assert client.taken == [B, OURS, C]


async def test_frames_that_come_while_another_is_on_its_way_keep_their_order() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        for chunk in (B, C, D):
            tasks.create_task(talk.delivery.stream(chunk))
        for chunk in (B, C, D):
            await client.begins(chunk)
            client.go_on()
            await _settle()
    assert client.taken == [B, C, D]


async def test_frames_keep_their_order_behind_a_keepalive() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        tasks.create_task(talk.delivery.keep_alive())
        await client.begins(b": alive\n\n")
        tasks.create_task(talk.delivery.stream(B))
        await _settle()
        client.slow = False
        client.go_on()
        # The lock is free in this very moment, but another frame has its turn.
        tasks.create_task(talk.delivery.stream(C))
    assert client.taken == [b": alive\n\n", B, C]


async def test_a_keepalive_waits_for_a_frame_that_is_on_its_way() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        tasks.create_task(talk.delivery.stream(B))
        await client.begins(B)
        tasks.create_task(talk.delivery.keep_alive())
        await _settle()
        assert client.begun[-1] == B
        client.slow = False
        client.go_on()
    assert client.taken == [B, b": alive\n\n"]


async def test_a_frame_that_slips_in_before_who_waits_is_waited_for_again() -> None:
    async with _talking() as (talk, client), asyncio.TaskGroup() as tasks:
        flushed: list[list[bytes]] = []

        async def two() -> None:
            await talk.delivery.stream(B)
            await talk.delivery.stream(C)

        async def nothing_to_tell() -> None:
            async with talk.delivery.lock:
                await talk.delivery.flush()
                flushed.append(list(client.taken))

        tasks.create_task(two())
        await client.begins(B)
        tasks.create_task(nothing_to_tell())
        await _settle()
        client.go_on()
        await client.begins(C)
        await _settle()
        assert client.taken == [B]
        client.go_on()
    assert flushed == [[B, C]]


async def test_a_client_that_goes_while_a_frame_is_on_its_way_has_left() -> None:
    async with _talking() as (talk, client):
        client.gone = True
        await talk.delivery.stream(B)
        assert talk.left == 1
        assert talk.delivery.gone
        await talk.delivery.stream(C)
        await talk.delivery.keep_alive()
        assert client.begun[-1] == B
        talk.log.clear()
