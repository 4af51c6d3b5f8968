"""Keep-alive comments: when they are sent, and when not."""

from __future__ import annotations

import asyncio

import pytest
from asgi import ask, conversation, draw, middleware
from imagecall.events.sse import KEEPALIVE
from kite import kite_stream, usage
from model_server import KITE_TURNS, ModelServer, saying
from painters import Painter
from rules import read_events
from waiting import Clock

EXPECTED = kite_stream(spent=usage(200, 20))


async def test_a_silent_response_is_kept_alive_between_its_frames() -> None:
    clock, painter = Clock(), Painter(waits=True)
    async with conversation(middleware(ModelServer(*KITE_TURNS), painter), draw()) as client:
        await painter.was_asked()
        await clock.forward(14)
        assert KEEPALIVE not in client.pieces
        for count in (1, 2, 3):
            await clock.forward(15)
            assert client.pieces.count(KEEPALIVE) == count
            assert client.pieces[-count:] == [KEEPALIVE] * count
        painter.may_finish.set()
    assert all(KEEPALIVE not in piece or piece == KEEPALIVE for piece in client.pieces)
    assert read_events(client.body) == EXPECTED


async def test_a_response_that_is_not_silent_needs_no_keepalive() -> None:
    clock = Clock()
    events = [asyncio.Event() for _ in range(4)]
    turn = saying("one", "two", "three")
    steps = [step for pair in zip(turn[3:7], events, strict=True) for step in pair]
    async with conversation(
        middleware(ModelServer([*turn[:3], *steps, *turn[7:]]), Painter()), draw()
    ) as client:
        await client.heard(b"output_item.added")
        for event in events:
            await clock.forward(10)
            event.set()
    assert KEEPALIVE not in client.body


async def test_nothing_is_sent_before_the_head_of_turn_one() -> None:
    clock, answered = Clock(), asyncio.Event()
    server = ModelServer([answered, *KITE_TURNS[0]], KITE_TURNS[1])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await server.was_asked(1)
        await clock.forward(100)
        assert client.messages == []
        answered.set()
    assert read_events(client.body) == EXPECTED


@pytest.mark.parametrize(("stream", "keepalive"), [(True, 0), (False, 15)])
async def test_no_keepalive_is_sent_where_none_is_wanted(stream: bool, keepalive: float) -> None:
    clock, painter = Clock(), Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter, keepalive=keepalive)
    async with conversation(app, draw(stream=stream)) as client:
        await painter.was_asked()
        await clock.forward(100)
        painter.may_finish.set()
    told = read_events(client.body)[-1]["response"] if stream else client.json
    assert told == EXPECTED[-1]["response"]
    assert KEEPALIVE not in client.body


async def test_no_keepalive_follows_the_end() -> None:
    clock, stopped = Clock(), asyncio.Event()
    server = ModelServer([*KITE_TURNS[1][:2], b"data: {\n\n", stopped])
    async with conversation(middleware(server, Painter(), disconnect_grace=60), draw()) as client:
        await client.heard_all()
        await clock.forward(30)  # the inner application still has its grace
        stopped.set()
    assert not server.cancelled.is_set()


async def test_a_keepalive_that_waits_for_a_slow_client_is_not_sent_after_the_end() -> None:
    clock = Clock()
    async with conversation(middleware(ModelServer(*KITE_TURNS[1:]), Painter()), draw()) as client:
        client.reads.clear()
        await client.sent_to.wait()
        await clock.forward(20)
        client.reads.set()
    patient = await ask(middleware(ModelServer(*KITE_TURNS[1:]), Painter()), draw())
    assert read_events(client.body) == read_events(patient.body)
