"""Making the pictures: what a backend gets, what becomes of what it gives, and how it may fail."""

from __future__ import annotations

import base64
import io
import logging
import random
from typing import Any

import PIL.Image
import pytest
from asgi import ask, draw, middleware
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest, OnPartial
from kite import KITE, SAID, kite_stream, usage
from model_server import HOSTED, KITE_TURNS, ModelServer, calling, saying
from painters import Painter, png, raising
from rules import check_stream, read_events

EXPECTED = kite_stream(spent=usage(200, 20))


def picture(output_format: str = "png", size: tuple[int, int] = (48, 32), **options: Any) -> bytes:
    file = io.BytesIO()
    PIL.Image.new("RGB", size, "teal").save(file, output_format, **options)
    return file.getvalue()


async def painted(backend: Any, *, tool: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """Have one picture made; return its item, after the whole stream was checked."""
    tools = [tool or HOSTED]
    client = await ask(middleware(ModelServer(*KITE_TURNS), backend, **settings), draw(tools=tools))
    assert check_stream(client.body, tools=tools, tool_choice="auto") == []
    item: dict[str, Any]
    item, said = read_events(client.body)[-1]["response"]["output"]
    assert said["content"][0]["text"] == "".join(SAID)
    return item


# -- what goes in and what comes out ---------------------------------------------------------------


async def test_a_backend_gets_what_the_client_and_the_model_have_decided() -> None:
    painter = Painter()
    tool = {
        **HOSTED,
        "model": "flux",
        "size": "1536x1024",
        "quality": "high",
        "background": "opaque",
        "output_format": "webp",
        "output_compression": 50,
        "moderation": "low",
        "input_fidelity": "high",
        "partial_images": 1,
        "style": "oil",
    }
    await painted(painter, tool=tool)
    assert painter.asked == [
        ImageRequest(
            prompt=KITE,
            model="flux",
            size="1536x1024",
            quality="high",
            background="opaque",
            output_format="webp",
            output_compression=50,
            moderation="low",
            input_fidelity="high",
            partial_images=1,
            extra={"style": "oil"},
        )
    ]


async def test_the_item_tells_what_the_bytes_are_and_what_the_backend_adds() -> None:
    spent = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    claimed = Image(
        picture(size=(64, 40)),
        "webp",
        1024,
        1024,
        transparent=True,
        revised_prompt="a scarlet kite",
        quality="high",
        usage=spent,
    )
    client = await ask(
        middleware(ModelServer(*KITE_TURNS), Painter(makes=lambda _: claimed)),
        draw(tools=[{**HOSTED, "size": "1024x1024"}]),
    )
    final = read_events(client.body)[-1]["response"]
    assert final["output"][0] == {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "completed",
        "revised_prompt": "a scarlet kite",
        "action": "generate",
        "background": "opaque",
        "output_format": "png",
        "quality": "high",
        "size": "64x40",
        "result": base64.b64encode(claimed.data).decode(),
    }
    assert final["tool_usage"]["image_gen"]["total_tokens"] == 7


async def test_a_client_gets_the_format_it_asked_for() -> None:
    item = await painted(Painter(), tool={**HOSTED, "output_format": "jpeg"})
    assert item["output_format"] == "jpeg"
    assert base64.b64decode(item["result"]).startswith(b"\xff\xd8\xff")


async def test_a_large_picture_is_the_same_picture() -> None:
    noise = PIL.Image.frombytes("RGB", (700, 600), random.Random(2).randbytes(700 * 600 * 3))
    file = io.BytesIO()
    noise.save(file, "png", compress_level=0)
    assert len(file.getvalue()) > 1 << 20
    item = await painted(Painter(makes=lambda _: file.getvalue()))
    assert base64.b64decode(item["result"]) == file.getvalue()


async def test_more_previews_than_were_asked_for_go_nowhere() -> None:
    class Eager:
        async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
            for count in range(5):
                await on_partial(Image(png(f"preview {count}"), "png", 48, 32))
            return png(request.prompt)

    client = await ask(
        middleware(ModelServer(*KITE_TURNS), Eager()), draw(tools=[{**HOSTED, "partial_images": 2}])
    )
    assert client.body.count(b"event: response.image_generation_call.partial_image\n") == 2
    assert check_stream(client.body, tools=[{**HOSTED, "partial_images": 2}]) == []


async def test_a_broken_preview_is_dropped_and_the_picture_completes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Clumsy:
        async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
            await on_partial(b"")
            await on_partial(png("preview"))
            return png(request.prompt)

    caplog.set_level(logging.INFO, "imagecall")
    client = await ask(
        middleware(ModelServer(*KITE_TURNS), Clumsy()), draw(tools=[{**HOSTED, "partial_images": 3}])
    )
    assert client.body.count(b"event: response.image_generation_call.partial_image\n") == 1
    assert read_events(client.body)[-1]["response"]["output"] == EXPECTED[-1]["response"]["output"]
    assert "ig_1: a preview was dropped: not_an_image" in caplog.messages


# -- logs ------------------------------------------------------------------------------------------


async def test_logs_tell_what_became_of_each_picture_and_never_what_it_shows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def make(prompt: str) -> bytes:
        if prompt == KITE:
            return png(prompt)
        raise RuntimeError(f"cannot draw {prompt} at http://painter/?key=s3cret")

    caplog.set_level(logging.INFO)
    server = ModelServer(calling(KITE, "a purple dragon"), saying("Done."))
    client = await ask(middleware(server, Painter(makes=make)), draw(tools=[{**HOSTED, "partial_images": 1}]))
    messages = [message for message in caplog.messages if not message.startswith("response ")]
    assert messages == [
        "ig_2 failed: the image backend raised RuntimeError",
        "ig_1 is finished: [image png 48x32 0.0 MB]",
    ] or messages == [
        "ig_1 is finished: [image png 48x32 0.0 MB]",
        "ig_2 failed: the image backend raised RuntimeError",
    ]
    for secret in (KITE, "dragon", "s3cret", base64.b64encode(png(KITE)).decode()[:40], "Draw a kite"):
        assert secret not in caplog.text
    assert base64.b64encode(png(KITE)) in client.body


async def test_at_debug_level_a_backends_own_words_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "imagecall")
    await painted(raising(RuntimeError("out of paint")))
    assert "out of paint" in caplog.text
    await painted(raising(ImageError("out of canvas", code="no_canvas")))
    logged = [(record.levelname, record.message) for record in caplog.records if "canvas" in record.message]
    assert logged == [("INFO", "ig_1 failed: no_canvas"), ("DEBUG", "ig_1 failed: out of canvas")]
