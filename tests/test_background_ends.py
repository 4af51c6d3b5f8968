"""Responses in the background: who looks at them while they run, and how they are ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi import Client, draw, lifespan, middleware, post
from imagecall.middleware.store import MemoryStore
from jobs import asked, begun, ended, look, running
from model_server import JSON, KITE_TURNS, Answer, ModelServer, saying
from painters import Painter
from rules import read_events
from waiting import Clock, settle

ME = (b"authorization", b"Bearer mine")


# -- who looks at it while it runs -----------------------------------------------------------------


async def test_the_stream_of_a_running_response_can_be_followed_from_any_number_on() -> None:
    clock = Clock()
    painter = Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter, keepalive=15) as app:
        queued = await begun(app)
        await painter.was_asked()
        scope = post(
            f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true&starting_after=2"
        )
        client = Client(app, b"", scope)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await client.heard(b"generating")
            for _ in range(16):
                await clock.forward(1)
            await client.heard(b": keepalive\n\n")
            painter.may_finish.set()
        numbers = [one["sequence_number"] for one in read_events(client.body)]
        assert numbers == [*range(3, 15)]
        assert client.complete


async def test_a_response_that_is_followed_before_it_began_is_told_from_the_beginning() -> None:
    goes_on = asyncio.Event()
    server = ModelServer([goes_on, *KITE_TURNS[0]], KITE_TURNS[1])
    async with running(server, Painter()) as app:
        queued = await begun(app)
        scope = post(f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true")
        client = Client(app, b"", scope)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await settle()
            assert client.status == 200
            goes_on.set()
        assert [one["sequence_number"] for one in read_events(client.body)] == [*range(15)]


async def test_a_chain_may_not_go_on_from_a_response_that_still_runs() -> None:
    painter = Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS, saying("So.")), painter) as app:
        queued = await begun(app)
        request = draw(previous_response_id=queued["id"])
        client = await asked(app, body=request)
        assert (client.status, client.json["error"]["param"]) == (400, "previous_response_id")
        painter.may_finish.set()
        await ended(app, queued["id"])
        client = await asked(app, body=request)
        assert client.status == 200


async def test_somebody_else_can_neither_see_nor_cancel_it() -> None:
    painter = Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter) as app:
        queued = await begun(app, headers=[ME])
        for method, tail in (("GET", ""), ("POST", "/cancel"), ("DELETE", "")):
            assert (await asked(app, method, f"/{queued['id']}{tail}")).status == 404
        assert painter.cancelled == []


# -- how it is ended -------------------------------------------------------------------------------


async def test_a_cancelled_response_stops_its_pictures_and_its_model_server() -> None:
    painter = Painter(waits=True)
    held = asyncio.Event()
    server = ModelServer([*KITE_TURNS[0][:-1], held])
    async with running(server, painter, disconnect_grace=0) as app:
        queued = await begun(app)
        await painter.was_asked()
        client = await asked(app, "POST", f"/{queued['id']}/cancel")
        assert client.status == 200
        response = client.json
        assert (response["status"], response["error"]) == ("cancelled", None)
        assert [item["status"] for item in response["output"]] == ["failed"]
        await painter.was_cancelled()
        await server.cancelled.wait()
        assert await look(app, queued["id"]) == response
        again = await asked(app, "POST", f"/{queued['id']}/cancel")
        assert again.json == response
        events = read_events((await asked(app, "GET", f"/{queued['id']}", "stream=true")).body)
        assert events[-1]["response"] == response
        assert [one["sequence_number"] for one in events] == [*range(len(events))]


async def test_one_that_has_said_nothing_yet_can_be_cancelled_too() -> None:
    held = asyncio.Event()
    async with running(ModelServer([held]), Painter(), disconnect_grace=0) as app:
        queued = await begun(app)
        response = (await asked(app, "POST", f"/{queued['id']}/cancel")).json
        assert response == {**queued, "status": "cancelled"}
        await settle()
        assert await look(app, queued["id"]) == response


async def test_one_that_has_ended_cannot_be_cancelled_any_more() -> None:
    async with running(ModelServer(*KITE_TURNS), Painter()) as app:
        queued = await begun(app)
        response = await ended(app, queued["id"])
        assert (await asked(app, "POST", f"/{queued['id']}/cancel")).json == response


async def test_a_running_response_that_is_deleted_is_cancelled_first() -> None:
    painter = Painter(waits=True)
    gone = Answer([b"{}"], status=404, headers=JSON)
    server = ModelServer(KITE_TURNS[0], gone)
    async with running(server, painter) as app:
        queued = await begun(app)
        await painter.was_asked()
        client = await asked(app, "DELETE", f"/{queued['id']}")
        assert client.json == {"id": queued["id"], "object": "response", "deleted": True}
        await painter.was_cancelled()
        assert (await asked(app, "GET", f"/{queued['id']}")).status == 404
        assert server.asked[1].scope["path"] == "/v1/responses/resp_up1"


async def test_who_follows_a_response_that_is_deleted_gets_its_end() -> None:
    painter = Painter(waits=True)
    server = ModelServer(KITE_TURNS[0], Answer([b"{}"], status=404, headers=JSON))
    async with running(server, painter) as app:
        queued = await begun(app)
        await painter.was_asked()
        scope = post(f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true")
        client = Client(app, b"", scope)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await client.heard(b"generating")
            await asked(app, "DELETE", f"/{queued['id']}")
        assert client.complete


async def test_shutdown_ends_what_runs_and_the_store_says_so() -> None:
    painter = Painter(waits=True)
    kept = MemoryStore(entries=100, max_bytes=1 << 20)
    held = asyncio.Event()
    server = ModelServer(KITE_TURNS[0], [held], KITE_TURNS[1])
    async with running(server, painter, store=kept, disconnect_grace=0) as app:
        painting = await begun(app)
        await painter.was_asked()
        waiting = await begun(app)
        other = middleware(ModelServer(), Painter(), store=kept)
    assert painter.cancelled != []
    for queued in (painting, waiting):
        response = await look(other, queued["id"])
        assert (response["status"], response["error"]["code"]) == ("failed", "server_error")
    async with lifespan(app):
        assert (await ended(app, (await begun(app))["id"]))["status"] == "completed"


async def test_a_failure_of_ours_ends_one_response_and_no_other(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    painter = Painter(waits=True)
    async with running(ModelServer(KITE_TURNS[0], KITE_TURNS[1], KITE_TURNS[1]), painter) as app:
        queued = await begun(app)

        async def fail(*_: Any) -> None:
            raise LookupError

        with monkeypatch.context() as patch:
            patch.setattr("imagecall.middleware.background.job.Job._record", fail)
            client = Client(app, draw(background=True), post())
            await client.run()
        assert client.messages == []
        assert any("failed in the background" in message for message in caplog.messages)
        painter.may_finish.set()
        assert (await ended(app, queued["id"]))["status"] == "completed"


# -- when its client takes nothing any more --------------------------------------------------------

TOO_LONG, GRACE = 100, 5


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_takes_nothing_is_cut_off_and_its_response_is_made_all_the_same(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    limits = {"response_timeout": TOO_LONG, "disconnect_grace": GRACE}
    async with running(ModelServer(*KITE_TURNS), Painter(), **limits) as app:
        client = Client(app, draw(background=True, stream=stream), post())
        client.reads.clear()
        serving = asyncio.create_task(client.run())
        await client.sent_to.wait()
        identifier = next(iter(app._background._jobs))
        assert (await ended(app, identifier))["status"] == "completed"
        await clock.forward(TOO_LONG + GRACE - 1)
        assert not serving.done()
        await clock.forward(1)
        assert serving.done()
        assert (client.messages, client.raised) == ([], None)
        assert (await look(app, identifier))["status"] == "completed"
    told = f"A client that follows {identifier} had not taken all of it when its time was long over"
    assert [told in message for message in caplog.messages] == [True]


async def test_a_slow_client_has_as_long_as_the_client_of_any_other_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    limits = {"response_timeout": TOO_LONG, "disconnect_grace": GRACE}
    async with running(ModelServer(*KITE_TURNS), Painter(), **limits) as app:
        client = Client(app, draw(background=True), post())
        client.reads.clear()
        serving = asyncio.create_task(client.run())
        await client.sent_to.wait()
        await clock.forward(TOO_LONG + GRACE - 1)
        client.reads.set()
        await serving
        assert [one["sequence_number"] for one in read_events(client.body)] == [*range(15)]
        assert client.complete
    assert caplog.messages == []


async def test_a_timeout_of_the_inner_application_comes_out_as_it_is() -> None:
    late = TimeoutError("the model server is slow")
    async with running(ModelServer(Answer([late], status=0)), Painter()) as app:
        client = Client(app, draw(background=True), post())
        await client.run()
    assert client.raised is late
