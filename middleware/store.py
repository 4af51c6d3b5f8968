"""Where pictures and responses are kept for later turns: the protocol, and the store in memory."""

from __future__ import annotations

import asyncio
import enum
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Generic, Protocol, TypeVar, runtime_checkable

from .settings import Settings, SettingsError

__all__ = ["GONE", "Gone", "MemoryStore", "Peeking", "Store", "named_store"]


class Gone(enum.Enum):
    """The type of `GONE`."""

    GONE = "gone"


GONE: Final = Gone.GONE
"""What is read of a key that had a value once and has none any more."""


class Store(Protocol):
    """Bytes by key, and logs: lists of pieces that only ever grow.

    One object serves all requests of a process, many at the same time. A key is printable ASCII, a
    value may be as large as a picture in base64 (45 MB). Any method may raise when the store is out of
    order, and should do so within seconds: nothing but the memory of earlier turns is lost by it.
    A store that must be opened is also an async context manager. See also `Peeking`.
    """

    async def get(self, key: str) -> bytes | Gone | None:
        """Return the value; `GONE` when it was deleted, has expired or was evicted; None if never seen."""
        ...

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        """Keep a value for `ttl` seconds, in place of an earlier one."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the value and the log of a key. It is `GONE` from now on, for longer than a ttl.

        Of a key never seen nothing remains.
        """
        ...

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None:
        """Add a piece to a log, and let the whole log live for `ttl` seconds from now.

        A log that was deleted or evicted does not begin again: the piece is dropped.
        """
        ...

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        """Return the pieces of a log from number `start` on, the first of all being number 0.

        If there are none yet, wait at most `wait` seconds for the first; then the list is empty.
        """
        ...


@runtime_checkable
class Peeking(Protocol):
    """What a store can do better than by `get`: tell of a large value whether it is there."""

    async def has(self, key: str) -> bool:
        """Tell whether `get` would return a value."""
        ...


def named_store(settings: Settings) -> Store | None:
    """Build the store that the settings name; None for `none`.

    Raises:
        SettingsError: there is no such store, or what it needs is not installed.
    """
    match settings.store.partition("://"):
        case ("memory", "", ""):
            return MemoryStore(entries=settings.store_entries, max_bytes=settings.store_bytes)
        case ("none", "", ""):
            return None
        case ("redis" | "rediss" | "unix", "://", _):
            try:
                from .store_redis import RedisStore

                return RedisStore(settings.store)
            except ImportError:
                problem = "Redis needs a package that is not installed: pip install 'imagecall[redis]'"
            except ValueError:  # its words may hold a part of the password
                problem = (
                    "The URL is wrong: give one such as redis://user:password@host:6379/0, any of / ? # @ in "
                    "the password as %2F, %3F, %23, %40"
                )
        case _:
            problem = "Input should be memory, none, or a URL: redis://…, rediss://… or unix://…"
    raise SettingsError(f"store (IMAGECALL_STORE): {problem}.") from None


T = TypeVar("T", bytes, list[bytes])

_OVERHEAD = 64
"""Bytes that Python itself takes for an object, roughly; they count, else many small values would not."""


