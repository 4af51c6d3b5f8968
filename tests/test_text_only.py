"""A model that cannot see, and requests with pictures."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from imagecall.events.wire import dumps
from imagecall.middleware.embedded.text_only import TextOnly
from imagecall.middleware.local import lifespan, post
from model_server import ModelServer, saying
from starlette.types import Receive, Scope, Send

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
WORDS = {"type": "input_text", "text": "Make it red."}


def message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "input": [{"role": "user", "content": [*content]}], "tools": []}


async def seen(body: bytes, *headers: tuple[bytes, bytes]) -> Any:
    """Ask through it; return what the model server got."""
    server = ModelServer(saying("Done."))
    answer = await post(TextOnly(server), "/v1/responses", body, headers=[*headers])
    assert answer.status == 200
    (asked,) = server.asked
    assert asked.headers[b"content-length"] == str(len(asked.body)).encode()
    return asked


async def test_pictures_are_left_out_and_the_words_stay() -> None:
    asked = await seen(dumps(message(WORDS, PICTURE)))
    assert asked.json == message(WORDS)


async def test_a_message_of_nothing_but_pictures_says_that_there_was_one() -> None:
    asked = await seen(dumps(message(PICTURE, PICTURE)))
    assert asked.json == message({"type": "input_text", "text": "(a picture)"})


async def test_a_compressed_request_arrives_plain() -> None:
    body = gzip.compress(dumps(message(WORDS, PICTURE)))
    asked = await seen(body, (b"content-encoding", b"gzip"))
    assert asked.json == message(WORDS)
    assert b"content-encoding" not in asked.headers


@pytest.mark.parametrize("body", [b'{"input": "no picture" }', b'{"input_image": '])
async def test_other_requests_pass_as_they_are(body: bytes) -> None:
    assert (await seen(body)).body == body


async def test_other_scopes_pass_as_they_are() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})

    async with lifespan(TextOnly(app)):
        pass
    get: Scope = {"type": "http", "method": "GET"}
    await TextOnly(app)(get, _unused, _unused)
    assert [scope["type"] for scope in scopes] == ["lifespan", "http"]
    assert scopes[1] is get


async def _unused(*_: Any) -> Any:
    raise AssertionError("nobody asks for this")
