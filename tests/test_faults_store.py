"""A Redis that dies and returns, under a real server: it costs no response, and nothing hangs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator

import pytest
from faulty import Front, World, faulty_world, mounted, served, tried
from faulty_server import good
from painters import Painter
from raw_client import RawClient
from redis_server import RedisServer, redis_server


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


async def dies_before(redis: RedisServer, world: World, painter: Painter) -> RawClient:
    redis.kill()
    painter.may_finish.set()
    return await world.ask()


async def dies_amid(redis: RedisServer, world: World, painter: Painter) -> RawClient:
    async with world.client() as client:
        await painter.was_asked()
        redis.kill()
        painter.may_finish.set()
        await client.heard_all()
    return client


async def dies_and_returns_amid(redis: RedisServer, world: World, painter: Painter) -> RawClient:
    async with world.client() as client:
        await painter.was_asked()
        redis.kill()
        redis.start()
        painter.may_finish.set()
        await client.heard_all()
    return client


async def dies_after(redis: RedisServer, world: World, painter: Painter) -> RawClient:
    painter.may_finish.set()
    client = await world.ask()
    redis.kill()
    return client


MOMENTS = [dies_before, dies_amid, dies_and_returns_amid, dies_after]


@pytest.mark.parametrize("front", [served, mounted])
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
async def test_a_redis_that_dies_costs_no_response(
    redis: RedisServer, front: Front, moment: Callable[[RedisServer, World, Painter], Awaitable[RawClient]]
) -> None:
    painter = Painter(waits=True)
    async with faulty_world(front, painter, good, good, counts=False, store=redis.url) as world:
        client = await moment(redis, world, painter)
        assert client.verdict() == "completed 1"
        await world.is_well()  # without it
        redis.close()
        redis.start()
        await world.is_well()
    tried("Redis")


@pytest.mark.parametrize("front", [served, mounted])
async def test_a_response_in_the_background_is_there_when_redis_is_back(
    redis: RedisServer, front: Front
) -> None:
    painter = Painter(waits=True)
    async with faulty_world(front, painter, counts=False, store=redis.url) as world:
        queued = json.loads((await world.ask(stream=False, background=True)).body)
        assert queued["status"] == "queued"
        await painter.was_asked()
        redis.kill()
        redis.start()
        painter.may_finish.set()
        response = queued
        while response.get("status") != "completed":
            client = await world.ask(path=f"/v1/responses/{queued['id']}", method="GET")
            assert client.whole
            # A Redis that was killed has forgotten it: until it is kept again the model server is asked.
            if not client.body.startswith(b"event: "):
                response = json.loads(client.body)
            assert response.get("status") in (None, "queued", "in_progress", "completed")
        assert response["output"][0]["result"]
        await world.is_well()
    tried("Redis")
