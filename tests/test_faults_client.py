"""Clients that go away, on real sockets, in every state of a response: nothing of theirs is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import pytest
from faulty import Front, World, faulty_world, mounted, served, tried
from faulty_server import CALL, TEXT, Deed, Link, cut_at, good
from loopback import STREAM, piece
from model_server import HOSTED, saying
from painters import Painter
from raw_client import RawClient
from rules import check_beginning

Wait = Callable[[World, RawClient, Painter], Awaitable[None]]


class Held:
    """A deed after which the model server holds its connection, until the product closes it."""

    def __init__(self, *said: bytes) -> None:
        self._said = said
        self.was_left = asyncio.Event()

    async def __call__(self, link: Link) -> None:
        with suppress(ConnectionError):
            await link.say(*self._said)
        await link.closed()
        self.was_left.set()


# -- when it leaves --------------------------------------------------------------------------------


async def asked(world: World, client: RawClient, painter: Painter) -> None:
    await world.upstream.was_asked(1)


async def asked_twice(world: World, client: RawClient, painter: Painter) -> None:
    await world.upstream.was_asked(2)


async def painting(world: World, client: RawClient, painter: Painter) -> None:
    await painter.was_asked()


def heard(needle: bytes) -> Wait:
    async def wait(world: World, client: RawClient, painter: Painter) -> None:
        await client.heard(needle)

    return wait


async def not_reading(world: World, client: RawClient, painter: Painter) -> None:
    """Wait until all buffers on the way are full."""
    await client.heard(b"response.output_text.delta")
    client.reading.clear()
    await world.upstream.was_held_up()


@dataclass(frozen=True, slots=True)
class Leave:
    """A state of a response in which its client leaves.

    Attributes:
        name: of the state.
        said: what the model server has said in each turn; it holds the last one's connection.
        until: waits for the state.
        paints: whether the picture is finished by then.
        stream: whether it asks for a stream.
    """

    name: str
    said: tuple[bytes, ...]
    until: Wait
    paints: bool = True
    stream: bool = True


WORDS = b"".join(saying(*["word " * 20_000] * 60))
STATES = [
    Leave("before turn one answers", (b"",), asked),
    Leave("behind turn one's head", (STREAM,), asked),
    Leave("while a text streams", (STREAM + piece(cut_at(b"\n\n", TEXT)),), heard(b"response.created")),
    Leave("amid a frame", (STREAM + piece(CALL[: CALL.index(b"item_id")]),), heard(b"response.in_progress")),
    Leave(
        "while the model calls",
        (STREAM + piece(cut_at(b"function_call_arguments.delta\n")),),
        heard(b"call.in_progress"),
    ),
    Leave("while a picture is made", (STREAM + piece(CALL),), painting, paints=False),
    Leave("before turn two answers", (CALL, b""), asked_twice),
    Leave(
        "while turn two streams", (CALL, STREAM + piece(cut_at(b"output_text.delta\n", TEXT))), asked_twice
    ),
    Leave("while the last events are flushed", (CALL, STREAM + piece(TEXT)), heard(b"response.completed")),
    Leave("when it reads slowly", (CALL, STREAM + piece(WORDS)), not_reading),
    Leave("before a response in JSON", (b"",), asked, stream=False),
    Leave("while a response in JSON is painted", (CALL,), painting, paints=False, stream=False),
]


@pytest.mark.parametrize("front", [served, mounted])
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
async def test_a_client_that_leaves_leaves_nothing_behind(
    front: Front, state: Leave, how: Literal["close", "reset"]
) -> None:
    painter = Painter(waits=not state.paints)
    held = Held(state.said[-1])
    whole = state.said[-1] == CALL
    deeds: list[Deed] = [*[good] * (len(state.said) - 1), good if whole else held]
    async with faulty_world(front, painter, *deeds) as world:
        async with world.client(stream=state.stream) as client:
            await state.until(world, client, painter)
            client.leave(how)
            if not whole:
                await held.was_left.wait()
            if not state.paints:
                await painter.was_cancelled()
        if state.stream and client.raw:
            assert check_beginning(client.body, tools=[HOSTED], tool_choice="auto") == []
        painter.may_finish.set()
        await world.is_well()
    tried("a client that leaves")
