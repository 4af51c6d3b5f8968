"""A recorded exchange is translated again to the same bytes, whatever the timing was."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from imagecall.middleware.asgi import ImageGenerationMiddleware
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest, OnPartial
from imagecall.middleware.images import read_image
from imagecall.middleware.local import post
from imagecall.middleware.recorded import RecordedBackend, RecordedOrder, recorded_clock, recorded_ids
from imagecall.middleware.recording import replay_recording
from imagecall.middleware.replay import RecordedTurn, Recorder, Recording, ReplayApp, frame_by_frame
from PIL import Image as Canvas
from starlette.types import Message, Receive, Scope, Send
from transcript import Event, call, encode, event, message, number

REQUEST = {
    "model": "m",
    "input": "Draw.",
    "stream": True,
    "tools": [{"type": "image_generation", "partial_images": 2}],
}


def png(colour: str) -> bytes:
    file = io.BytesIO()
    Canvas.new("RGB", (16, 16), colour).save(file, "png")
    return file.getvalue()


def draw(index: int, prompt: str) -> list[Event]:
    arguments = json.dumps({"prompt": prompt})
    item = {
        "id": f"fc_{index}",
        "type": "function_call",
        "call_id": f"call_{index}",
        "name": "image_generation",
    }
    return call(index, {**item, "status": "completed", "arguments": arguments}, arguments)


def turn(*steps: list[Event], **response: Any) -> RecordedTurn:
    """Make a turn of a server that gives its response neither an id nor a time."""
    events = [event("created", response={}), *(step for steps_ in steps for step in steps_)]
    output = [step["item"] for step in events if step["type"] == "response.output_item.done"]
    events.append(event("completed", response={"status": "completed", "output": output, **response}))
    return RecordedTurn(encode(number(events)))


TURNS = [
    turn(draw(0, "red"), message(1, "msg_1", "One ", "moment."), draw(2, "blue"), draw(3, "")),
    turn(draw(0, "red"), draw(1, "green")),
    turn(message(0, "msg_1", "Here ", "they are.")),
]


class Painter:
    """Paints each prompt as soon as the test lets it."""

    def __init__(self, usage: dict[str, Any] | None = None) -> None:
        self.may_paint = {prompt: asyncio.Event() for prompt in ("red", "blue", "green")}
        self._usage = usage

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image:
        await self.may_paint[request.prompt].wait()
        if request.prompt == "green":
            raise ImageError(
                "No green paint.", code="moderation_blocked", details={"moderation_details": {"a": 1}}
            )
        await on_partial(png("grey"))
        await on_partial(png("white"))
        picture = read_image(png(request.prompt), max_bytes=10_000, max_pixels=10_000)
        return replace(picture, revised_prompt=f"a {request.prompt} square", quality="low", usage=self._usage)


class Paced:
    """A model server that holds its next piece back until the client has heard a certain word."""

    def __init__(self, holds: dict[bytes, bytes]) -> None:
        self.heard = b""
        self._holds = holds
        self._moved = asyncio.Event()
        self._app = ReplayApp(TURNS, chunks=frame_by_frame)

    def hear(self, _status: int, piece: bytes) -> None:
        self.heard += piece
        self._moved.set()

    async def until(self, word: bytes, times: int = 1) -> None:
        while self.heard.count(word) < times:
            self._moved.clear()
            await self._moved.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def held(piece: Message) -> None:
            for word in [word for word in self._holds if word in piece.get("body", b"")]:
                await self.until(self._holds.pop(word))
            await send(piece)

        await self._app(scope, receive, held)


Play = Callable[[Paced, Painter], Any]


async def at_once(server: Paced, painter: Painter) -> None:
    for event_ in painter.may_paint.values():
        event_.set()


async def late_and_the_last_first(server: Paced, painter: Painter) -> None:
    await server.until(b'call.generating","output_index":2')
    painter.may_paint["blue"].set()
    await server.until(b'call.completed","output_index":2')
    painter.may_paint["red"].set()
    await server.until(b'call.generating","output_index":5')
    painter.may_paint["green"].set()


async def record(
    play: Play, holds: dict[bytes, bytes], usage: dict[str, Any] | None = None, **more: Any
) -> Recording:
    server, painter = Paced(holds), Painter(usage)
    recorder = Recorder(server)
    app = ImageGenerationMiddleware(recorder, painter)
    request = {**REQUEST, **more}
    async with asyncio.TaskGroup() as group:
        playing = group.create_task(play(server, painter))
        answer = await post(app, "/v1/responses", json.dumps(request).encode(), on_bytes=server.hear)
        await playing
    return Recording(request, tuple(recorder.turns), answer.body)


RED_IS_DONE = b'call.completed","output_index":0'
HOLDS = [
    {},
    {b'"delta": "One "': RED_IS_DONE},
    {b'"delta": "moment."': b'partial_image","output_index":0', b'"id": "fc_2"': RED_IS_DONE},
]


@pytest.mark.parametrize("holds", HOLDS)
@pytest.mark.parametrize("play", [at_once, late_and_the_last_first])
async def test_a_replay_is_the_recorded_stream_whatever_came_first(
    play: Play, holds: dict[bytes, bytes]
) -> None:
    if play is late_and_the_last_first and holds:
        holds = {}
    recording = await record(play, dict(holds), {"total_tokens": 7})
    assert recording.turns == tuple(TURNS)
    for _ in range(3):
        assert await asyncio.to_thread(replay_recording, recording) == recording.client
