"""A store that several processes share: Redis, or whatever speaks its protocol and knows streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from .store import GONE, Gone

__all__ = ["RedisStore"]

T = TypeVar("T")

_CONNECTIONS = 32
"""Connections for requests that are answered at once; more requests than these wait for one."""
_READERS = 1_000
"""Connections for those who wait for news of a log, each of whom needs one for itself."""
_REMEMBERED = 7
"""Times a ttl for which it is remembered that something was there."""
_SLOWEST = 10e6
"""Bytes per second at which large values may travel at the least."""

_APPEND = """
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('XADD', KEYS[1], '1-' .. redis.call('XLEN', KEYS[1]), 'piece', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], '', 'PX', ARGV[3])
return 1
"""
"""A log is a stream whose entry number n has the id 1-n, so that its number finds it. One that has gone
does not begin again."""


class RedisStore:
    """A store in Redis. Connections are opened when they are needed, and again when they were cut.

    No operation takes longer than `timeout` seconds, and a second more for each 10 MB that it writes;
    what it is told to wait for a log's news comes on top.

    Args:
        url: `redis://`, `rediss://` or `unix://`, with user, password and database as redis-py reads them.
        prefix: how all keys begin.
        timeout: in seconds.

    Raises:
        ValueError: this is no such URL.
    """

    def __init__(self, url: str, *, prefix: str = "imagecall:", timeout: float = 2.0) -> None:
        self._prefix = prefix
        self._timeout = timeout
        # The bounds are kept here, around whole operations. Only a cut connection is tried again.
        options: dict[str, Any] = {
            "socket_timeout": None,
            "socket_connect_timeout": None,
            "retry": Retry(NoBackoff(), 1, (RedisConnectionError,)),
            "protocol": 2,
        }
        self._pools = (
            BlockingConnectionPool.from_url(url, max_connections=_CONNECTIONS, timeout=None, **options),
            ConnectionPool.from_url(url, max_connections=_READERS, **options),
        )
        self._redis, self._waiting = (Redis(connection_pool=pool) for pool in self._pools)

    async def __aenter__(self) -> RedisStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools:
            await pool.aclose()

    async def get(self, key: str) -> bytes | Gone | None:
        """Return the value, `GONE`, or None."""
        names = [self._name("value", key), self._name("value-gone", key)]
        value, gone = await self._within(0, self._redis.mget(names))
        if isinstance(value, bytes):
            return value
        return None if gone is None else GONE

    async def has(self, key: str) -> bool:
        """Tell whether there is a value."""
        return bool(await self._within(0, self._redis.exists(self._name("value", key))))

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        """Keep a value."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.set(self._name("value", key), value, px=_milliseconds(ttl))
        pipeline.set(self._name("value-gone", key), b"", px=_milliseconds(ttl * _REMEMBERED))
        await self._within(len(value), pipeline.execute())

    async def delete(self, key: str) -> None:
        """Remove a value and a log. What tells that they were there has been there from the start."""
        names = (self._name("value", key), self._name("log", key))
        await self._within(0, self._redis.delete(*names))

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None:
        """Add a piece to a log and wake who waits for it, in whatever process."""
        names = (self._name("log", key), self._name("log-gone", key))
        spans = (_milliseconds(ttl), _milliseconds(ttl * _REMEMBERED))
        await self._within(len(piece), self._redis.eval(_APPEND, 2, *names, piece, *spans))

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        """Return the pieces from number `start` on."""
        name = self._name("log", key)
        # redis-py's types leave open what its options settle: bytes, and the lists of RESP2.
        entries: Any = await self._within(0, self._redis.xrange(name, min=f"1-{start}"))
        if not entries and wait > 0:
            before = f"1-{start - 1}" if start else "0-0"
            async with asyncio.timeout(self._timeout + wait):
                found: Any = await self._waiting.xread({name: before}, block=_milliseconds(wait))
            entries = found[0][1] if found else []
        return [fields[b"piece"] for _, fields in entries]

    def _name(self, kind: str, key: str) -> str:
        return f"{self._prefix}{kind}:{key}"

    async def _within(self, size: int, operation: Awaitable[T]) -> T:
        async with asyncio.timeout(self._timeout + size / _SLOWEST):
            return await operation


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
