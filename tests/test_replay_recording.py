"""A recorded exchange is translated again to the same bytes, whatever the timing was."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from imagecall.middleware.asgi import ImageGenerationMiddleware
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest, OnPartial
from imagecall.middleware.images import read_image
from imagecall.middleware.local import post
from imagecall.middleware.recorded import RecordedOrder
from imagecall.middleware.recording import replay_recording
from imagecall.middleware.replay import RecordedTurn, Recorder, Recording, ReplayApp, frame_by_frame
from loopback import ask, body_of, http_scope
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
        white = read_image(png("white"), max_bytes=10_000, max_pixels=10_000)
        await on_partial(replace(white, quality="medium"))
        picture = read_image(png(request.prompt), max_bytes=10_000, max_pixels=10_000)
        return replace(picture, revised_prompt=f"a {request.prompt} square", quality="low", usage=self._usage)


def told(phase: str, index: int) -> re.Pattern[bytes]:
    """Match an event of the picture that is the response's output number `index`."""
    return re.compile(rb'_call\.%b",[^\n]*"output_index":%d,' % (phase.encode(), index))


class Server:
    """A model server that holds some of its pieces back until the client has heard of a picture."""

    def __init__(self, holds: dict[bytes, re.Pattern[bytes]]) -> None:
        self._heard = b""
        self._holds = holds
        self._moved = asyncio.Event()
        self._app = ReplayApp(TURNS, chunks=frame_by_frame)

    def hear(self, _status: int, piece: bytes) -> None:
        self._heard += piece
        self._moved.set()

    async def until(self, words: re.Pattern[bytes]) -> None:
        while not words.search(self._heard):
            self._moved.clear()
            await self._moved.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def held(message: Message) -> None:
            for piece, words in self._holds.items():
                if piece in message.get("body", b""):
                    await self.until(words)
            await send(message)

        await self._app(scope, receive, held)


Play = Callable[[Server, Painter], Awaitable[None]]


async def at_once(server: Server, painter: Painter) -> None:
    for permission in painter.may_paint.values():
        permission.set()


async def late_and_the_last_first(server: Server, painter: Painter) -> None:
    await server.until(told("generating", 2))
    painter.may_paint["blue"].set()
    await server.until(told("completed", 2))
    painter.may_paint["red"].set()
    await server.until(told("generating", 5))
    painter.may_paint["green"].set()


async def record(
    play: Play = at_once,
    holds: dict[bytes, re.Pattern[bytes]] | None = None,
    usage: dict[str, Any] | None = None,
    **more: Any,
) -> Recording:
    """Have a live exchange and record it."""
    server, painter = Server(holds or {}), Painter(usage)
    recorder = Recorder(server)
    app = ImageGenerationMiddleware(recorder, painter)
    request = {**REQUEST, **more}
    async with asyncio.TaskGroup() as group:
        group.create_task(play(server, painter))
        answer = await post(app, "/v1/responses", json.dumps(request).encode(), on_bytes=server.hear)
    assert recorder.turns == TURNS
    return Recording(request, tuple(TURNS), answer.body)


@pytest.mark.parametrize(
    ("play", "holds"),
    [
        (at_once, {}),
        (at_once, {b'"delta": "One "': told("completed", 0)}),
        (at_once, {b'"delta": "moment."': told("partial_image", 0), b'"id": "fc_3"': told("completed", 2)}),
        (late_and_the_last_first, {}),
    ],
    ids=["by chance", "before the text", "amid the text", "late and the last first"],
)
async def test_a_replay_is_the_recorded_stream_whenever_the_pictures_came(
    play: Play, holds: dict[bytes, re.Pattern[bytes]]
) -> None:
    recording = await record(play, holds, {"total_tokens": 7})
    for _ in range(3):
        assert await asyncio.to_thread(replay_recording, recording) == recording.client


async def test_a_json_answer_is_replayed_too() -> None:
    recording = await record(usage={"total_tokens": 7}, stream=False)
    response = json.loads(recording.client)
    assert response["tool_usage"]["image_gen"]["total_tokens"] == 14
    assert await asyncio.to_thread(replay_recording, recording) == recording.client


async def test_a_replay_that_differs_ends_and_shows_how() -> None:
    recording = await record()
    other = replace(recording, client=recording.client.replace(b'"moment."', b'"minute."'))
    assert await asyncio.to_thread(replay_recording, other) == recording.client
    fewer = replace(recording, turns=recording.turns[1:])
    replayed = await asyncio.to_thread(replay_recording, fewer)
    assert replayed != recording.client
    assert replayed.count(b"event: response.completed\n") == 1


async def before_the_first_preview() -> RecordedOrder:
    recording = await record(late_and_the_last_first)
    order = RecordedOrder(recording, patience=0.01)
    before = recording.client.index(b"event: response.image_generation_call.partial_image")
    order.sent(200, recording.client[:before])
    return order


async def test_a_picture_that_never_begins_holds_nobody_up() -> None:
    order = await before_the_first_preview()
    messages = await ask(order.pace(ReplayApp(TURNS)), http_scope(), b"{}")
    assert body_of(messages) == TURNS[0].body


async def test_the_order_is_given_up_when_everybody_waits() -> None:
    order = await before_the_first_preview()
    await order.picture("ig_of_another_stream")
    with pytest.raises(StopIteration):  # the next one does not wait at all
        order.picture("ig_of_a_third").send(None)
