"""A model server that costs next to nothing: precomputed bytes on asyncio's own protocols.

The request's `model` tells what to do: `burst-N` sends N deltas at once, `paced-N` one after the other at
fifty a second, `picture-N` calls the image function first and then sends N deltas, `idle` begins and waits.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import socket
import sys
from typing import cast

import uvloop

from .stream import call_turn, renamed, text_turn

INTERVAL = 0.02
"""Seconds between two events of a paced stream."""

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_END = b"0\r\n\r\n"
_PIECE = 16 << 10
_MODEL = re.compile(rb'"model": ?"(?:openai/)?(\w+)(?:-(\d+))?"')
_NAME = re.compile(rb'"name": ?"(\w+)"')
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODELS = {"object": "list", "data": [{"id": "bench", "object": "model", "created": 1, "owned_by": "bench"}]}


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _burst(deltas: int) -> bytes:
    whole = b"".join(renamed(text_turn(deltas)))
    pieces = (whole[start : start + _PIECE] for start in range(0, len(whole), _PIECE))
    return b"".join((_HEAD, *map(_chunk, pieces), _END))


@functools.cache
def _call(name: str) -> bytes:
    return b"".join((_HEAD, *map(_chunk, call_turn(name)), _END))


@functools.cache
def _paced(deltas: int) -> tuple[bytes, ...]:
    return tuple(_chunk(frame) for frame in text_turn(deltas))


class _Connection(asyncio.Protocol):
    """One client: requests one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, rest = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        length = _LENGTH.search(head)
        if length is None and b"chunked" in head.lower():
            if not rest.endswith(_END):
                return
        elif len(rest) < (int(length[1]) if length else 0):
            return
        self._received = b""
        self._answer(head, rest)

    def _answer(self, head: bytes, body: bytes) -> None:
        asked = _MODEL.search(body)
        if not head.startswith(b"POST") or asked is None:
            data = json.dumps(_MODELS).encode()
            self._transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(data), data)
            )
            return
        kind, deltas = asked[1], int(asked[2] or 0)
        if kind == b"picture" and b"function_call_output" not in body:
            offered = _NAME.search(body)
            self._transport.write(*renamed([_call(offered[1].decode() if offered else "image_generation")]))
        elif kind in (b"burst", b"picture"):
            self._transport.write(_burst(deltas))
        else:
            self._transport.write(_HEAD)
            frames = renamed(_paced(deltas or 1))
            self._pace(frames, 0, 5 if kind == b"idle" else len(frames))

    def _pace(self, frames: list[bytes], number: int, last: int) -> None:
        if number == len(frames):
            self._transport.write(_END)
        elif number < last:
            self._transport.write(frames[number])
            self._timer = asyncio.get_running_loop().call_later(
                INTERVAL, self._pace, frames, number + 1, last
            )


async def _serve(listener: socket.socket) -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, sock=listener, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
