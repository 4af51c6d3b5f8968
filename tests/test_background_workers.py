"""Responses in the background as another worker sees them, and when their own worker dies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi import Client, lifespan, middleware, post
from imagecall.middleware.store import MemoryStore
from imagecall.middleware.stored.owned_store import OwnedStore
from jobs import asked, begun, ended, look
from kite import kite_stream, usage
from model_server import JSON, KITE_TURNS, Answer, ModelServer
from painters import Painter
from rules import read_events
from waiting import Clock, settle

EXPECTED = kite_stream(spent=usage(200, 20))[-1]["response"]


class Seconds:
    """The store's clock, which goes with the loop's."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> float:
        return self._loop.time()


def shared() -> MemoryStore:
    return MemoryStore(entries=100, max_bytes=1 << 20, now=Seconds())


def other(store: MemoryStore, *answers: Answer) -> Any:
    """Make another worker on the same store."""
    return middleware(ModelServer(*answers), Painter(), store=store, keepalive=0)


async def test_it_is_seen_by_every_worker_as_it_goes_on() -> None:
    painter = Painter(waits=True)
    store = shared()
    app, elsewhere = middleware(ModelServer(*KITE_TURNS), painter, store=store), other(store)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        assert (await look(elsewhere, queued["id"])) == {**queued, "status": "in_progress"}
        scope = post(f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true")
        client = Client(elsewhere, b"", scope)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await client.heard(b"generating")
            painter.may_finish.set()
        response = read_events(client.body)[-1]["response"]
        assert response == {**EXPECTED, "id": queued["id"], "background": True}
        assert await look(elsewhere, queued["id"]) == response


async def test_another_worker_can_cancel_it_within_about_a_second() -> None:
    clock = Clock()
    painter = Painter(waits=True)
    store = shared()
    app, elsewhere = middleware(ModelServer(*KITE_TURNS), painter, store=store), other(store)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        client = Client(elsewhere, b"", post(f"/v1/responses/{queued['id']}/cancel"))
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await settle()
            assert (client.messages, painter.cancelled) == ([], [])
            await clock.forward(1.0)
            await clock.forward(0.25)
        assert client.json["status"] == "cancelled"
        await painter.was_cancelled()
        assert await look(app, queued["id"]) == client.json


async def test_a_worker_that_does_not_hear_of_it_keeps_nobody_waiting() -> None:
    clock = Clock()
    painter = Painter(waits=True)
    store = shared()
    app, elsewhere = middleware(ModelServer(*KITE_TURNS), painter, store=store), other(store)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        for job in app._background._jobs.values():
            assert job._beating is not None
            job._beating.cancel()
        client = Client(elsewhere, b"", post(f"/v1/responses/{queued['id']}/cancel"))
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            for _ in range(20):
                await clock.forward(0.25)
        assert client.json["status"] == "in_progress"


async def test_a_lease_is_renewed_as_long_as_its_worker_lives() -> None:
    clock = Clock()
    painter = Painter(waits=True)
    store = shared()
    app, elsewhere = middleware(ModelServer(*KITE_TURNS), painter, store=store), other(store)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        for _ in range(60):
            await clock.forward(1.0)
        assert (await look(elsewhere, queued["id"]))["status"] == "in_progress"
        painter.may_finish.set()
        assert (await ended(elsewhere, queued["id"]))["status"] == "completed"


async def test_a_worker_knows_of_its_own_responses_whatever_the_store_says() -> None:
    clock = Clock()
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter, store=shared())
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        for job in app._background._jobs.values():
            assert job._beating is not None
            job._beating.cancel()
        await clock.forward(30)
        assert (await look(app, queued["id"]))["status"] == "in_progress"


async def dead(store: MemoryStore, clock: Clock, seconds: float = 30) -> Any:
    """Begin a response on a worker that dies in the midst of it."""
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter, store=store)
    before = asyncio.all_tasks()
    queued = await begun(app)
    await painter.was_asked()
    await settle()
    killed = asyncio.all_tasks() - before
    for task in killed:
        task.cancel()
    await asyncio.wait(killed)
    await clock.forward(seconds)
    return queued


