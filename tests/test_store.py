"""What every store does, in memory and in Redis alike."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from imagecall.middleware.store import GONE, MemoryStore, Peeking, Store
from imagecall.middleware.store_redis import RedisStore
from redis_server import RedisServer, redis_server
from waiting import settle

_prefixes = (f"test{number}:" for number in itertools.count())


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(entries=100, max_bytes=100 << 20)
        return
    url = request.getfixturevalue("server").url
    async with RedisStore(url, prefix=next(_prefixes), timeout=20) as redis:
        yield redis


async def test_a_key_never_seen_has_no_value(store: Store) -> None:
    assert await store.get("never") is None


async def test_a_value_is_read_as_it_was_written(store: Store) -> None:
    await store.put("key", b"\x00\xffvalue", ttl=60)
    assert await store.get("key") == b"\x00\xffvalue"


async def test_an_empty_value_is_a_value(store: Store) -> None:
    await store.put("key", b"", ttl=60)
    assert await store.get("key") == b""


async def test_the_last_value_counts(store: Store) -> None:
    await store.put("key", b"first", ttl=60)
    await store.put("key", b"second", ttl=60)
    assert await store.get("key") == b"second"


async def test_a_picture_of_45_megabytes_is_kept_whole(store: Store) -> None:
    picture = b"iVBORw0K" * (45 << 17)
    await store.put("key", picture, ttl=60)
    assert await store.get("key") == picture


async def test_what_was_deleted_is_gone(store: Store) -> None:
    await store.put("key", b"value", ttl=60)
    await store.delete("key")
    assert await store.get("key") is GONE


async def test_what_was_deleted_can_be_kept_anew(store: Store) -> None:
    await store.put("key", b"value", ttl=60)
    await store.delete("key")
    await store.put("key", b"again", ttl=60)
    assert await store.get("key") == b"again"


async def test_deleting_a_key_never_seen_leaves_nothing(store: Store) -> None:
    await store.delete("never")
    assert await store.get("never") is None


async def test_it_tells_whether_a_value_is_there_without_reading_it(store: Store) -> None:
    assert isinstance(store, Peeking)
    await store.put("here", b"", ttl=60)
    await store.put("deleted", b"", ttl=60)
    await store.delete("deleted")
    assert [await store.has(key) for key in ("here", "deleted", "never")] == [True, False, False]


async def test_a_log_is_read_from_any_piece_on(store: Store) -> None:
    for piece in (b"zero", b"one", b"", b"three"):
        await store.append("log", piece, ttl=60)
    assert await store.read("log", 0) == [b"zero", b"one", b"", b"three"]
    assert await store.read("log", 2) == [b"", b"three"]
    assert await store.read("log", 4) == []


async def test_a_log_never_begun_is_empty(store: Store) -> None:
    assert await store.read("never", 0) == []


async def test_who_waits_for_a_log_gets_its_first_piece(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(store.read("log", 0, wait=600)) for _ in range(3)]
        await settle()
        await store.append("log", b"first", ttl=60)
    assert [reader.result() for reader in readers] == [[b"first"]] * 3


async def test_who_waits_for_a_later_piece_gets_just_that(store: Store) -> None:
    await store.append("log", b"zero", ttl=60)
    async with asyncio.TaskGroup() as group:
        reader = group.create_task(store.read("log", 1, wait=600))
        await settle()
        await store.append("log", b"one", ttl=60)
    assert reader.result() == [b"one"]


async def test_who_waits_far_ahead_is_not_served_too_early(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        reader = group.create_task(store.read("log", 1, wait=600))
        await settle()
        await store.append("log", b"zero", ttl=60)
        await settle()
        await store.append("log", b"one", ttl=60)
    assert reader.result() == [b"one"]


async def test_a_log_without_news_is_waited_for_no_longer_than_wanted(store: Store) -> None:
    assert await store.read("log", 0, wait=0.01) == []


async def test_a_reader_that_gives_up_leaves_the_others_waiting(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        gone, stays = (group.create_task(store.read("log", 0, wait=600)) for _ in range(2))
        await settle()
        gone.cancel()
        await settle()
        await store.append("log", b"first", ttl=60)
    assert gone.cancelled()
    assert stays.result() == [b"first"]


async def test_a_deleted_log_does_not_begin_again(store: Store) -> None:
    await store.append("log", b"zero", ttl=60)
    await store.delete("log")
    await store.append("log", b"one", ttl=60)
    assert await store.read("log", 0) == []


async def test_a_value_and_a_log_of_one_key_are_two_things(store: Store) -> None:
    await store.put("key", b"value", ttl=60)
    await store.append("key", b"piece", ttl=60)
    assert (await store.get("key"), await store.read("key", 0)) == (b"value", [b"piece"])
    await store.delete("key")
    assert (await store.get("key"), await store.read("key", 0)) == (GONE, [])
