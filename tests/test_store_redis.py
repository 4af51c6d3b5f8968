"""The store in Redis, beside what all stores do: several workers, and a server that fails."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from imagecall.middleware.settings import Settings, SettingsError
from imagecall.middleware.store import GONE, named_store
from imagecall.middleware.store_redis import RedisStore
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis_server import RedisServer, redis_server
from waiting import no_hanging, settle

SOON = 0.1
"""Seconds after which a test that wants to see a time-out has one."""

WORKER = """
import asyncio, os, signal, sys
from imagecall.middleware.store_redis import RedisStore

async def work():
    async with RedisStore(sys.argv[1]) as store:
        await store.put("picture", b"bytes", ttl=60)
        await store.append("log", b"zero", ttl=60)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(work())
"""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


async def test_workers_see_what_the_others_keep(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with deadline, RedisStore(server.url) as one, RedisStore(server.url) as other:
            await one.put("key", b"value", ttl=60)
            assert await other.get("key") == b"value"
            await other.delete("key")
            assert await one.get("key") is GONE


async def test_a_piece_that_one_worker_adds_wakes_the_readers_of_another(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with deadline, RedisStore(server.url) as one, RedisStore(server.url) as other:
            await one.append("log", b"zero", ttl=60)
            async with asyncio.TaskGroup() as group:
                reader = group.create_task(other.read("log", 1, wait=600))
                await settle()
                await one.append("log", b"one", ttl=60)
            assert reader.result() == [b"one"]


async def test_what_a_worker_kept_outlives_its_death(server: RedisServer) -> None:
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", WORKER, server.url], timeout=60, check=False
    )
    assert died.returncode == -signal.SIGKILL
    async with RedisStore(server.url) as store:
        assert await store.get("picture") == b"bytes"
        assert await store.read("log", 0) == [b"zero"]


async def test_stores_with_another_prefix_are_apart(server: RedisServer) -> None:
    async with RedisStore(server.url, prefix="a:") as one, RedisStore(server.url, prefix="b:") as other:
        await one.put("key", b"value", ttl=60)
        assert await other.get("key") is None


async def test_a_value_is_gone_when_its_time_is_over(server: RedisServer) -> None:
    async with RedisStore(server.url) as store, Redis.from_url(server.url) as redis:
        await store.put("key", b"value", ttl=60)
        await store.append("log", b"piece", ttl=60)
        kept = [b"imagecall:value:key", b"imagecall:log:log"]
        for key in await redis.keys():
            span = await redis.pttl(key)
            assert (0 < span <= 60_000) if key in kept else (span > 60_000)
        assert await redis.delete(*kept) == 2  # what Redis does when their time is over
        assert await store.get("key") is GONE
        await store.append("log", b"later", ttl=60)
        assert await store.read("log", 0) == []


async def test_nothing_is_connected_before_it_is_needed() -> None:
    async with RedisStore("unix:///nowhere/redis.sock") as store:
        with pytest.raises(RedisConnectionError):
            await store.get("key")


async def test_a_server_that_was_started_again_serves_at_once(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with deadline, RedisStore(server.url) as store:
            await store.put("key", b"value", ttl=60)
            server.kill()
            with pytest.raises(RedisConnectionError):
                await store.get("key")
            server.start()
            await store.put("key", b"again", ttl=60)
            assert await store.get("key") == b"again"


async def test_a_restart_that_nobody_noticed_fails_nobody(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with deadline, RedisStore(server.url) as store:
            await store.put("key", b"value", ttl=60)
            server.kill()
            server.start()
            assert await store.get("key") is None


async def test_a_server_that_hangs_is_not_waited_for(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with (
            deadline,
            RedisStore(server.url, timeout=20) as patient,
            RedisStore(server.url, timeout=SOON) as store,
        ):
            await patient.put("a", b"A", ttl=60)
            server.hang()
            with pytest.raises(TimeoutError):
                await store.put("b", bytes(300_000), ttl=60)
            with pytest.raises(TimeoutError):
                await store.get("a")
            with pytest.raises(TimeoutError):
                await store.read("log", 0, wait=SOON)
            server.go_on()
            assert await patient.get("a") == b"A"


async def test_a_late_answer_is_not_taken_for_the_next_one(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with deadline, RedisStore(server.url, timeout=20) as store:
            await store.put("a", b"A", ttl=60)
            await store.put("b", b"B", ttl=60)
            server.hang()
            late = asyncio.create_task(store.get("a"))
            await settle()
            late.cancel()
            await asyncio.wait([late])
            server.go_on()
            assert await store.get("b") == b"B"
            assert await store.get("a") == b"A"


async def test_a_reader_whose_server_hangs_is_let_go(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with (
            deadline,
            RedisStore(server.url, timeout=1) as store,
            Redis.from_url(server.url) as watcher,
        ):
            reader = asyncio.create_task(store.read("log", 0, wait=1))
            while not (await watcher.info("clients"))["blocked_clients"]:
                pass
            server.hang()
            await asyncio.wait([reader])
            assert isinstance(reader.exception(), TimeoutError)
            server.go_on()


async def test_many_requests_at_once_share_the_connections(server: RedisServer) -> None:
    with no_hanging() as deadline:
        async with deadline, RedisStore(server.url, timeout=20) as store:
            await asyncio.gather(*(store.put(str(number), b"value", ttl=60) for number in range(200)))
            found = await asyncio.gather(*(store.get(str(number)) for number in range(200)))
    assert found == [b"value"] * 200


@pytest.mark.parametrize(
    "url", ["redis://localhost:6379/2", "rediss://user:word@localhost", "unix:///run/redis.sock"]
)
def test_a_url_names_the_store_in_redis(url: str) -> None:
    assert isinstance(named_store(Settings(store=url)), RedisStore)


def test_a_wrong_url_is_told_in_one_line_without_its_password() -> None:
    with pytest.raises(SettingsError) as caught:
        named_store(Settings(store="redis://user:secret@localhost:port"))
    assert str(caught.value).startswith("store (IMAGECALL_STORE): The URL is wrong: ")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imagecall.middleware.store_redis", None)
    with pytest.raises(SettingsError) as caught:
        named_store(Settings(store="redis://localhost"))
    assert str(caught.value) == (
        "store (IMAGECALL_STORE): Redis needs a package that is not installed: "
        "pip install 'imagecall[redis]'."
    )