@pytest.mark.parametrize("first", ["GET", "stream", "cancel", "DELETE"])
async def test_a_response_whose_worker_died_has_failed(first: str, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    store = shared()
    queued = await dead(store, clock)
    elsewhere = other(store, *[Answer([b"{}"], status=404, headers=JSON)] * 2)
    path = f"/{queued['id']}"
    if first == "DELETE":
        assert (await asked(elsewhere, "DELETE", path)).json["deleted"] is True
        assert (await asked(elsewhere, "GET", path)).status == 404
        return
    failed = await look(elsewhere, queued["id"]) if first == "GET" else None
    if first == "cancel":
        failed = (await asked(elsewhere, "POST", f"{path}/cancel")).json
    events = read_events((await asked(elsewhere, "GET", path, "stream=true")).body)
    assert [one["sequence_number"] for one in events] == [*range(6)]
    assert events[-1]["type"] == "response.failed"
    last = events[-1]["response"]
    assert last == {**queued, "status": "failed", "error": last["error"]}
    assert last["error"]["code"] == "server_error"
    assert await look(elsewhere, queued["id"]) == last == (failed or last)
    assert caplog.messages == [f"{queued['id']} has failed: the worker that made it is gone"]


async def test_who_follows_it_learns_that_its_worker_has_died() -> None:
    clock = Clock()
    store = shared()
    painter = Painter(waits=True)
    before = asyncio.all_tasks()
    app, elsewhere = middleware(ModelServer(*KITE_TURNS), painter, store=store), other(store)
    queued = await begun(app)
    await painter.was_asked()
    await settle()
    killed = asyncio.all_tasks() - before
    scope = post(f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true")
    client = Client(elsewhere, b"", scope)
    async with asyncio.TaskGroup() as group:
        group.create_task(client.run())
        await client.heard(b"generating")
        for task in killed:
            task.cancel()
        await asyncio.wait(killed)
        for _ in range(25):
            await clock.forward(1.0)
    assert read_events(client.body)[-1]["type"] == "response.failed"


async def test_who_follows_it_gets_an_end_when_it_is_deleted_elsewhere() -> None:
    clock = Clock()
    store = shared()
    queued = await dead(store, clock, seconds=0)
    elsewhere, third = other(store), other(store, *[Answer([b"{}"], status=404, headers=JSON)] * 2)
    scope = post(f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true")
    client = Client(elsewhere, b"", scope)
    async with asyncio.TaskGroup() as group:
        group.create_task(client.run())
        await client.heard(b"generating")
        deleting = group.create_task(asked(third, "DELETE", f"/{queued['id']}"))
        while not deleting.done():
            await clock.forward(0.25)
        await clock.forward(1.0)
    assert client.complete
    assert b"response.failed" not in client.body


async def test_a_response_that_ends_between_two_looks_has_not_failed() -> None:
    clock = Clock()
    store = shared()
    queued = await dead(store, clock)
    elsewhere = other(store)

    class Late(OwnedStore):
        """A store in which the response is complete as soon as it was looked up once."""

        async def response(self, name: str) -> Any:
            stored = await super().response(name)
            assert stored is not None
            done = {**stored.body, "status": "completed"}
            await self.keep_response(type(stored)(stored.id, "completed", (), done, []))
            return stored

    late = Late(store, "", ttl=60)
    current = await elsewhere._background.current(late, queued["id"])
    assert current is not None
    assert current.status == "completed"


async def test_a_log_that_lost_a_piece_gets_it_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    painter = Painter(waits=True)
    store = shared()
    whole, append = [], store.append

    async def fails_once(key: str, piece: bytes, *, ttl: float) -> None:
        whole.append(piece)
        if len(whole) == 1:
            raise ConnectionError
        await append(key, piece, ttl=ttl)
        if len(whole) == 2:
            raise ConnectionError  # it is there, and nobody knows

    monkeypatch.setattr(store, "append", fails_once)
    app = middleware(ModelServer(*KITE_TURNS), painter, store=store)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        await settle()
        painter.may_finish.set()
        await ended(app, queued["id"])
        await settle()
        client = await asked(app, "GET", f"/{queued['id']}", "stream=true")
        assert [one["sequence_number"] for one in read_events(client.body)] == [*range(15)]
