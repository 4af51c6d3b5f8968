"""Keep-alive comments: when they are sent, and when not."""

from __future__ import annotations

import asyncio

import pytest
from asgi import conversation, draw, middleware, silence
from imagecall.events.sse import KEEPALIVE
from kite import kite_stream, usage
from model_server import HOSTED, KITE_TURNS, ModelServer
from painters import Painter
from rules import check_stream, read_events

EXPECTED = kite_stream(spent=usage(200, 20))


async def test_a_silent_response_is_kept_alive_between_its_frames() -> None:
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter, keepalive=0.005)
    async with conversation(app, draw()) as client:
        await client.heard(KEEPALIVE)
        await client.heard(KEEPALIVE * 2)
        painter.may_finish.set()
    assert {piece for piece in client.pieces if piece.startswith(b":")} == {KEEPALIVE}
    assert all(KEEPALIVE not in piece or piece == KEEPALIVE for piece in client.pieces)
    assert read_events(client.body) == EXPECTED


async def test_nothing_is_sent_before_the_head_of_turn_one() -> None:
    answered = asyncio.Event()
    app = middleware(ModelServer([answered, *KITE_TURNS[1]]), Painter(), keepalive=0.005)
    async with conversation(app, draw()) as client:
        await silence(0.02)
        assert client.messages == []
        answered.set()
    assert check_stream(client.body, tools=[HOSTED]) == []


@pytest.mark.parametrize(("stream", "keepalive"), [(True, 0), (False, 0.005)])
async def test_no_keepalive_is_sent_where_none_is_wanted(stream: bool, keepalive: float) -> None:
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter, keepalive=keepalive)
    async with conversation(app, draw(stream=stream)) as client:
        await painter.was_asked()
        await silence(0.02)
        painter.may_finish.set()
    assert b": keepalive" not in client.body
    assert not stream or read_events(client.body) == EXPECTED
    assert stream or client.json == EXPECTED[-1]["response"]


async def test_no_keepalive_follows_the_end() -> None:
    stopped = asyncio.Event()
    failing = [*KITE_TURNS[1][:2], b"data: {\n\n", stopped]
    app = middleware(ModelServer(failing), Painter(), keepalive=0.005)
    async with conversation(app, draw()) as client:
        await client.heard_all()
        await silence(0.02)  # the inner application still has its grace
        stopped.set()