class MemoryStore:
    """A store within one process, of bounded size: what was least recently used gives way.

    Every operation takes constant time, and nothing runs by itself: what has expired is forgotten when
    somebody asks for it or room is needed. A quarter of the room is for logs. What has gone leaves a
    trace of a few bytes, at most `entries` of them for values and as many for logs.

    Args:
        entries: how many values and logs are kept at most.
        max_bytes: how many bytes they may have together, keys included.
        now: seconds of a clock that never goes back.
    """

    def __init__(self, *, entries: int, max_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        logs, log_bytes = max(1, entries // 4), max_bytes // 4
        values = max(1, entries - logs)
        self._values: _Shelf[bytes] = _Shelf(values, max_bytes - log_bytes, entries, now)
        self._logs: _Shelf[list[bytes]] = _Shelf(logs, log_bytes, entries, now)
        self._now = now
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    async def get(self, key: str) -> bytes | Gone | None:
        """Return the value, `GONE`, or None."""
        entry = self._values.find(key)
        if entry is None:
            return GONE if self._values.had(key) else None
        return entry.value

    async def has(self, key: str) -> bool:
        """Tell whether there is a value."""
        return self._values.find(key) is not None

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        """Keep a value. One that is larger than all the room is `GONE` at once."""
        self._values.place(key, _Entry(value, _cost(key) + _cost(value), self._now() + ttl))

    async def delete(self, key: str) -> None:
        """Remove a value and a log."""
        self._values.forget(key)
        self._logs.forget(key)

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None:
        """Add a piece to a log and wake who waits for it."""
        entry = self._logs.find(key)
        if entry is None:
            if self._logs.had(key):
                return
            entry = _Entry([], _cost(key), 0.0)
        entry.value.append(piece)
        self._logs.place(key, replace(entry, size=entry.size + _cost(piece), expires=self._now() + ttl))
        for waiting in self._waiting.pop(key, ()):
            if not waiting.done():
                waiting.set_result(None)

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        """Return the pieces from number `start` on."""
        pieces = self._pieces(key, start)
        if pieces or wait <= 0:
            return pieces
        try:
            async with asyncio.timeout(wait):
                while not pieces:
                    await self._news(key)
                    pieces = self._pieces(key, start)
        except TimeoutError:
            pass
        return pieces

    def _pieces(self, key: str, start: int) -> list[bytes]:
        entry = self._logs.find(key)
        return entry.value[start:] if entry is not None else []

    async def _news(self, key: str) -> None:
        news = asyncio.get_running_loop().create_future()
        readers = self._waiting.setdefault(key, set())
        readers.add(news)
        try:
            await news
        finally:
            readers.discard(news)
            if not readers and self._waiting.get(key) is readers:
                del self._waiting[key]


def _cost(stored: bytes | str) -> int:
    return len(stored) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    value: T
    size: int
    expires: float


class _Shelf(Generic[T]):
    """Entries within bounds, the least recently used first, and traces of those that had to go."""

    def __init__(self, entries: int, max_bytes: int, traces: int, now: Callable[[], float]) -> None:
        self._entries = entries
        self._max_bytes = max_bytes
        self._traces = traces
        self._now = now
        self._kept: OrderedDict[str, _Entry[T]] = OrderedDict()
        self._gone: OrderedDict[Hashable, None] = OrderedDict()
        self._size = 0

    def find(self, key: str) -> _Entry[T] | None:
        """Return the entry of a key, which is the most recently used one by that."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        if entry.expires <= self._now():
            self.forget(key)
            return None
        self._kept.move_to_end(key)
        return entry

    def had(self, key: str) -> bool:
        """Tell whether a key that is not here was here once."""
        return _trace(key) in self._gone

    def place(self, key: str, entry: _Entry[T]) -> None:
        """Put an entry in, and others out as long as there is no room, or their time is over."""
        self._remove(key)
        self._gone.pop(_trace(key), None)
        self._kept[key] = entry
        self._size += entry.size
        while self._kept:
            oldest = next(iter(self._kept))
            full = len(self._kept) > self._entries or self._size > self._max_bytes
            if not full and self._kept[oldest].expires > self._now():
                break
            self.forget(oldest)

    def forget(self, key: str) -> None:
        """Put an entry out and leave a trace of it."""
        if self._remove(key):
            self._gone[_trace(key)] = None
            if len(self._gone) > self._traces:
                self._gone.popitem(last=False)

    def _remove(self, key: str) -> bool:
        entry = self._kept.pop(key, None)
        self._size -= entry.size if entry is not None else 0
        return entry is not None


def _trace(key: str) -> bytes:
    """Shorten a key: traces are many, and must be small whatever the keys are."""
    return blake2b(key.encode(), digest_size=12).digest()
