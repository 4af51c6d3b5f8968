"""Responses in the background as another worker sees them, and when their own worker dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Work:
    """A response whose picture is being made by one worker, and another worker beside it."""

    painter: Painter
    app: Any
    elsewhere: Any
    queued: Any

    @property
    def path(self) -> str:
        return f"/v1/responses/{self.queued['id']}"

    def deafen(self) -> None:
        """Let the worker that makes it neither look into the store nor renew its lease any more."""
        for job in self.app._background._jobs.values():
            assert job._beating is not None
            job._beating.cancel()

    async def status(self, app: Any) -> Any:
        return (await look(app, self.queued["id"]))["status"]


@asynccontextmanager
async def at_work() -> AsyncIterator[Work]:
    painter, store = Painter(waits=True), shared()
    app, elsewhere = middleware(ModelServer(*KITE_TURNS), painter, store=store), other(store)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        yield Work(painter, app, elsewhere, queued)


@asynccontextmanager
async def asking(app: Any, scope: Any) -> AsyncIterator[Client]:
    """Make a request while the body of the `with` goes on, and wait for its end."""
    client = Client(app, b"", scope)
    async with asyncio.TaskGroup() as group:
        group.create_task(client.run())
        yield client


def following(path: str) -> Any:
    return post(path, method="GET", query_string=b"stream=true")


async def test_it_is_seen_by_every_worker_as_it_goes_on() -> None:
    async with at_work() as work:
        queued = work.queued
        assert (await look(work.elsewhere, queued["id"])) == {**queued, "status": "in_progress"}
        async with asking(work.elsewhere, following(work.path)) as client:
            await client.heard(b"generating")
            work.painter.may_finish.set()
        response = read_events(client.body)[-1]["response"]
        assert response == {**EXPECTED, "id": queued["id"], "background": True}
        assert await look(work.elsewhere, queued["id"]) == response


async def test_another_worker_can_cancel_it_within_about_a_second() -> None:
    clock = Clock()
    async with at_work() as work:
        async with asking(work.elsewhere, post(f"{work.path}/cancel")) as client:
            await settle()
            assert (client.messages, work.painter.cancelled) == ([], [])
            await clock.forward(1.0)
            await clock.forward(0.25)
        assert client.json["status"] == "cancelled"
        await work.painter.was_cancelled()
        assert await look(work.app, work.queued["id"]) == client.json


async def test_a_worker_that_does_not_hear_of_it_keeps_nobody_waiting() -> None:
    clock = Clock()
    async with at_work() as work:
        work.deafen()
        async with asking(work.elsewhere, post(f"{work.path}/cancel")) as client:
            for _ in range(20):
                await clock.forward(0.25)
        assert client.json["status"] == "in_progress"


async def test_a_lease_is_renewed_as_long_as_its_worker_lives() -> None:
    clock = Clock()
    async with at_work() as work:
        for _ in range(60):
            await clock.forward(1.0)
        assert await work.status(work.elsewhere) == "in_progress"
        work.painter.may_finish.set()
        assert (await ended(work.elsewhere, work.queued["id"]))["status"] == "completed"


async def test_a_worker_knows_of_its_own_responses_whatever_the_store_says() -> None:
    clock = Clock()
    async with at_work() as work:
        work.deafen()
        await clock.forward(30)
        assert await work.status(work.app) == "in_progress"


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
    async with asking(elsewhere, following(f"/v1/responses/{queued['id']}")) as client:
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
    async with asking(elsewhere, following(f"/v1/responses/{queued['id']}")) as client:
        await client.heard(b"generating")
        deleting = asyncio.create_task(asked(third, "DELETE", f"/{queued['id']}"))
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
