"""Reading the client's request body: within a limit, decoded, and given back as it came."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import deque
from typing import Any

import pytest
from asgi import ask, draw, middleware, post
from imagecall.events.errors import RequestError
from imagecall.middleware.body import RequestBody, read_body
from kite import kite_stream, usage
from model_server import KITE_TURNS, ModelServer
from painters import Painter
from rules import read_events
from starlette.types import Message, Receive

TEXT = b'{"input": "ig_1"}'


def scripted(*messages: Message) -> tuple[Receive, deque[Message]]:
    left = deque(messages)

    async def receive() -> Message:
        return left.popleft()

    return receive, left


def piece(body: bytes, *, more_body: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more_body}


async def read(body: bytes, encoding: bytes, limit: int = 1000) -> RequestBody:
    receive, _ = scripted(piece(body))
    return await read_body(post(headers=[(b"content-encoding", encoding)]), receive, limit)


async def test_a_body_is_the_sum_of_its_messages_and_can_be_given_back_unread() -> None:
    messages = [
        piece(TEXT[:5], more_body=True),
        {"type": "http.request", "more_body": True},
        {"type": "http.request", "body": TEXT[5:]},
    ]
    receive, left = scripted(*messages, {"type": "http.disconnect"})
    body = await read_body(post(), receive, 1000)
    assert body == RequestBody(messages, TEXT)
    assert len(left) == 1
    again = body.replay(receive)
    replayed = [await again() for _ in range(4)]
    assert replayed == [*messages, {"type": "http.disconnect"}]
    assert all(one is other for one, other in zip(replayed, messages, strict=False))


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        (b"", TEXT),
        (b"identity", TEXT),
        (b"gzip", gzip.compress(TEXT)),
        (b"GZIP", gzip.compress(TEXT)),
        (b"x-gzip", gzip.compress(TEXT)),
        (b"deflate", zlib.compress(TEXT)),
        (b"deflate", bare(TEXT)),
    ],
    ids=["none", "identity", "gzip", "in capitals", "x-gzip", "zlib", "bare deflate"],
)
async def test_a_body_is_decoded(encoding: bytes, data: bytes) -> None:
    assert (await read(data, encoding)).data == TEXT


async def test_codings_that_change_nothing_do_not_count() -> None:
    receive, _ = scripted(piece(gzip.compress(TEXT)))
    headers = [(b"content-encoding", b"identity,, gzip"), (b"content-encoding", b"")]
    assert (await read_body(post(headers=headers), receive, 1000)).data == TEXT
    assert (await read(b"", b"gzip")).data == b""


@pytest.mark.parametrize(
    "encodings", [[b"br"], [b"zstd"], [b"gzip, gzip"], [b"identity", b"br"], [b"gzip", b"gzip"], [b"\xff"]]
)
async def test_a_body_in_another_coding_is_not_even_read(encodings: list[bytes]) -> None:
    receive, left = scripted(piece(TEXT))
    scope = post(headers=[(b"content-encoding", encoding) for encoding in encodings])
    with pytest.raises(RequestError, match="Content-Encoding is not read here") as caught:
        await read_body(scope, receive, 1000)
    assert (caught.value.status, len(left)) == (415, 1)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [(b"gzip", TEXT), (b"gzip", gzip.compress(TEXT)[:-4]), (b"deflate", b"\xff" * 20)],
    ids=["not compressed", "cut off", "broken"],
)
async def test_a_body_that_is_not_coded_as_it_says_is_refused(encoding: bytes, data: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        await read(data, encoding)
    assert caught.value.status == 400
    assert caught.value.message == (
        f"The request body is not the {encoding.decode()} that its Content-Encoding says."
    )


async def test_all_members_of_a_gzip_body_count() -> None:
    packed = gzip.compress(TEXT[:5]) + gzip.compress(TEXT[5:])
    assert (await read(packed, b"gzip")).data == TEXT


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
async def test_a_body_that_unpacks_beyond_the_limit_is_refused(encoding: bytes) -> None:
    packed = {b"gzip": gzip.compress, b"deflate": zlib.compress}[encoding]
    assert (await read(packed(bytes(1000)), encoding)).data == bytes(1000)
    with pytest.raises(RequestError, match="larger than the 1000 bytes") as caught:
        await read(packed(bytes(1001)), encoding)
    assert caught.value.status == 413


@pytest.mark.parametrize("length", [b"1001", b"9" * 5000])
async def test_a_body_that_is_said_to_be_too_long_is_not_even_read(length: bytes) -> None:
    receive, left = scripted(piece(TEXT))
    with pytest.raises(RequestError) as caught:
        await read_body(post(headers=[(b"content-length", length)]), receive, 1000)
    assert (caught.value.status, len(left)) == (413, 1)


async def test_a_body_is_read_no_further_than_its_limit() -> None:
    endless = [piece(bytes(400), more_body=True)] * 9
    receive, left = scripted(*endless)
    with pytest.raises(RequestError) as caught:
        await read_body(post(headers=[(b"content-length", b"x")]), receive, 1000)
    assert (caught.value.status, len(left)) == (413, 6)


async def test_a_body_of_just_the_limit_is_taken() -> None:
    receive, _ = scripted(piece(bytes(600), more_body=True), piece(bytes(400)))
    body = await read_body(post(headers=[(b"content-length", b"1000")]), receive, 1000)
    assert body.data == bytes(1000)


async def test_a_client_that_goes_away_in_the_midst_of_its_body_is_no_error() -> None:
    messages: list[Message] = [piece(TEXT, more_body=True), {"type": "http.disconnect"}]
    receive, _ = scripted(*messages)
    body = await read_body(post(), receive, 1000)
    assert body == RequestBody(messages, None)
    again = body.replay(receive)
    assert [await again(), await again()] == messages


# -- through the middleware ------------------------------------------------------------------------


async def test_a_compressed_request_is_ours_and_travels_on_uncompressed() -> None:
    server = ModelServer(*KITE_TURNS)
    packed = gzip.compress(json.dumps(draw()).encode())
    headers = [(b"content-encoding", b"gzip"), (b"content-length", str(len(packed)).encode())]
    client = await ask(middleware(server, Painter()), packed, post(headers=headers))
    assert read_events(client.body) == kite_stream(spent=usage(200, 20))
    first = server.asked[0]
    assert first.json["tools"][0]["type"] == "function"
    assert b"content-encoding" not in first.headers


@pytest.mark.parametrize(
    "how",
    [
        {"request": draw(), "scope": post(headers=[(b"content-length", b"101")])},
        {"request": draw(input="x" * 100)},
        {"request": gzip.compress(bytes(101)), "scope": post(headers=[(b"content-encoding", b"gzip")])},
    ],
    ids=["declared", "sent", "unpacked"],
)
async def test_a_body_beyond_the_limit_is_answered_with_413(how: dict[str, Any]) -> None:
    client = await ask(middleware(ModelServer(), Painter(), max_body=100), **how)
    assert client.status == 413
    assert client.json == {
        "error": {
            "message": "The request body is larger than the 100 bytes that max_body allows.",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
    }
