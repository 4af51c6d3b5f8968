"""The clients: many at a time, reading as fast as they can. Run in a process of its own.

`python -m bench.load '{"url": …, "clients": …, …}'` prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvloop

_END = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients ask for.

    Attributes:
        url: of the Responses endpoint.
        body: the request's JSON.
        clients: at a time.
        requests: of each, one after the other on one connection.
        hold: instead of reading to the end, stop after the first events and print a line when all have them.
    """

    url: str
    body: str
    clients: int = 1
    requests: int = 1
    hold: bool = False


class _Reader(asyncio.Protocol):
    def ask(self, transport: asyncio.Transport, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.size, self._tail = 0, b""
        self.began: asyncio.Future[float] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.size += len(data)
        if not self.began.done() and b"data: " in data:
            self.began.set_result(time.perf_counter())
        self._tail = (self._tail + data[-5:])[-5:]
        if self._tail == _END and not self.ended.done():
            if not self.began.done():
                self.began.set_exception(RuntimeError(f"no event in {data[:300]!r}"))
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.began, self.ended):
            if not future.done():
                future.set_exception(RuntimeError("the connection was lost"))
                future.exception()


async def run(load: Load) -> dict[str, Any]:
    """Ask, and measure when the first event comes and how much there is in all."""
    address = urlsplit(load.url)
    assert address.hostname
    host, port = address.hostname, address.port or 80
    body = load.body.encode()
    request = (
        f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer sk-bench\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body
    waits: list[float] = []
    size = 0

    async def client() -> None:
        nonlocal size
        loop = asyncio.get_running_loop()
        transport, reader = await loop.create_connection(_Reader, host, port)
        for _ in range(load.requests):
            asked = time.perf_counter()
            reader.ask(transport, request)
            waits.append(await reader.began - asked)
            if load.hold:
                return
            await reader.ended
            size += reader.size
        transport.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(load.clients)))
    result = {
        "seconds": time.perf_counter() - begun,
        "first": statistics.median(waits),
        "bytes": size,
    }
    if load.hold:
        print(json.dumps(result), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    return result


if __name__ == "__main__":
    wanted = Load(**json.loads(sys.argv[1]))
    measured = uvloop.run(run(wanted))
    if not wanted.hold:
        print(json.dumps(measured))
