"""Servers and names to fetch from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.edits.fetcher import Fetcher
from loopback import raw_server, read_request
from waiting import no_hanging

__all__ = ["FILE", "PUBLIC", "Names", "answer", "fetcher", "hold", "redirect", "refused", "site"]

PUBLIC = "127.0.0.1"
"""Where the tests' servers are; for them it counts as public, and no other address does."""

FILE = b"\x89PNG any bytes at all"


def answer(body: bytes = FILE, *, status: str = "200 OK", headers: Sequence[str] = ()) -> bytes:
    fields = "".join(f"{field}\r\n" for field in (f"Content-Length: {len(body)}", *headers))
    return f"HTTP/1.1 {status}\r\n{fields}\r\n".encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"elsewhere", status=status, headers=(f"Location: {location}", "Set-Cookie: a=b"))


class Names:
    """A resolver: one answer after the other, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[tuple[str, int]] = []
        self._answers = list(answers or [[PUBLIC]])

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def fetcher(names: Names, *hosts: str, **options: Any) -> Fetcher:
    limits: dict[str, Any] = {"max_bytes": 1_000, "is_public": PUBLIC.__eq__}
    return Fetcher(hosts or ("*:*",), resolve=names, **{**limits, **options})


async def refused(fetcher: Fetcher, url: str) -> tuple[str, str]:
    """Fetch what must be refused; give the code and the message, in which no address is."""
    with no_hanging() as deadline, pytest.raises(ImageError) as caught:
        async with deadline:
            await fetcher.fetch(url)
    assert not any(word in caught.value.message for word in ("127.", "10.", "169.", "::", "Errno"))
    return caught.value.code, caught.value.message


@asynccontextmanager
async def site(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve one answer per connection; give the authority to put into URLs, and the requests as they come."""
    seen: list[bytes] = []
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(left.pop(0))
        with suppress(ConnectionResetError):
            assert await reader.read() == b""

    async with raw_server(serve) as url:
        yield f"pictures.example:{url.rpartition(':')[2]}", seen


async def hold(reader: asyncio.StreamReader) -> None:
    """Keep a connection until the client leaves it."""
    with suppress(ConnectionResetError):
        await reader.read()
