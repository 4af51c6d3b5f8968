"""Responses in the background: answered at once, made without the client, polled, resumed and cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi import Client, draw, middleware, post
from imagecall.middleware.store import MemoryStore
from imagecall.middleware.stored.owned_store import LOG_END
from jobs import asked, begun, ended, look, running
from kite import kite_stream, usage
from model_server import HOSTED, JSON, KITE_TURNS, Answer, ModelServer, whole
from painters import Painter
from rules import check_response, check_stream, read_events
from waiting import Clock, settle

ME = (b"authorization", b"Bearer mine")
EXPECTED = kite_stream(spent=usage(200, 20))[-1]["response"]


async def test_a_response_is_queued_then_in_progress_then_completed() -> None:
    painter = Painter(waits=True)
    head = Answer(KITE_TURNS[0], headers=[(b"content-type", b"text/event-stream"), (b"x-request-id", b"7")])
    server = ModelServer(head, KITE_TURNS[1])
    async with running(server, painter) as app:
        client = await asked(app, body=draw(background=True, stream=False, metadata={"a": "b"}))
        queued = client.json
        assert (client.status, dict(client.headers)[b"x-request-id"]) == (200, b"7")
        wrong = check_response(queued, tools=[HOSTED], tool_choice="auto")
        assert wrong == ["The status of a finished response is 'queued'."]
        shown = {"status": "queued", "background": True, "output": [], "model": "local-model", "usage": None}
        assert {**queued, **shown, "metadata": {"a": "b"}} == queued
        assert queued["id"].startswith("resp_")
        await painter.was_asked()
        assert await look(app, queued["id"]) == {**queued, "status": "in_progress"}
        painter.may_finish.set()
        response = await ended(app, queued["id"])
        assert response == {**EXPECTED, "id": queued["id"], "background": True}
    assert all("background" not in one.json for one in server.asked)
    assert [one.json["stream"] for one in server.asked] == [True, True]


async def test_the_answer_waits_for_the_model_server_to_accept_the_request() -> None:
    head = asyncio.Event()

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not server.asked:
            await head.wait()
        await server(scope, receive, send)

    server = ModelServer(*KITE_TURNS)
    kept = MemoryStore(entries=100, max_bytes=1 << 20)
    async with running(inner, Painter(), store=kept) as app:
        client = Client(app, draw(background=True, stream=False), post())
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await settle()
            assert (client.messages, kept._values._kept) == ([], {})
            head.set()
        assert client.json["status"] == "queued"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_of_the_model_server_passes_as_it_is(stream: bool) -> None:
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"3")]
    kept = MemoryStore(entries=100, max_bytes=1 << 20)
    server = ModelServer(Answer([b'{"error"', b":{}}"], status=429, headers=headers))
    async with running(server, Painter(), store=kept) as app:
        client = await asked(app, body=draw(background=True, stream=stream))
        named = [*headers, (b"x-request-id", b"req_1")]
        assert (client.status, client.headers, client.body) == (429, named, b'{"error":{}}')
        assert kept._values._kept == {}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_server_that_fails_before_its_head_is_answered_for(stream: bool) -> None:
    error = RuntimeError("no")
    async with running(ModelServer(Answer([error], status=0)), Painter()) as app:
        client = Client(app, draw(background=True, stream=stream), post())
        await client.run()
        assert client.raised is error
    async with running(ModelServer(Answer(status=0, complete=False)), Painter()) as app:
        client = await asked(app, body=draw(background=True, stream=stream))
        assert client.messages == []


async def test_a_model_server_that_takes_too_long_for_its_head_is_given_up() -> None:
    clock = Clock()
    stuck = asyncio.Event()
    async with running(ModelServer(Answer([stuck], status=0)), Painter(), upstream_idle=60) as app:
        client = Client(app, draw(background=True, stream=False), post())
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await settle()
            await clock.forward(61)
            await clock.forward(6)
        assert client.status == 502


async def test_what_fails_before_it_says_anything_has_failed_in_the_store_too() -> None:
    async with running(ModelServer(Answer([], headers=JSON)), Painter()) as app:
        queued = await begun(app)
        while app._background._jobs:
            await settle()
        response = await look(app, queued["id"])
        error = {"code": "server_error", "message": response["error"]["message"]}
        assert response == {**queued, "status": "failed", "error": error}
        events = read_events((await asked(app, "GET", f"/{queued['id']}", "stream=true")).body)
        assert [one["type"] for one in events] == ["response.created", "response.failed"]
        assert events[-1]["response"] == response


async def test_what_the_application_raises_after_its_head_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ModelServer(Answer([*KITE_TURNS[1][:4], RuntimeError("s3cret")]))
    async with running(server, Painter()) as app:
        queued = await begun(app)
        assert (await ended(app, queued["id"]))["status"] == "failed"
        await settle()
    assert f"{queued['id']}: the inner application raised RuntimeError" in caplog.messages
    assert "s3cret" not in caplog.text


async def test_an_application_that_cancels_itself_has_failed() -> None:
    async with running(ModelServer(Answer([asyncio.CancelledError()], status=0)), Painter()) as app:
        client = Client(app, draw(background=True, stream=True), post())
        await client.run()
        assert isinstance(client.raised, asyncio.CancelledError)


async def test_a_model_server_that_streams_nothing_serves_the_background_too() -> None:
    answers = [Answer([whole(turn)], headers=JSON) for turn in KITE_TURNS]
    async with running(ModelServer(*answers), Painter()) as app:
        queued = await begun(app)
        assert (await ended(app, queued["id"]))["output"] == EXPECTED["output"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_store_that_fails_keeps_only_those_from_it_who_would_have_to_ask_it(
    stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imagecall.middleware.stored.keeper._PAUSES", (0.0,) if stream else (60.0,))

    class Broken(MemoryStore):
        async def put(self, key: str, value: bytes, *, ttl: float) -> None:
            raise ConnectionError

    async with running(ModelServer(*KITE_TURNS), Painter(), store=Broken(entries=9, max_bytes=99)) as app:
        client = await asked(app, body=draw(background=True, stream=stream))
        if stream:
            assert read_events(client.body)[-1]["type"] == "response.completed"
        else:
            assert (client.status, client.json["error"]["type"]) == (503, "server_error")


async def test_without_a_store_the_background_is_refused() -> None:
    client = await asked(middleware(ModelServer(), Painter(), store="none"), body=draw(background=True))
    assert (client.status, client.json["error"]["param"]) == (400, "background")


# -- the client that asks for a stream -------------------------------------------------------------


async def test_the_stream_comes_as_any_other_and_can_be_had_again() -> None:
    kept = MemoryStore(entries=100, max_bytes=1 << 20)
    async with running(ModelServer(*KITE_TURNS), Painter(), store=kept) as app:
        client = await asked(app, body=draw(background=True))
        assert check_stream(client.body, tools=[HOSTED]) == []
        response = read_events(client.body)[-1]["response"]
        assert response == {**EXPECTED, "id": response["id"], "background": True}
        assert await look(app, response["id"]) == response
        again = await asked(app, "GET", f"/{response['id']}", "stream=true")
        assert again.body == client.body
        [log] = kept._logs._kept.values()
        assert b"".join(log.value) == client.body + LOG_END


@pytest.mark.parametrize("how", ["message", "send"])
async def test_a_client_that_leaves_its_stream_stops_nothing(how: str) -> None:
    painter = Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter) as app:
        client = Client(app, draw(background=True), post())
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await client.heard(b"generating")
            if how == "message":
                client.leave()
            else:
                client.left = ConnectionResetError()
                painter.may_finish.set()
        assert (client.raised, painter.cancelled) == (None, [])
        painter.may_finish.set()
        identifier = read_events(client.body)[0]["response"]["id"]
        assert (await ended(app, identifier))["output"] == EXPECTED["output"]


async def test_a_client_that_leaves_before_it_was_told_anything_ends_everything() -> None:
    head = asyncio.Event()
    server = ModelServer(Answer([head], status=0))
    async with running(server, Painter(), disconnect_grace=0) as app:
        client = Client(app, draw(background=True, stream=False), post())
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await server.was_asked(1)
            client.say({"type": "http.request", "body": b"", "more_body": False})
            client.leave()
        await server.cancelled.wait()
        assert client.messages == []


async def test_a_server_that_cancels_the_request_stops_nothing() -> None:
    painter = Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter) as app:
        client = Client(app, draw(background=True), post())
        task = asyncio.create_task(client.run())
        await client.heard(b"generating")
        task.cancel()
        await asyncio.wait([task])
        painter.may_finish.set()
        identifier = read_events(client.body)[0]["response"]["id"]
        assert (await ended(app, identifier))["status"] == "completed"


async def test_a_client_that_follows_sees_that_the_response_is_alive() -> None:
    clock = Clock()
    painter = Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter, keepalive=15) as app:
        client = Client(app, draw(background=True), post())
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await painter.was_asked()
            await client.heard(b"generating")
            await clock.forward(15)
            await client.heard(b": keepalive\n\n")
            painter.may_finish.set()
        identifier = read_events(client.body)[0]["response"]["id"]
        again = await asked(app, "GET", f"/{identifier}", "stream=true")
        assert again.body == client.body.replace(b": keepalive\n\n", b"")
