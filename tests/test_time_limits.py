"""Model servers and pictures that take too long, by a clock that is set forward."""

from __future__ import annotations

import asyncio

import pytest
from asgi import Client, conversation, draw, middleware, post
from failed_stream import failed
from kite import kinds, kite_stream, usage
from model_server import KITE_TURNS, Answer, ModelServer
from painters import Painter
from rules import read_events
from starlette.types import Message, Receive, Send
from waiting import Clock, settle

EXPECTED = kite_stream(spent=usage(200, 20))

REFUSED = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'

IDLE = 600
GRACE = 5
TOO_LONG = 100


async def listen(receive: Receive, send: Send) -> None:
    """Stop when told to, after one more piece."""
    assert await receive() == {"type": "http.disconnect"}
    await send({"type": "http.response.body", "body": KITE_TURNS[1][5], "more_body": True})


async def test_a_model_server_that_falls_silent_ends_the_response() -> None:
    clock = Clock()
    server = ModelServer([*KITE_TURNS[1][:5], asyncio.Event()])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"output_text.delta")
        await clock.forward(IDLE - 1)
        assert not client.complete
        await clock.forward(1)
        assert client.complete
        assert not server.cancelled.is_set()
        await clock.forward(GRACE)
    assert kinds({"output": failed(client.body, pictures=0)}) == ["message"]
    assert server.cancelled.is_set()


async def test_a_model_server_that_never_begins_is_a_502() -> None:
    clock = Clock()
    server = ModelServer(Answer([asyncio.Event()], status=0))
    async with conversation(middleware(server, Painter()), draw()) as client:
        await server.was_asked(1)
        await clock.forward(IDLE)
        await clock.forward(GRACE)
    assert (client.status, client.json["error"]["type"]) == (502, "server_error")


async def test_a_model_server_that_never_closes_its_stream_costs_no_more_than_the_wait() -> None:
    clock = Clock()
    server = ModelServer(*(Answer([*turn, asyncio.Event()]) for turn in KITE_TURNS))
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"image_generation_call.completed")
        assert len(server.asked) == 1
        await clock.forward(IDLE)
        await client.heard(b"response.completed")
        assert not client.complete
        await clock.forward(IDLE)
        await client.heard_all()
        await clock.forward(GRACE)
    assert read_events(client.body) == EXPECTED


async def test_an_application_that_was_given_up_on_may_still_end_by_itself() -> None:
    clock = Clock()
    server = ModelServer([*KITE_TURNS[1][:5], listen])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"output_text.delta")
        await clock.forward(IDLE)
    failed(client.body, pictures=0)
    assert not server.cancelled.is_set()


async def test_an_application_that_ends_late_does_not_disturb_the_next_turn() -> None:
    async def end_the_first(receive: Receive, send: Send) -> None:
        rest.set()
        await settle()

    clock, rest = Clock(), asyncio.Event()
    first = Answer([*KITE_TURNS[0], rest], complete=False)
    server = ModelServer(first, [*KITE_TURNS[1][:4], end_the_first, *KITE_TURNS[1][4:]])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"image_generation_call.completed")
        await clock.forward(IDLE)
    assert server.asked[0].task.done()
    assert read_events(client.body) == EXPECTED


async def test_a_silent_model_server_is_noticed_in_every_turn_even_if_nothing_else_wakes_the_clock() -> None:
    clock = Clock()
    server = ModelServer(KITE_TURNS[0], Answer([asyncio.Event()], status=0))
    painter = Painter(waits=True)
    app = middleware(server, painter, keepalive=0, call_timeout=1_000)
    async with conversation(app, draw()) as client:
        await painter.was_asked()
        await clock.forward(IDLE + 100)
        painter.may_finish.set()
        await server.was_asked(2)
        await clock.forward(IDLE)
        assert client.complete
        await clock.forward(GRACE)
    failed(client.body, pictures=1)


async def test_a_response_that_takes_too_long_ends_as_failed() -> None:
    async def chatter(receive: Receive, send: Send) -> None:
        while True:
            await send({"type": "http.response.body", "body": b": busy\n\n", "more_body": True})
            await asyncio.sleep(0)

    clock = Clock()
    server = ModelServer([*KITE_TURNS[1][:5], chatter])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"output_text.delta")
        for _ in range(17):
            await clock.forward(100)
        assert not client.complete
        await clock.forward(100)
        assert client.complete
        await clock.forward(GRACE)
    failed(client.body, pictures=0)


async def test_a_picture_that_takes_longer_than_the_response_may_ends_it_as_failed() -> None:
    clock, painter = Clock(), Painter(waits=True)
    server = ModelServer(KITE_TURNS[0])
    async with conversation(middleware(server, painter, response_timeout=200), draw()) as client:
        await painter.was_asked()
        await settle()  # the model server has said all, and its turn is over
        await clock.forward(200)
    assert client.complete
    [item] = failed(client.body, pictures=0)
    assert (item["type"], item["status"]) == ("image_generation_call", "failed")
    assert len(painter.cancelled) == 1


async def test_the_time_for_the_response_may_run_out_before_a_busy_server_may_be_asked_again() -> None:
    clock = Clock()
    busy = Answer([REFUSED], 429, [(b"retry-after", b"9")])
    server = ModelServer(KITE_TURNS[0], busy)
    async with conversation(middleware(server, Painter(), response_timeout=5), draw()) as client:
        await server.was_asked(2)
        await settle()
        await clock.forward(5)
        assert client.complete
    failed(client.body, pictures=1)
    assert len(server.asked) == 2


async def test_a_refusal_that_comes_when_time_is_up_comes_too_late() -> None:
    async def refuse(receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 500, "headers": []})

    clock, late = Clock(), asyncio.Event()
    server = ModelServer(Answer([late, refuse], status=0))
    async with conversation(middleware(server, Painter(), response_timeout=5), draw()) as client:
        client.reads.clear()
        await server.was_asked(1)
        await clock.forward(5)
        assert client.sent_to.is_set()
        late.set()
        await settle()
        client.reads.set()
    assert (client.status, client.json["error"]["type"]) == (502, "server_error")


async def _stalls(client: Client, clock: Clock, running: asyncio.Task[None]) -> None:
    """Take nothing until long after the response's time is up: then it is over all the same."""
    await settle()
    await clock.forward(TOO_LONG - 1)
    assert not running.done()
    await clock.forward(1 + GRACE)
    await asyncio.wait([running])
    assert client.raised is None
    assert not client.complete


@pytest.mark.parametrize("keepalive", [0, 15])
async def test_a_client_that_takes_nothing_is_cut_when_its_time_is_up(
    keepalive: float, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    server = ModelServer(*KITE_TURNS)
    app = middleware(server, Painter(), keepalive=keepalive, response_timeout=TOO_LONG)
    client = Client(app, draw(), post())
    client.reads.clear()
    await _stalls(client, clock, asyncio.create_task(client.run()))
    assert "it was cut" in caplog.text
    assert server.cancelled.is_set()


async def test_a_client_that_does_not_take_the_end_is_cut_when_its_time_is_up() -> None:
    clock = Clock()
    server = ModelServer(*KITE_TURNS)
    client = Client(middleware(server, Painter(), response_timeout=TOO_LONG), draw(), post())
    send = client.send

    async def sending(message: Message) -> None:
        if b"response.completed" in message.get("body", b""):
            client.reads.clear()
        await send(message)

    client.send = sending
    await _stalls(client, clock, asyncio.create_task(client.run()))
