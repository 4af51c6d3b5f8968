"""Model servers and pictures that take too long."""

from __future__ import annotations

import asyncio

from asgi import ask, conversation, draw, middleware, silence
from failed_stream import failed
from kite import kinds, kite_stream, usage
from model_server import KITE_TURNS, Answer, ModelServer
from painters import Painter
from rules import read_events
from starlette.types import Receive, Send
from waiting import settle

EXPECTED = kite_stream(spent=usage(200, 20))

REFUSED = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'


async def test_a_model_server_that_falls_silent_ends_the_response() -> None:
    server = ModelServer([*KITE_TURNS[1][:5], asyncio.Event()])
    app = middleware(server, Painter(), upstream_idle=0.2, disconnect_grace=0)
    client = await ask(app, draw())
    assert client.complete
    assert kinds({"output": failed(client.body, pictures=0)}) == ["message"]
    assert server.cancelled.is_set()


async def test_a_model_server_that_never_begins_is_a_502() -> None:
    server = ModelServer(Answer([asyncio.Event()], status=0))
    app = middleware(server, Painter(), upstream_idle=0.2, disconnect_grace=0)
    client = await ask(app, draw())
    assert (client.status, client.json["error"]["type"]) == (502, "server_error")


async def test_a_model_server_that_never_closes_its_stream_costs_no_more_than_the_wait() -> None:
    open_ended = [Answer([*turn, asyncio.Event()]) for turn in KITE_TURNS]
    server = ModelServer(*open_ended)
    client = await ask(middleware(server, Painter(), upstream_idle=0.2, disconnect_grace=0), draw())
    assert read_events(client.body) == EXPECTED


async def test_an_application_that_was_given_up_on_may_still_end_by_itself() -> None:
    async def listen(receive: Receive, send: Send) -> None:
        assert await receive() == {"type": "http.disconnect"}
        await send({"type": "http.response.body", "body": KITE_TURNS[1][5], "more_body": True})

    server = ModelServer([*KITE_TURNS[1][:5], listen])
    client = await ask(middleware(server, Painter(), upstream_idle=0.2), draw())
    failed(client.body, pictures=0)
    assert not server.cancelled.is_set()


async def test_a_silent_model_server_is_noticed_in_every_turn_even_if_nothing_else_wakes_the_clock() -> None:
    server = ModelServer(KITE_TURNS[0], Answer([asyncio.Event()], status=0))
    painter = Painter(waits=True)
    app = middleware(server, painter, upstream_idle=0.2, keepalive=0, disconnect_grace=0)
    async with conversation(app, draw()) as client:
        await painter.was_asked()
        await silence(0.4)
        painter.may_finish.set()
    failed(client.body, pictures=1)


async def test_a_response_that_takes_too_long_ends_as_failed() -> None:
    async def chatter(receive: Receive, send: Send) -> None:
        while True:
            await send({"type": "http.response.body", "body": b": busy\n\n", "more_body": True})
            await asyncio.sleep(0)

    server = ModelServer([*KITE_TURNS[1][:5], chatter])
    app = middleware(server, Painter(), response_timeout=0.3, disconnect_grace=0)
    client = await ask(app, draw())
    failed(client.body, pictures=0)
    assert server.cancelled.is_set()


async def test_a_picture_that_takes_longer_than_the_response_may_ends_it_as_failed() -> None:
    painter = Painter(waits=True)
    app = middleware(ModelServer(KITE_TURNS[0]), painter, response_timeout=0.3, disconnect_grace=0)
    client = await ask(app, draw())
    assert client.complete
    [item] = failed(client.body, pictures=0)
    assert (item["type"], item["status"]) == ("image_generation_call", "failed")
    assert len(painter.cancelled) == 1


async def test_the_time_for_the_response_may_run_out_before_a_busy_server_may_be_asked_again() -> None:
    busy = Answer([REFUSED], 429, [(b"retry-after", b"9")])
    server = ModelServer(KITE_TURNS[0], busy)
    client = await ask(middleware(server, Painter(), response_timeout=0.5), draw())
    failed(client.body, pictures=1)
    assert len(server.asked) == 2


async def test_a_refusal_that_comes_when_time_is_up_comes_too_late() -> None:
    late = asyncio.Event()

    async def refuse(receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 500, "headers": []})

    server = ModelServer(Answer([late, refuse], status=0))
    async with conversation(middleware(server, Painter(), response_timeout=0.01), draw()) as client:
        client.reads.clear()
        await client.sent_to.wait()
        late.set()
        await settle()
        client.reads.set()
    assert (client.status, client.json["error"]["type"]) == (502, "server_error")
