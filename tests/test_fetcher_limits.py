"""How much is fetched, and how long it may take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest
from fetching import Names, answer, fetcher, hold, refused
from imagecall.middleware.edits.fetcher import Fetcher
from loopback import Serve, answering, piece, raw_server, read_request
from waiting import Clock


def announcing(head: bytes) -> Serve:
    """Send a head, and never a body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(head)
        await hold(reader)

    return serve


def endless(head: bytes, more: bytes) -> Serve:
    """Send a head and then a body without end, until the client has had enough."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(more)
                await writer.drain()

    return serve


TOO_LONG = ("image_too_large", "The picture's URL gives more than the 1,000 bytes that max_image allows.")


async def test_a_length_beyond_the_limit_is_refused_before_the_body_comes() -> None:
    async with raw_server(announcing(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")) as url:
        assert await refused(fetcher(Names()), url) == TOO_LONG


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", piece(bytes(700))),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", bytes(700)),
        (b"HTTP/1.0 200 OK\r\n\r\n", bytes(1 << 16)),
    ],
)
async def test_a_body_of_unknown_length_is_read_no_further_than_the_limit(head: bytes, more: bytes) -> None:
    async with raw_server(endless(head, more)) as url:
        assert await refused(fetcher(Names()), url) == TOO_LONG


@pytest.mark.parametrize(
    "whole",
    [
        answer(bytes(1_000)),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + piece(bytes(600))
        + piece(bytes(400))
        + piece(b""),
    ],
)
async def test_a_file_of_the_greatest_length_is_taken(whole: bytes) -> None:
    async with raw_server(answering(whole)) as url:
        assert await fetcher(Names()).fetch(url) == bytes(1_000)


async def test_a_server_that_drips_for_ever_is_left_when_the_time_is_up() -> None:
    clock = Clock()
    asked = asyncio.Event()
    drips: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        drips.append(writer)
        asked.set()
        await hold(reader)

    async with raw_server(serve) as url, asyncio.TaskGroup() as group:
        fetch = group.create_task(refused(fetcher(Names(), timeout=20), url))
        await asked.wait()
        for part in (b"HTTP/1.1 200 OK\r\n", b"Content-Length: 900\r\n\r\n", b"a", b"b"):
            assert not fetch.done()
            drips[0].write(part)
            await drips[0].drain()
            await clock.forward(5)
        assert await fetch == (
            "image_fetch_timeout",
            "The picture's URL gave no whole file within 20 seconds.",
        )


async def test_a_name_server_that_never_answers_is_left_when_the_time_is_up() -> None:
    clock = Clock()
    asked = asyncio.Event()

    async def silent(_: str, __: int) -> Sequence[str]:
        asked.set()
        await asyncio.Event().wait()
        return []

    async with asyncio.TaskGroup() as group:
        fetch = group.create_task(
            refused(Fetcher(("*",), max_bytes=9, resolve=silent), "http://pictures.example/")
        )
        await asked.wait()
        await clock.forward(30)
        assert (await fetch)[0] == "image_fetch_timeout"


async def test_a_fetch_that_nobody_wants_any_more_is_given_up() -> None:
    left = asyncio.Event()
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        await hold(reader)
        left.set()

    async with raw_server(serve) as url:
        fetch = asyncio.ensure_future(fetcher(Names()).fetch(url))
        await asked.wait()
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        await left.wait()
