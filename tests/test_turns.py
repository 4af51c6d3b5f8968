"""What the inner application is told of each turn's request."""

from __future__ import annotations

import asyncio
import copy

from asgi import ask, conversation, draw, middleware, post
from imagecall.middleware.turns import TurnReader, turn_scope
from model_server import KITE_TURNS, Answer, ModelServer
from painters import Painter

_LENGTH = (b"content-length", b"7")
_PLAIN = (b"accept-encoding", b"identity")


def test_a_turns_scope_is_the_clients_but_for_the_body_and_ways_around_the_translator() -> None:
    scope = post(
        headers=[
            (b"content-length", b"900"),
            (b"transfer-encoding", b"chunked"),
            (b"content-encoding", b"gzip"),
            (b"accept-encoding", b"gzip, br"),
            (b"authorization", b"Bearer k"),
            (b"idempotency-key", b"k1"),
            (b"x-ms-oai-image-generation-deployment", b"gpt-image-1"),
            (b"x-twice", b"1"),
            (b"x-twice", b"2"),
        ],
        extensions={
            "http.response.pathsend": {},
            "http.response.zerocopysend": {},
            "http.response.trailers": {},
            "tls": {"server_cert": None},
        },
        state={"pool": object()},
    )
    before = copy.copy(scope)
    own = turn_scope(scope, 7, 1)
    assert own == {
        **scope,
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"authorization", b"Bearer k"),
            (b"idempotency-key", b"k1"),
            (b"x-twice", b"1"),
            (b"x-twice", b"2"),
            _LENGTH,
            _PLAIN,
        ],
        "extensions": {"tls": {"server_cert": None}},
    }
    assert scope == before
    assert own["state"] is not scope["state"]


def test_later_turns_have_an_idempotency_key_of_their_own() -> None:
    scope = post(headers=[(b"idempotency-key", b"k1")])
    keys = [dict(turn_scope(scope, 7, number)["headers"])[b"idempotency-key"] for number in (1, 2, 3)]
    assert keys == [b"k1", b"k1-2", b"k1-3"]


def test_a_scope_without_state_or_extensions_gets_none() -> None:
    scope = post()
    del scope["state"]
    assert turn_scope(scope, 7, 1).keys() == scope.keys()
    assert turn_scope(post(extensions=None), 7, 1)["extensions"] is None


async def test_each_turn_gets_a_state_of_its_own_and_a_true_content_length() -> None:
    server = ModelServer(*KITE_TURNS)
    scope = post(headers=[(b"content-length", b"5")], state={"from": "lifespan"})
    await ask(middleware(server, Painter()), draw(), scope)
    for asked in server.asked:
        assert asked.scope["state"] == {"from": "lifespan"}
        asked.scope["state"]["from"] = "elsewhere"
        assert asked.headers[b"content-length"] == str(len(asked.body)).encode()
    assert scope["state"] == {"from": "lifespan"}
    assert server.asked[0].scope["state"] is not server.asked[1].scope["state"]


async def test_the_inner_application_receives_its_body_once_and_then_waits() -> None:
    told = asyncio.Event()

    async def listen(receive: object, send: object) -> None:
        listening.append(asyncio.create_task(receive()))  # type: ignore[operator]  # `receive` is one
        await asyncio.sleep(0)
        assert not listening[0].done()
        told.set()

    listening: list[asyncio.Task[object]] = []
    server = ModelServer(Answer([*KITE_TURNS[1][:-1], listen, KITE_TURNS[1][-1]]))
    async with conversation(middleware(server, Painter()), draw()):
        await told.wait()
    assert await listening[0] == {"type": "http.disconnect"}


def test_retry_after_counts_in_seconds_only() -> None:
    reader = TurnReader(None, 2, 100)  # type: ignore[arg-type]  # a reader that refuses asks nobody
    told: list[float | None] = []
    for value in (b"3", b"0.5", b"-1", b"Wed, 21 Oct 2026 07:28:00 GMT"):
        reader.begin(429, [(b"Retry-After", value)])
        told.append(reader._retry_after())
    reader.begin(429, [])
    assert [*told, reader._retry_after()] == [3.0, 0.5, 0.0, None, None]
