"""Answers that come as events: previews in order, the finished picture, errors in the midst."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from images_api import b64
from loopback import STREAM, answering, piece, raw_server, read_request
from painters import png
from painting import opened
from picture_files import encoded, noise
from waiting import Clock, settle

KITE = png("a kite")
WANTED = ImageRequest("a kite", partial_images=2)


def event(kind: str | None = None, name: str | None = None, **payload: Any) -> bytes:
    if kind is not None:
        payload["type"] = kind
    line = f"event: {name or kind}\n".encode() if name or kind else b""
    return line + b"data: " + json.dumps(payload).encode() + b"\n\n"


def preview(prompt: str, **more: Any) -> bytes:
    return event("image_generation.partial_image", b64_json=b64(png(prompt)), **more)


DONE = event("image_generation.completed", b64_json=b64(KITE))


async def read(
    *events: bytes, request: ImageRequest = WANTED, end: bytes = piece(b""), **settings: Any
) -> tuple[Image, Sequence[Image | bytes]]:
    """Let a server answer with these events; give the picture and what was shown before."""
    shown: list[Image | bytes] = []

    async def show(one: Image | bytes) -> None:
        shown.append(one)

    body = b"".join(events)
    async with raw_server(answering(STREAM + piece(body) + end)) as url, opened(url, **settings) as backend:
        return await backend.generate(request, show), shown


async def failing(*events: bytes, **how: Any) -> ImageError:
    with pytest.raises(ImageError) as caught:
        await read(*events, **how)
    return caught.value


async def test_previews_come_before_the_picture_and_are_no_more_than_were_asked_for() -> None:
    events = [preview("one"), preview("two"), preview("three"), DONE]
    image, shown = await read(*events)
    assert (image.data, shown) == (KITE, [png("one"), png("two")])
    image, shown = await read(*events, request=ImageRequest("a kite"))
    assert (image.data, shown) == (KITE, [])


@pytest.mark.parametrize(
    "frames",
    [
        [preview("one"), DONE],
        [
            event("image_edit.partial_image", b64_json=b64(png("one"))),
            event("image_edit.completed", b64_json=b64(KITE)),
        ],
        [
            event(None, name="image_generation.partial_image", b64_json=b64(png("one"))),
            event(None, name="image_generation.completed", b64_json=b64(KITE)),
        ],
        [
            b": hello\r\n",
            preview("one").replace(b"\n", b"\r\n"),
            event("heartbeat"),
            event(None, data=[{"b64_json": b64(KITE)}]),
        ],
        [preview("one"), b"data: [DONE]\n\n", b"data: 1\n\n", DONE[:-2]],
    ],
    ids=[
        "generation",
        "edit",
        "named by the event line",
        "a whole answer as an event",
        "noise and no last line",
    ],
)
async def test_events_are_read_however_they_are_written(frames: list[bytes]) -> None:
    image, shown = await read(*frames)
    assert (image.data, shown) == (KITE, [png("one")])


async def test_what_comes_after_the_picture_is_of_no_interest() -> None:
    image, _ = await read(DONE, event("error", error={"message": "late"}), end=b"")
    assert image.data == KITE


async def test_a_picture_in_a_stream_brings_its_facts() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": None, "total_tokens": 3}
    image, _ = await read(
        event(
            "image_generation.completed",
            b64_json=f"data:image/png;base64,{b64(KITE)}",
            quality="low",
            usage=usage,
            revised_prompt="a red kite",
        )
    )
    assert (image.quality, image.revised_prompt) == ("low", "a red kite")
    assert image.usage == {"input_tokens": 3, "total_tokens": 3}


async def test_a_broken_preview_is_dropped_and_the_picture_is_not() -> None:
    broken = event("image_generation.partial_image", b64_json="?")
    empty = event("image_generation.partial_image")
    image, shown = await read(broken, empty, preview("one"), DONE)
    assert (image.data, shown) == (KITE, [png("one")])


BLOCKED = {
    "code": "moderation_blocked",
    "message": "Your request was rejected by the safety system.",
    "type": "image_generation_user_error",
    "moderation_details": {"moderation_stage": "output", "categories": ["violence"]},
}


@pytest.mark.parametrize(
    "frame",
    [
        event("error", error=BLOCKED),
        event(None, error=BLOCKED),
        event(None, name="error", error=BLOCKED),
        event("error", **{key: value for key, value in BLOCKED.items() if key != "type"}),
        event("image_generation.completed", error=BLOCKED),
    ],
    ids=["named", "data only", "by the event line", "flat", "inside another"],
)
async def test_an_error_in_the_stream_fails_the_call(frame: bytes) -> None:
    error = await failing(preview("one"), frame, DONE)
    assert (error.code, error.message) == ("moderation_blocked", BLOCKED["message"])
    assert error.details == {"moderation_details": BLOCKED["moderation_details"]}


async def test_an_error_in_the_stream_may_be_mere_words() -> None:
    error = await failing(b"event: error\ndata: out of memory\n\n", DONE)
    assert (error.code, error.message) == ("image_backend_error", "The image server failed: out of memory")
    error = await failing(event("server_error", name="error", message="out of memory"), DONE)
    assert (error.type, error.message) == ("server_error", "The image server failed: out of memory")
    error = await failing(event(None, error="rate limited", code="rate_limit_exceeded"), DONE)
    assert (error.code, error.message) == ("rate_limit_exceeded", "The image server failed: rate limited")


@pytest.mark.parametrize(
    "frames",
    [
        [b": nothing\n\n"],
        [preview("one"), preview("two")],
        [event("image_generation.completed"), event(None, data=[])],
    ],
    ids=["nothing", "previews only", "no picture in it"],
)
async def test_a_stream_without_a_picture_fails_and_no_preview_stands_in(frames: list[bytes]) -> None:
    error = await failing(*frames)
    assert (error.code, error.message) == ("no_image", "The image server's stream ended without a picture.")


async def test_a_stream_that_breaks_off_fails_and_is_not_asked_for_again() -> None:
    requests: list[bytes] = []

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(STREAM + piece(preview("one")))
        await writer.drain()

    async with raw_server(cut) as url, opened(url) as backend:
        with pytest.raises(ImageError, match="broke off") as caught:
            await backend.generate(ImageRequest("a kite"), _unwanted)
    assert (caught.value.code, len(requests)) == ("image_backend_cut", 1)


async def _unwanted(_: object) -> None:
    raise AssertionError


async def test_an_event_without_end_is_given_up() -> None:
    endless = b"data: " + b"x" * 1_200_000
    error = await failing(endless, max_bytes=1_000)
    assert (error.code, error.message) == (
        "image_too_large",
        "An event of the image server is longer than a picture of the 1,000 bytes that max_image allows.",
    )


async def test_a_picture_of_eight_megabytes_in_one_line_comes_through() -> None:
    data = encoded(noise().resize((1700, 1700)), "PNG", compress_level=0)
    assert len(data) > 8_000_000
    large = event("image_generation.partial_image", b64_json=b64(data))
    image, shown = await read(large, event("image_generation.completed", b64_json=b64(data)))
    assert (image.data, shown) == (data, [data])
    assert (image.width, image.height) == (1700, 1700)


@asynccontextmanager
async def painting(answer: bytes) -> AsyncIterator[tuple[OpenAIImagesBackend, asyncio.TaskGroup]]:
    """Open a backend that has a minute, in front of a server that gives one answer."""
    server = raw_server(answering(answer))
    async with server as url, opened(url, timeout=60) as backend, asyncio.TaskGroup() as group:
        yield backend, group


async def test_a_slow_client_uses_up_none_of_the_servers_time() -> None:
    clock = Clock()
    entered, may_go_on = asyncio.Event(), asyncio.Event()

    async def show(_: object) -> None:
        entered.set()
        await may_go_on.wait()

    body = STREAM + piece(preview("one") + DONE)
    async with painting(body) as (backend, group):
        task = group.create_task(backend.generate(WANTED, show))
        await entered.wait()
        await clock.forward(1_000)
        assert not task.done()
        may_go_on.set()
        assert (await task).data == KITE


async def test_a_server_that_falls_silent_is_given_up_in_time() -> None:
    clock = Clock()
    shown = asyncio.Event()

    async def show(_: object) -> None:
        shown.set()

    body = STREAM + piece(preview("one"))
    async with painting(body) as (backend, group):
        task = group.create_task(_caught(backend.generate(WANTED, show)))
        await shown.wait()
        await settle()
        await clock.forward(61)
        error = await task
    assert (error.code, error.message) == (
        "timeout",
        "The image server made no picture within the 60 seconds that backend_timeout allows.",
    )


async def test_a_timeout_of_the_clients_own_stays_one() -> None:
    async def show(_: object) -> None:
        raise TimeoutError

    body = STREAM + piece(preview("one") + DONE)
    async with raw_server(answering(body)) as url, opened(url) as backend:
        with pytest.raises(TimeoutError):
            await backend.generate(WANTED, show)


async def _caught(making: Any) -> ImageError:
    with pytest.raises(ImageError) as caught:
        await making
    return caught.value
