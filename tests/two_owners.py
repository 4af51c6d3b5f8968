"""Two owners of one store, in memory and in Redis; a plugin of the tests that name it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from imagecall.middleware.store import MemoryStore, Store
from imagecall.middleware.store_redis import RedisStore
from imagecall.middleware.stored.owned_store import OwnedStore
from redis_server import redis_server


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with redis_server() as server:
        yield server.url


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(entries=1_000, max_bytes=100 << 20)
        return
    url = request.getfixturevalue("redis_url")
    async with RedisStore(url, prefix=f"{request.node.name}:", timeout=20) as redis:
        yield redis


@pytest.fixture
def mine(store: Store) -> OwnedStore:
    return OwnedStore(store, "me", ttl=60)


@pytest.fixture
def yours(store: Store) -> OwnedStore:
    return OwnedStore(store, "you", ttl=60)
