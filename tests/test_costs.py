"""What an event and a picture may cost, counted and not timed."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import random
import tracemalloc

import pytest
from asgi import conversation, draw, middleware, post
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from model_server import JSON, KITE_TURNS, Answer, ModelServer, saying, whole
from PIL import Image
from starlette.types import Message
from ways import parsed_deltas

_SIDE = 1_000


class _Noise:
    """A painter of one picture that cannot be compressed."""

    def __init__(self) -> None:
        noise = Image.frombytes("RGB", (_SIDE, _SIDE), random.Random(1).randbytes(_SIDE * _SIDE * 3))
        with io.BytesIO() as file:
            noise.save(file, "PNG")
            self.picture = file.getvalue()

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        return self.picture


@pytest.mark.lanes
async def test_each_chunk_of_a_text_is_one_send_and_none_but_the_first_is_parsed() -> None:
    words = [f" word{count}" for count in range(200)]
    turn = saying(*words)
    with parsed_deltas() as parsed:
        async with conversation(middleware(ModelServer(turn), _Noise()), draw()) as client:
            await client.heard_all()
    bodies = [message["body"] for message in client.messages if message["type"] == "http.response.body"]
    # `in_progress` left with `created`, and the empty message ends the body.
    assert len(bodies) == len(turn) - 1 + 1
    assert len(parsed) == 1
    deltas = {id(frame) for frame in turn if b"output_text.delta" in frame}
    assert len({id(body) for body in bodies} & deltas) == len(words), "the very bytes that came"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_picture_is_held_twice_at_most_and_never_copied_needlessly(stream: bool) -> None:
    painter = _Noise()
    size = len(base64.b64encode(painter.picture))
    app = middleware(ModelServer(*(KITE_TURNS if stream else _whole_turns())), painter, store="none")
    said = [{"type": "http.request", "body": json.dumps(draw(stream=stream)).encode(), "more_body": False}]
    received = 0
    ended = asyncio.Event()

    async def receive() -> Message:
        if said:
            return said.pop()
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal received
        received += len(message.get("body", b""))

    tracemalloc.start()
    try:
        await app(post(), receive, send)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        ended.set()
        tracemalloc.stop()
    assert received > size
    assert peak <= 2.2 * size


def _whole_turns() -> tuple[Answer, ...]:
    return tuple(Answer([whole(turn)], headers=[*JSON]) for turn in KITE_TURNS)
