"""The store in memory: what gives way to what, and that it never grows beyond its bounds."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from imagecall.middleware.settings import Settings, SettingsError
from imagecall.middleware.store import GONE, MemoryStore, named_store
from waiting import settle


class Time:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


async def gone(store: MemoryStore, *keys: str) -> list[str]:
    """Name those of the keys that are gone; the others are there."""
    found = [(key, await store.get(key)) for key in keys]
    assert all(value is not None for _, value in found)
    return [key for key, value in found if value is GONE]


async def test_a_value_is_gone_when_its_time_is_over() -> None:
    now = Time()
    store = MemoryStore(entries=10, max_bytes=10_000, now=now)
    await store.put("key", b"value", ttl=10)
    now.seconds += 9.9
    assert await store.get("key") == b"value"
    now.seconds += 0.1
    assert await store.get("key") is GONE
    assert not await store.has("key")


async def test_a_log_lives_on_with_each_piece() -> None:
    now = Time()
    store = MemoryStore(entries=10, max_bytes=10_000, now=now)
    await store.append("log", b"zero", ttl=10)
    now.seconds += 9
    await store.append("log", b"one", ttl=10)
    now.seconds += 9
    assert await store.read("log", 0) == [b"zero", b"one"]
    now.seconds += 1
    assert await store.read("log", 0) == []
    await store.append("log", b"two", ttl=10)
    assert await store.read("log", 0) == []


async def test_the_least_recently_used_value_gives_way_to_one_too_many() -> None:
    store = MemoryStore(entries=4, max_bytes=1 << 20)  # one of them for a log
    for key in ("a", "b", "c"):
        await store.put(key, b"", ttl=60)
    await store.get("a")
    await store.put("d", b"", ttl=60)
    assert await gone(store, "a", "b", "c", "d") == ["b"]


async def test_values_give_way_until_there_are_bytes_enough() -> None:
    store = MemoryStore(entries=100, max_bytes=4_000)
    for key in ("a", "b", "c"):
        await store.put(key, bytes(800), ttl=60)
    await store.put("d", bytes(1_800), ttl=60)
    assert await gone(store, "a", "b", "c", "d") == ["a", "b"]


async def test_a_new_value_of_a_key_takes_the_room_of_the_old_one() -> None:
    store = MemoryStore(entries=100, max_bytes=4_000)
    for _ in range(10):
        await store.put("a", bytes(1_000), ttl=60)
        await store.put("b", bytes(1_000), ttl=60)
    assert await gone(store, "a", "b") == []


async def test_a_value_larger_than_all_room_is_gone_at_once_and_takes_the_others_with_it() -> None:
    store = MemoryStore(entries=100, max_bytes=4_000)
    await store.put("a", b"", ttl=60)
    await store.put("b", bytes(5_000), ttl=60)
    assert await gone(store, "a", "b") == ["a", "b"]


async def test_keys_count_as_bytes_too() -> None:
    store = MemoryStore(entries=100, max_bytes=4_000)
    long, longer = "a" * 2_000, "b" * 2_000
    await store.put(long, b"", ttl=60)
    await store.put(longer, b"", ttl=60)
    assert await gone(store, long, longer) == [long]


async def test_what_is_over_makes_room_before_it_is_needed() -> None:
    now = Time()
    store = MemoryStore(entries=100, max_bytes=1 << 20, now=now)
    await store.put("a", b"", ttl=10)
    await store.put("b", b"", ttl=20)
    now.seconds += 15
    await store.put("c", b"", ttl=10)
    assert store._values._kept.keys() == {"b", "c"}
    assert await gone(store, "a", "b", "c") == ["a"]


async def test_logs_give_way_to_logs_only() -> None:
    store = MemoryStore(entries=100, max_bytes=4_000)
    await store.put("value", bytes(2_000), ttl=60)
    await store.append("old", bytes(400), ttl=60)
    await store.append("new", bytes(400), ttl=60)
    assert await store.read("old", 0) == []
    assert await store.read("new", 0) == [bytes(400)]
    assert await gone(store, "value") == []


async def test_a_log_larger_than_all_room_is_gone_for_good() -> None:
    store = MemoryStore(entries=100, max_bytes=4_000)
    for _ in range(20):
        await store.append("log", bytes(100), ttl=60)
    assert await store.read("log", 0) == []
    assert store._logs._size == 0


async def test_traces_of_what_has_gone_are_bounded_too() -> None:
    store = MemoryStore(entries=4, max_bytes=1 << 20)
    for number in range(8):
        await store.put(str(number), b"", ttl=60)
        await store.delete(str(number))
    found = [await store.get(str(number)) for number in range(8)]
    assert found == [None] * 4 + [GONE] * 4


async def test_nothing_is_left_of_readers_that_have_left() -> None:
    store = MemoryStore(entries=4, max_bytes=1 << 20)
    reader = asyncio.create_task(store.read("log", 0, wait=600))
    await settle()
    assert store._waiting
    reader.cancel()
    await asyncio.wait([reader])
    assert not store._waiting


async def test_a_reader_cancelled_in_the_very_moment_of_news_does_no_harm() -> None:
    store = MemoryStore(entries=4, max_bytes=1 << 20)
    readers = [asyncio.create_task(store.read("log", 0, wait=600)) for _ in range(2)]
    await settle()
    readers[0].cancel()
    await store.append("log", b"first", ttl=60)
    await asyncio.wait(readers)
    assert readers[0].cancelled()
    assert readers[1].result() == [b"first"]


async def test_memory_stays_bounded_however_much_is_kept() -> None:
    bound = 200_000
    store = MemoryStore(entries=1_000, max_bytes=bound)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(2_000):
            await store.put(f"value {number}", bytes(1_000), ttl=60)
            for _ in range(3):
                await store.append(f"log {number}", bytes(100), ttl=60)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    traces = 2 * 1_000 * 200
    assert after - before < 2 * bound + traces


def test_the_store_in_memory_is_the_default() -> None:
    assert isinstance(named_store(Settings()), MemoryStore)


def test_none_is_no_store() -> None:
    assert named_store(Settings(store="none")) is None


@pytest.mark.parametrize("name", ["", "disk", "memory://", "http://localhost", "none://x"])
def test_an_unknown_store_is_told_in_one_line(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        named_store(Settings(store=name))
    assert str(caught.value) == (
        "store (IMAGECALL_STORE): Input should be memory, none, or a URL: redis://…, rediss://… or unix://…."
    )
