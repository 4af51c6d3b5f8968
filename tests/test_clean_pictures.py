"""What a client gets of a picture file: never a program, and no prompt that a backend wrote into it."""

from __future__ import annotations

import base64
import io
from typing import Any

import PIL.Image
import pytest
from asgi import Client, ask, draw, middleware
from imagecall.middleware.backends.base import Image, ImageRequest, OnPartial
from imagecall.middleware.backends.scene import CREDIT, SceneBackend
from model_server import HOSTED, KITE_TURNS, ModelServer
from picture_files import encoded, noise
from PIL.PngImagePlugin import PngInfo
from rules import check_stream, read_events

SECRET = "a secret workflow"


def told(side: int = 64, turned: int = 0) -> bytes:
    """Make a PNG with a workflow in it."""
    text = PngInfo()
    text.add_text("workflow", SECRET)
    return encoded(noise().resize((side, side)).rotate(turned), "PNG", pnginfo=text)


class Showing:
    """A backend that shows `previews` and makes `made`."""

    def __init__(self, made: bytes | Image, *previews: bytes | Image) -> None:
        self._made = made
        self._previews = previews

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes | Image:
        for preview in self._previews:
            await on_partial(preview)
        return self._made


async def shown(backend: Any, wants: Any = None, **settings: Any) -> tuple[Client, list[bytes]]:
    """Ask for a picture; return its previews and itself, decoded."""
    tools = [{**HOSTED, "partial_images": 3, **(wants or {})}]
    client = await ask(middleware(ModelServer(*KITE_TURNS), backend, **settings), draw(tools=tools))
    assert check_stream(client.body, tools=tools) == []
    events = read_events(client.body)
    previews = [event["partial_image_b64"] for event in events if "partial_image_b64" in event]
    [result] = [item["result"] for item in events[-1]["response"]["output"] if "result" in item]
    return client, [base64.b64decode(one) for one in (*previews, result)]


@pytest.mark.parametrize("side", [64, 1024], ids=["small", "large"])
async def test_prompts_and_workflows_are_taken_out_of_pictures_and_previews(side: int) -> None:
    made, unfinished = told(side), told(side, turned=90)
    for result in (made, Image(made, "png", side, side)):
        _, files = await shown(Showing(result, unfinished))
        for file, before in zip(files, (unfinished, made), strict=True):
            assert SECRET.encode() in before
            assert SECRET.encode() not in file
            assert PIL.Image.open(io.BytesIO(file)).tobytes() == PIL.Image.open(io.BytesIO(before)).tobytes()


async def test_another_format_brings_no_metadata_back() -> None:
    _, [file] = await shown(Showing(told()), {"output_format": "webp"})
    assert file[8:12] == b"WEBP"
    assert SECRET.encode() not in file


async def test_who_runs_the_middleware_may_keep_the_metadata() -> None:
    made, unfinished = told(), told(turned=90)
    _, files = await shown(Showing(made, unfinished), keep_metadata=True)
    assert files == [unfinished, made]


async def test_a_backend_may_say_that_its_metadata_is_meant_for_the_client() -> None:
    made, first, second = (
        Image(told(turned=turned), "png", 64, 64, keep_metadata=True) for turned in (0, 90, 180)
    )
    _, files = await shown(Showing(made, first, second.data))
    assert [SECRET.encode() in file for file in files] == [True, False, True]


@pytest.mark.parametrize("output_format", ["png", "jpeg", "webp"])
async def test_the_scene_says_in_every_file_what_it_is(output_format: str) -> None:
    _, files = await shown(SceneBackend(), {"output_format": output_format, "size": "128x128"})
    assert len(files) == 4
    assert all(CREDIT.encode() in file for file in files)


@pytest.mark.parametrize(
    "program",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<!doctype html><script>alert(1)</script>",
        b"%PDF-1.7",
    ],
)
@pytest.mark.parametrize("output_format", ["svg", "png"])
async def test_a_program_is_never_handed_on_as_a_picture(program: bytes, output_format: str) -> None:
    claimed = Image(program, "png", 64, 64, keep_metadata=True)
    for made in (program, claimed):
        client, files = await shown(
            Showing(made, program, claimed), {"output_format": output_format}, keep_metadata=True
        )
        assert files == [b""]
        assert base64.b64encode(program) not in client.body
        item = read_events(client.body)[-1]["response"]["output"][0]
        assert (item["status"], item["error"]["code"]) == ("failed", "not_an_image")
