"""Responses in the background while the store is in trouble, or the server is about to stop."""

from __future__ import annotations

import asyncio

import pytest
from asgi import Client, draw, lifespan, middleware, post
from imagecall.middleware.store import MemoryStore
from jobs import asked, begun, ended, look, running
from model_server import KITE_TURNS, Answer, ModelServer
from painters import Painter
from waiting import Clock, no_hanging, settle


class Moody(MemoryStore):
    """A store that does not take the first few pictures, items or responses that have ended."""

    def __init__(self, **refusals: int) -> None:
        super().__init__(entries=1_000, max_bytes=1 << 20)
        self.refusals = refusals
        self.refused = 0

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        kind = key.split(":")[1]
        runs = b'"status":"in_progress"' in value or b'"status":"queued"' in value
        if self.refusals.get(kind) and not runs:
            self.refusals[kind] -= 1
            self.refused += 1
            raise ConnectionError
        await super().put(key, value, ttl=ttl)


@pytest.mark.parametrize(
    ("refusals", "pauses"),
    [
        ({"picture": 3}, (0.5, 1.0, 2.0)),
        ({"response": 3}, (0.5, 1.0, 2.0)),
        ({"item": 2}, (0.5, 1.0)),
        ({"picture": 2, "response": 2}, (0.5, 1.0, 0.5, 1.0)),
    ],
)
async def test_what_nobody_else_has_is_offered_to_a_store_in_trouble_again(
    refusals: dict[str, int], pauses: tuple[float, ...]
) -> None:
    clock, store = Clock(), Moody(**refusals)
    async with running(ModelServer(*KITE_TURNS), Painter(), store=store) as app:
        queued = await begun(app)
        for seconds in pauses:
            await settle()
            assert (await look(app, queued["id"]))["status"] == "in_progress"
            await clock.forward(seconds)
        response = await ended(app, queued["id"])
        assert response["status"] == "completed"
        assert response["output"][0]["result"]
    assert not any(store.refusals.values())


async def test_a_response_that_ended_before_a_word_was_said_is_offered_again_too() -> None:
    clock, store = Clock(), Moody(response=2)
    async with running(ModelServer([asyncio.Event()]), Painter(), store=store, disconnect_grace=0) as app:
        queued = await begun(app)
        cancelling = asyncio.create_task(asked(app, "POST", f"/{queued['id']}/cancel"))
        for seconds in (0.5, 1.0):
            await settle()
            assert not cancelling.done()
            await clock.forward(seconds)
        assert (await cancelling).json["status"] == "cancelled"
        assert (await look(app, queued["id"]))["status"] == "cancelled"


async def test_a_store_that_takes_nothing_is_given_up() -> None:
    clock, store = Clock(), Moody(picture=1_000)
    async with running(ModelServer(*KITE_TURNS), Painter(), store=store) as app:
        queued = await begun(app)
        for seconds in (0.0, 0.5, 1.0, 2.0, 4.0):
            await settle()
            await clock.forward(seconds)
        response = await ended(app, queued["id"])
        assert (response["status"], response["output"][0]["result"]) == ("completed", "")
    assert store.refused == 5


async def test_whoever_has_got_the_response_need_not_wait_for_a_store_in_trouble() -> None:
    store = Moody(response=1_000)
    async with lifespan(app := middleware(ModelServer(*KITE_TURNS), Painter(), store=store)):
        client = await asked(app, body=draw())
        assert b"response.completed" in client.body
    assert store.refused == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_the_server_may_stop_at_any_moment(stream: bool) -> None:
    for moment in range(40):
        outcome = await _stopped_at(moment, stream)
        assert outcome is None or str(outcome) == "the server stops"


async def _stopped_at(moment: int, stream: bool) -> BaseException | None:
    """Ask for a response, stop the server so many steps of the loop later, and return what was raised."""
    server = ModelServer(Answer(KITE_TURNS[0]), KITE_TURNS[1])
    app = middleware(server, Painter(waits=True), disconnect_grace=0.0)
    with no_hanging() as deadline:
        async with deadline:
            async with lifespan(app):
                client = Client(app, draw(background=True, stream=stream), post())
                task = asyncio.create_task(client.run())
                for _ in range(moment):
                    await asyncio.sleep(0)
            await task
    return client.raised
