"""A server on a raw socket that breaks off as it is told."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from loopback import STREAM, json_answer, piece, read_request, reset
from model_server import KITE_TURNS, whole
from raw_client import RawClient
from waiting import News, settle

__all__ = [
    "CALL",
    "TEXT",
    "Deed",
    "FaultyServer",
    "Link",
    "answering_json",
    "closes",
    "cut_at",
    "good",
    "resets",
    "says",
    "stalls",
]

_PIECE = 1 << 16

CALL = b"".join(KITE_TURNS[0])
TEXT = b"".join(KITE_TURNS[1])


class Link:
    """One connection of the model server's, on which it is being asked something.

    Attributes:
        asked: the whole request, as bytes.
        said: how many pieces it has got rid of.
        client: the client of the product on whose behalf it is asked.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.asked = b""
        self.said = 0
        self.client: RawClient
        self._writer = writer

    async def say(self, *pieces: bytes) -> None:
        for one in pieces:
            for start in range(0, len(one), _PIECE):
                self._writer.write(one[start : start + _PIECE])
                await self._writer.drain()
                self.said += 1

    def reset(self) -> None:
        """Break the connection off with a RST."""
        reset(self._writer)

    def close(self) -> None:
        """Close the connection in good order."""
        self._writer.close()

    async def closed(self) -> None:
        """Wait until the product closes the connection."""
        with suppress(ConnectionResetError):
            while await self.reader.read(1 << 16):
                pass


Deed = Callable[[Link], Awaitable[None]]
"""What the model server does with one request."""


async def good(link: Link) -> None:
    """Answer as a model server in good health would, in whatever manner it is asked."""
    body = json.loads(link.asked.partition(b"\r\n\r\n")[2])
    turn = KITE_TURNS[isinstance(body["input"], list)]
    if body["stream"]:
        await link.say(STREAM, *(piece(frame) for frame in turn), b"0\r\n\r\n")
    else:
        await answering_json(whole(turn))(link)


def resets(*said: bytes, heard: bytes = b"") -> Deed:
    """Break off with a RST once the client has heard something of it."""

    async def deed(link: Link) -> None:
        await link.say(*said)
        if heard:
            await link.client.heard(heard)
        link.reset()

    return deed


def closes(*said: bytes, then: bytes = b"") -> Deed:
    """Close in good order, but too early; `then` comes once the client has heard what was said."""

    async def deed(link: Link) -> None:
        await link.say(*said)
        if then:
            await link.client.heard(b"response.created")
            await link.say(then)
        link.close()

    return deed


def stalls(*said: bytes) -> Deed:
    """Say no more, and hold the connection."""

    async def deed(link: Link) -> None:
        await link.say(*said)
        await link.closed()

    return deed


def says(*said: bytes) -> Deed:
    """Say just this, and listen for the next request."""

    async def deed(link: Link) -> None:
        await link.say(*said)

    return deed


def answering_json(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> Deed:
    """Answer with a whole body that is said to be JSON."""

    async def answer(link: Link) -> None:
        await link.say(json_answer(body, status, more))

    return answer


def cut_at(needle: bytes, turn: bytes = CALL) -> bytes:
    """Return a turn's stream until just behind the first `needle`, which is in it."""
    return turn[: turn.index(needle) + len(needle)]


class FaultyServer:
    """A server on a raw socket: does the n-th deed with the n-th request, and then something else with all.

    Attributes:
        asked: the requests it has got.
        client: the product's client on whose behalf it is asked.
        url: where it is.
    """

    def __init__(self, *deeds: Deed, otherwise: Deed = good) -> None:
        self.client: RawClient | None = None
        self.asked: list[bytes] = []
        self._otherwise = otherwise
        self._deeds = [*deeds]
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self._address = self._socket.getsockname()
        self.url = f"http://{self._address[0]}:{self._address[1]}"
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._conversations: list[Link] = []
        self._news = News()

    async def was_asked(self, times: int) -> None:
        await self._news.until(lambda: len(self.asked) >= times)

    async def was_held_up(self) -> None:
        """Wait until nobody takes any more of what it says: all buffers on the way are full."""
        said = -1
        while said != (said := sum(link.said for link in self._conversations)):
            await settle()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=1 << 25)

    def deafen(self) -> None:
        """Stop listening: whoever connects from now on is refused."""
        assert self._server is not None
        self._server.close()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(self._address)
        self._server = None

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for task in self._links:
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._converse(reader, writer)
        finally:
            writer.close()
            self._links.discard(task)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer)
        self._conversations.append(link)
        while not writer.is_closing():
            link.asked = await read_request(reader)
            if not link.asked:
                return
            self.asked.append(link.asked)
            self._news.tell()
            link.client = self.client  # type: ignore[assignment]  # where a deed waits for it, there is one
            deed = self._deeds.pop(0) if self._deeds else self._otherwise
            await deed(link)
