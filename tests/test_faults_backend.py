"""Picture makers in trouble, on real sockets: the picture fails, the response and the server go on."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from faulty import Front, faulty_world, mounted, served, tried
from faulty_server import Deed, FaultyServer, Link, answering_json, closes, resets, says, stalls
from loopback import STREAM, piece
from mcp_servers import official
from mcp_servers.studio import Studio
from painters import png
from raw_client import RawClient
from rules import read_events
from serving import serve

MOMENT = 0.5
"""Seconds for a picture, in the tests of those that never come."""

PATIENCE = 5.0
"""Seconds in which a session must begin, in those tests: enough for the good one that follows."""

PICTURE = json.dumps({"created": 1, "data": [{"b64_json": base64.b64encode(png("x")).decode()}]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n"


def pours(*said: bytes, again: bytes) -> Deed:
    """Say something, and then the same again and again until nobody takes it."""

    async def deed(link: Link) -> None:
        await link.say(*said)
        while True:
            await link.say(again)
            await asyncio.sleep(0)

    return deed


def data(entry: Any) -> Deed:
    return answering_json(json.dumps({"data": entry}).encode())


@dataclass(frozen=True, slots=True)
class Fault:
    """What a picture maker does with the first request, and the code of the failed picture.

    Attributes:
        name: of the fault.
        deed: what it does.
        code: of the failed picture.
        refuses: whether nobody listens at first.
    """

    name: str
    deed: Deed
    code: str
    refuses: bool = False


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
UNREACHABLE = "image_backend_unreachable"
HTML = b"<html>Welcome</html>"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(HTML)

OPENAI = [
    Fault("refuses", says(), UNREACHABLE, refuses=True),
    Fault("closes before the head", closes(), UNREACHABLE),
    Fault("resets before the head", resets(), UNREACHABLE),
    Fault("resets amid the head", resets(HEAD[:20]), UNREACHABLE),
    Fault("speaks no HTTP", closes(b"\x16\x03\x01\x02\x00\r\n\r\n"), "image_backend_error"),
    Fault("closes amid the body", closes(SIZED % len(PICTURE), PICTURE[:50]), "image_backend_cut"),
    Fault("resets amid the body", resets(SIZED % len(PICTURE), PICTURE[:50]), "image_backend_cut"),
    Fault("makes no chunk", closes(CHUNKED, piece(PICTURE[:50]), b"zz\r\n"), "image_backend_error"),
    Fault("says less than all", says(SIZED % 50, PICTURE[:50]), "not_an_image"),
    Fault("says nothing", says(SIZED % 0), "not_an_image"),
    Fault("answers in HTML", says(PAGE, HTML), "not_an_image"),
    Fault("calls HTML JSON", answering_json(HTML), "not_an_image"),
    Fault("answers without a picture", data([]), "no_image"),
    Fault("has data that is no list", data(7), "no_image"),
    Fault("has a picture of no letters", data([{"b64_json": "????"}]), "invalid_base64_image"),
    Fault(
        "has a picture that is none", data([{"b64_json": base64.b64encode(b"no").decode()}]), "not_an_image"
    ),
    Fault(
        "compresses garbage",
        answering_json(b"no gzip", more=b"Content-Encoding: gzip\r\n"),
        "image_backend_cut",
    ),
    Fault(
        "compresses unasked", answering_json(gzip.compress(PICTURE), more=b"Content-Encoding: gzip\r\n"), ""
    ),
    Fault("hangs before the head", stalls(), "timeout"),
    Fault("hangs amid the body", stalls(SIZED % len(PICTURE), PICTURE[:50]), "timeout"),
    Fault("never ends its answer", pours(CHUNKED, again=piece(b" " * 65536)), "image_too_large"),
    Fault("streams for ever", pours(STREAM, again=piece(b": still painting\n\n")), "timeout"),
    Fault(
        "streams a picture without an end",
        pours(STREAM + piece(b"data: "), again=piece(b"A" * 65536)),
        "image_too_large",
    ),
]


def failure(client: RawClient) -> str:
    """Give the code with which the one picture failed; "" if it did not."""
    [item] = [
        item
        for item in read_events(client.body)[-1]["response"]["output"]
        if item["type"] == "image_generation_call"
    ]
    return "" if item["status"] == "completed" else str(item["error"]["code"])


@pytest.mark.parametrize("front", [served, mounted])
@pytest.mark.parametrize("fault", OPENAI, ids=lambda fault: fault.name)
async def test_a_fault_of_an_image_server_fails_one_picture(front: Front, fault: Fault) -> None:
    images = FaultyServer(*(() if fault.refuses else (fault.deed,)), otherwise=answering_json(PICTURE))
    limits = {"call_timeout": MOMENT} if fault.code == "timeout" else {}
    settings = {"backend_url": f"{images.url}/v1", "backend_retries": 0, "max_image": 1 << 20, **limits}
    if not fault.refuses:
        await images.listen()
    async with aclosing(images), faulty_world(front, "openai", **settings) as world:
        client = await world.ask()
        assert client.verdict() == ("completed 0" if fault.code else "completed 1")
        assert failure(client) == fault.code
        if fault.refuses:
            await images.listen()
        await world.is_well()
    tried("an image server")


class Relay:
    """A wire to a real MCP server that does something else with some requests as long as it is `faulty`.

    Args:
        deed: what it does.
        word: what stands in those requests.
        target: the server's URL.
    """

    def __init__(self, deed: Deed, word: bytes, target: str) -> None:
        self.faulty = True
        self._deed = deed
        self._word = word
        self._target = urlsplit(target)

    async def __call__(self, link: Link) -> None:
        if self.faulty and self._word in link.asked:
            await self._deed(link)
            return
        reader, writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        head, _, body = link.asked.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        writer.write(b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body)
        try:
            while data := await reader.read(1 << 16):
                await link.say(data)
        finally:
            writer.close()
            link.close()


OPENING, CALLING = b"POST", b'"tools/call"'
JSON_RPC = b'{"jsonrpc":"2.0","id":9999,"result":{}}'
AWAY = "mcp_unavailable"

MCP = [
    ("closes at once", OPENING, closes(), AWAY),
    ("resets at once", OPENING, resets(), AWAY),
    ("speaks no HTTP", OPENING, closes(b"\x16\x03\x01\x02\x00\r\n\r\n"), AWAY),
    ("answers in HTML", OPENING, says(PAGE, HTML), AWAY),
    ("answers somebody else", OPENING, answering_json(JSON_RPC), AWAY),
    ("hangs", OPENING, stalls(), AWAY),
    ("closes amid a call", CALLING, closes(), AWAY),
    ("resets amid a call", CALLING, resets(HEAD[:20]), AWAY),
    ("cuts its answer short", CALLING, closes(SIZED % 500, b'{"jsonrpc"'), AWAY),
    ("resets amid its answer", CALLING, resets(SIZED % 500, b'{"jsonrpc"'), AWAY),
    ("answers a call in HTML", CALLING, says(PAGE, HTML), "mcp_error"),
    ("answers a call with garbage", CALLING, answering_json(b"{{{"), "mcp_error"),
    ("hangs amid a call", CALLING, stalls(), "timeout"),
    ("hangs amid its answer", CALLING, stalls(STREAM), "timeout"),
    ("streams for ever", CALLING, pours(STREAM, again=piece(b": still painting\n\n")), "timeout"),
    (
        "sends an event without an end",
        CALLING,
        pours(STREAM, again=piece(b"data: " + b"A" * 65536)),
        "image_too_large",
    ),
]


@pytest.mark.parametrize("front", [served, mounted])
@pytest.mark.parametrize(("name", "word", "deed", "code"), MCP, ids=[fault[0] for fault in MCP])
async def test_a_fault_of_an_mcp_server_fails_one_picture(
    front: Front, name: str, word: bytes, deed: Deed, code: str
) -> None:
    with serve(official.http_app(Studio())) as target:
        relay = Relay(deed, word, target)
        wire = FaultyServer(otherwise=relay)
        await wire.listen()
        # What hangs while a session begins holds up all calls until that is given up.
        limit = "backend_timeout" if word == OPENING else "call_timeout"
        patience = PATIENCE if word == OPENING else 2 * MOMENT
        limits = {limit: patience} if "hangs" in name or "for ever" in name or "somebody" in name else {}
        settings = {"backend_url": f"{wire.url}/mcp", "max_image": 1 << 20, **limits}
        async with aclosing(wire), faulty_world(front, "mcp", counts=False, **settings) as world:
            client = await world.ask()
            assert client.verdict() == "completed 0"
            assert failure(client) == code
            relay.faulty = False
            await world.is_well()
    tried("an MCP server")
