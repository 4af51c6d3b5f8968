"""A store that fails costs the memory of earlier turns, and no response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from imagecall.middleware.store import GONE, Gone, MemoryStore
from imagecall.middleware.store_redis import RedisStore
from imagecall.middleware.stored.safe import SafeStore
from redis_server import redis_server
from test_store_memory import Time
from waiting import Clock, no_hanging, settle


class Moody:
    """A store of somebody else's that works as long as it has nothing to complain of."""

    def __init__(self) -> None:
        self.trouble: BaseException | None = None
        self.asked = 0
        self.hangs = False
        self.kept = MemoryStore(entries=100, max_bytes=1 << 20)

    async def get(self, key: str) -> bytes | Gone | None:
        await self._complain()
        return await self.kept.get(key)

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        await self._complain()
        await self.kept.put(key, value, ttl=ttl)

    async def delete(self, key: str) -> None:
        await self._complain()
        await self.kept.delete(key)

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None:
        await self._complain()
        await self.kept.append(key, piece, ttl=ttl)

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        await self._complain()
        return await self.kept.read(key, start, wait=wait)

    async def _complain(self) -> None:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.trouble is not None:
            raise self.trouble


class Opened(Moody):
    """One that wants to be opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.story: list[Any] = []

    async def __aenter__(self) -> Opened:
        self.story.append("opened")
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self.story.append(kind)


OPERATIONS: dict[str, tuple[Callable[[SafeStore], Awaitable[Any]], Any, Any]] = {
    # operation: how, what comes of it, and what instead when the store fails
    "get": (lambda store: store.get("key"), b"value", None),
    "has": (lambda store: store.has("key"), True, False),
    "put": (lambda store: store.put("other", b"", ttl=60), True, False),
    "delete": (lambda store: store.delete("other"), True, False),
    "append": (lambda store: store.append("other", b"", ttl=60), True, False),
    "read": (lambda store: store.read("log", 0), [b"piece"], []),
}


@pytest.mark.parametrize(
    "trouble", [OSError("redis://user:secret@host says no"), asyncio.CancelledError()], ids=repr
)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_operation_that_fails_is_as_if_nothing_were_there(name: str, trouble: BaseException) -> None:
    perform, result, otherwise = OPERATIONS[name]
    moody = Moody()
    store = SafeStore(moody)
    await moody.kept.put("key", b"value", ttl=60)
    await moody.kept.append("log", b"piece", ttl=60)
    assert await perform(store) == result
    moody.trouble = trouble
    assert await perform(store) == otherwise
    moody.trouble = None
    assert await perform(store) == result


async def test_gone_is_told_from_never_seen() -> None:
    store = SafeStore(MemoryStore(entries=100, max_bytes=1 << 20))
    await store.put("key", b"value", ttl=60)
    assert await store.has("key")
    await store.delete("key")
    assert (await store.get("key"), await store.has("key"), await store.get("never")) == (GONE, False, None)


async def test_one_warning_tells_of_many_failures_without_their_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "imagecall")
    moody, now = Moody(), Time()
    store = SafeStore(moody, now=now)
    moody.trouble = OSError("redis://user:secret@host says no")
    for _ in range(5):
        await store.get("key")
    moody.trouble = None
    await store.get("key")
    await store.get("key")
    moody.trouble = ValueError("no")
    await store.get("key")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "The store fails (OSError): responses go on, but what it should keep of them is lost.",
        ),
        ("INFO", "The store answers again."),
    ]
    now.seconds += 60
    await store.get("key")
    assert caplog.messages[2:] == [
        "The store fails (ValueError): responses go on, but what it should keep of them is lost."
    ]


async def test_a_store_that_timed_out_has_a_rest() -> None:
    moody, now = Moody(), Time()
    store = SafeStore(moody, now=now)
    await store.put("key", b"value", ttl=60)
    moody.trouble = TimeoutError()
    await store.get("key")
    moody.trouble = None
    now.seconds += 4.9
    assert await store.get("key") is None
    assert moody.asked == 2
    now.seconds += 0.1
    assert await store.get("key") == b"value"


async def test_a_store_that_never_answers_is_given_up() -> None:
    clock, moody = Clock(), Moody()
    moody.hangs = True
    reader = asyncio.create_task(SafeStore(moody).get("key"))
    await settle()
    await clock.forward(9)
    assert not reader.done()
    await clock.forward(2)
    assert reader.result() is None


async def test_a_log_that_cannot_be_read_is_not_asked_for_without_a_breath() -> None:
    clock, moody = Clock(), Moody()
    moody.trouble = OSError()
    reader = asyncio.create_task(SafeStore(moody).read("log", 0, wait=600))
    await settle()
    await clock.forward(0.9)
    assert not reader.done()
    await clock.forward(0.2)
    assert reader.result() == []


async def test_a_request_that_is_cancelled_says_nothing_of_the_store(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moody = Moody()
    moody.hangs = True
    reader = asyncio.create_task(SafeStore(moody).get("key"))
    await settle()
    reader.cancel()
    await asyncio.wait([reader])
    assert reader.cancelled()
    assert caplog.messages == []


async def test_a_store_that_must_be_opened_is_opened_and_closed() -> None:
    opened = Opened()
    async with SafeStore(opened) as store:
        assert await store.put("key", b"value", ttl=60)
    assert opened.story == ["opened", None]


async def test_a_store_that_need_not_be_opened_is_used_as_it_is() -> None:
    async with SafeStore(Moody()) as store:
        assert await store.get("key") is None


async def test_a_redis_that_is_killed_and_started_again_costs_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with no_hanging() as deadline, redis_server() as server:
        async with deadline, SafeStore(RedisStore(server.url, timeout=20)) as store:
            await store.put("key", b"value", ttl=60)
            server.kill()
            assert [await store.get("key") for _ in range(3)] == [None] * 3
            assert not await store.put("key", b"value", ttl=60)
            server.start()
            assert await store.put("key", b"again", ttl=60)
            assert await store.get("key") == b"again"
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_redis_that_hangs_holds_one_request_up_and_no_more() -> None:
    now = Time()
    with no_hanging() as deadline, redis_server() as server:
        async with deadline, SafeStore(RedisStore(server.url, timeout=1), now=now) as store:
            await store.put("key", b"value", ttl=60)
            server.hang()
            assert await store.get("key") is None
            server.go_on()
            assert await store.get("key") is None  # it rests
            now.seconds += 5
            assert await store.get("key") == b"value"
