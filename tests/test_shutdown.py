"""A server that stops, as the middleware sees it: what is open ends in time, and nothing else begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi import Client, ask, conversation, draw, lifespan, middleware, post
from failed_stream import failed
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from imagecall.middleware.shutdown import STOPPING
from kite import kite_stream, usage
from model_server import JSON, KITE_TURNS, Answer, ModelServer, calling, whole
from painters import Painter
from rules import check_response, read_events
from starlette.types import Message, Receive, Send
from waiting import Clock, no_hanging, settle

EXPECTED = kite_stream(spent=usage(200, 20))
GRACE = 5.0
TOLD = {"error": {"message": STOPPING, "type": "server_error", "param": None, "code": "server_shutting_down"}}


async def stop(app: Any, clock: Clock) -> None:
    """Let a server stop, and let the grace go by."""
    app.shutdown.begin()
    await settle()
    await clock.forward(GRACE)


def assert_failed(body: bytes, *, pictures: int) -> None:
    failed(body, pictures=pictures)
    for event in read_events(body):
        if event["type"] == "error":
            assert event["message"] == STOPPING
    assert read_events(body)[-1]["response"]["error"] == {"code": "server_error", "message": STOPPING}


# -- over HTTP -------------------------------------------------------------------------------------


async def test_amid_a_text() -> None:
    clock, server = Clock(), ModelServer([*KITE_TURNS[1][:5], asyncio.Event()])
    app = middleware(server, Painter(), disconnect_grace=0)
    async with conversation(app, draw()) as client:
        await client.heard(b"output_text.delta")
        app.shutdown.begin()
        await settle()
        assert not client.complete
        await clock.forward(GRACE)
    assert_failed(client.body, pictures=0)


async def test_while_a_picture_is_made_it_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    clock, painter = Clock(), Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter)
    async with conversation(app, draw()) as client:
        await painter.was_asked()
        await stop(app, clock)
    assert_failed(client.body, pictures=0)
    assert len(painter.cancelled) == 1
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["Shutting down; open responses (1) have 5 s to end."]


async def test_between_the_turns_the_client_keeps_its_picture() -> None:
    clock, busy = Clock(), Answer([b"busy"], 429, [*JSON, (b"retry-after", b"9")])
    server = ModelServer(KITE_TURNS[0], busy)
    app = middleware(server, Painter())
    async with conversation(app, draw()) as client:
        await server.was_asked(2)
        await settle()
        await stop(app, clock)
    assert_failed(client.body, pictures=1)
    assert len(server.asked) == 2


async def test_without_a_stream_a_picture_that_is_finished_is_told() -> None:
    clock = Clock()
    server = ModelServer(Answer([whole(KITE_TURNS[0])], headers=JSON), Answer([asyncio.Event()]))
    app = middleware(server, Painter(), disconnect_grace=0)
    async with conversation(app, draw(stream=False)) as client:
        await server.was_asked(2)
        await stop(app, clock)
    assert (client.status, client.json["status"]) == (200, "failed")
    assert client.json["error"] == {"code": "server_error", "message": STOPPING}
    assert client.json["output"][0]["result"]
    assert check_response(client.json) == []


@pytest.mark.parametrize("stream", [True, False])
async def test_one_that_has_shown_nothing_may_be_asked_for_elsewhere(stream: bool) -> None:
    clock = Clock()
    server = ModelServer(Answer([asyncio.Event()], status=0))
    app = middleware(server, Painter(), cors_origins="*", disconnect_grace=0)
    scope = post(headers=[(b"origin", b"https://a.example")])
    async with conversation(app, draw(stream=stream), scope) as client:
        await server.was_asked(1)
        await stop(app, clock)
    assert (client.status, client.json) == (503, TOLD)
    headers = dict(client.headers)
    assert headers[b"retry-after"] == b"5"
    assert headers[b"access-control-allow-origin"] == b"https://a.example"
    assert b"x-should-retry" not in headers


async def test_what_ends_by_itself_within_the_grace_is_whole() -> None:
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter)
    async with conversation(app, draw()) as client:
        await painter.was_asked()
        app.shutdown.begin()
        app.shutdown.begin()
        painter.may_finish.set()
    assert read_events(client.body) == EXPECTED


async def test_a_new_response_is_not_begun() -> None:
    server = ModelServer(Answer([b"{}"], headers=JSON))
    app = middleware(server, Painter())
    app.shutdown.begin()
    client = await ask(app, draw())
    assert (client.status, client.json) == (503, TOLD)
    client = await ask(app, {"model": "m", "input": "Hello."})
    assert (client.status, client.body) == (200, b"{}")  # for the application to decide
    assert [asked.json["input"] for asked in server.asked] == ["Hello."]


async def test_a_refusal_that_is_passed_on_ends_by_itself() -> None:
    clock, rest = Clock(), asyncio.Event()
    app = middleware(ModelServer(Answer([b"one", rest, b"two"], 500)), Painter())
    async with conversation(app, draw()) as client:
        await client.heard(b"one")
        await stop(app, clock)
        rest.set()
    assert client.pieces == [b"one", b"two", b""]


async def test_a_response_that_is_breaking_down_keeps_no_other_from_being_told() -> None:
    clock, painter, may_break = Clock(), Painter(waits=True), asyncio.Event()
    server = ModelServer(KITE_TURNS[0], [*KITE_TURNS[1][:5], asyncio.Event()])
    app = middleware(server, painter, store="none", disconnect_grace=0)
    broken = Client(app, draw(), post())
    told = broken.send

    async def breaks(message: Message) -> None:
        if painter.may_finish.is_set():
            if asyncio.current_task() is not task:
                raise RuntimeError("what stands before the middleware is broken")
            await may_break.wait()
        await told(message)

    broken.send = breaks
    task = asyncio.create_task(broken.run())
    await painter.was_asked()
    async with conversation(app, draw()) as client:
        await client.heard(b"output_text.delta")
        app.shutdown.begin()
        await settle()
        painter.may_finish.set()
        await settle()
        await clock.forward(GRACE)
        await client.heard_all()
        may_break.set()
        await task
    assert_failed(client.body, pictures=0)
    assert isinstance(broken.raised, ExceptionGroup)


# -- servers that cancel their requests ------------------------------------------------------------


async def cancelled(app: Any, begun: asyncio.Event) -> Client:
    """Make a request, and cancel it as impatient servers do when they stop."""
    client = Client(app, draw(), post())
    with no_hanging() as deadline:
        async with deadline:
            running = asyncio.create_task(client.run())
            await begun.wait()
            app.shutdown.begin()
            running.cancel()
            await running
    assert running.cancelling() == (client.raised is not None)
    return client


async def test_a_server_that_runs_out_of_patience_gets_a_proper_end() -> None:
    painter, begun = Painter(waits=True), asyncio.Event()

    class Announced:
        async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Any:
            begun.set()
            return await painter.generate(request, on_partial)

    server = ModelServer(Answer(calling("one"), afterwards=[asyncio.Event()]))
    client = await cancelled(middleware(server, Announced()), begun)
    assert client.raised is None
    assert client.complete
    assert_failed(client.body, pictures=0)
    assert painter.cancelled == ["one"]
    assert server.cancelled.is_set()


async def test_a_response_that_is_complete_is_not_ended_twice() -> None:
    clock, server = Clock(), ModelServer([*KITE_TURNS[1][:5], asyncio.Event()])
    app = middleware(server, Painter(), disconnect_grace=1_000)
    client = Client(app, draw(), post())
    with no_hanging() as deadline:
        async with deadline:
            running = asyncio.create_task(client.run())
            await client.heard(b"output_text.delta")
            await stop(app, clock)
            await client.heard_all()
            assert not running.done()  # it waits for the application
            running.cancel()
            await running
    assert client.raised is None
    assert_failed(client.body, pictures=0)
    assert server.cancelled.is_set()


async def test_a_refusal_that_is_passed_on_is_cut_where_the_server_cancels_it() -> None:
    begun = asyncio.Event()

    async def reached(receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    client = await cancelled(middleware(ModelServer(Answer([b"one", reached], 500)), Painter()), begun)
    assert isinstance(client.raised, asyncio.CancelledError)
    assert client.pieces == [b"one"]


async def test_an_application_can_be_started_again() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    for _ in range(2):
        async with lifespan(app):
            assert not app.shutdown.begun
        assert app.shutdown.begun
    app.shutdown.reopen()
    app.shutdown.begin()
    async with lifespan(app):
        client = await ask(app, draw(), owners=0)
    assert read_events(client.body) == EXPECTED
