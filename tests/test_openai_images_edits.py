"""Pictures to edit, on their way to servers of every dialect."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from image_servers import DIALECTS, Azure, LocalAI, OpenAI, RawBytes, SDServer
from imagecall.middleware.backends.base import ImageRequest
from images_api import KEY, File, ImagesAPI, Scripted, b64_json
from painters import png
from painting import opened, painted, refused
from picture_files import drawn, encoded, read

PICTURES = (read(encoded(drawn(), "PNG")), read(encoded(drawn(), "JPEG")), read(encoded(drawn(), "WEBP")))
MASK = read(encoded(drawn("RGBA"), "PNG"))


def edit(**more: Any) -> ImageRequest:
    return ImageRequest("a kite", images=PICTURES, mask=MASK, **more)


@pytest.mark.parametrize(
    "dialect",
    [one for one in DIALECTS if one not in (LocalAI, RawBytes)],
    ids=lambda dialect: dialect.__name__,
)
async def test_every_server_that_has_edits_makes_one(dialect: type[ImagesAPI]) -> None:
    server = dialect()
    image = await painted(server, edit(size="48x32", partial_images=1, moderation="low"))
    assert (image.width, image.height, image.output_format) == (48, 32, "png")
    asked = server.asked[-1]
    assert asked.path == f"{server.base}/images/edits"
    assert asked.is_form
    assert asked.files == (
        File("image[]", "image_1.png", "image/png", PICTURES[0].data),
        File("image[]", "image_2.jpg", "image/jpeg", PICTURES[1].data),
        File("image[]", "image_3.webp", "image/webp", PICTURES[2].data),
        File("mask", "mask.png", "image/png", MASK.data),
    )


async def test_a_form_holds_what_was_asked_for_and_nothing_else() -> None:
    server = Scripted(b64_json(png("a kite")))
    await painted(server, ImageRequest("ein Fähnchen \ud83d", images=PICTURES[:1]))
    assert server.asked[0].fields == {"prompt": "ein Fähnchen ?", "n": "1", "response_format": "b64_json"}
    assert [file.field for file in server.asked[0].files] == ["image[]"]


async def test_nested_and_odd_values_become_form_fields() -> None:
    server = Scripted(b64_json(png("a kite")))
    extra = {
        "svg": {"model": "m", "reasoning": {"effort": "low"}, 'a"b': 1},
        "tags": ["a", "b"],
        "sharp": True,
        "dull": False,
        "strength": 0.5,
        "loras": [{"name": "x"}],
    }
    request = ImageRequest("a kite", images=PICTURES[:1], input_fidelity="high", extra=extra)
    await painted(server, request, response_format="none", pass_on=["*"])
    assert server.asked[0].fields == {
        "prompt": "a kite",
        "n": "1",
        "svg[model]": "m",
        "svg[reasoning][effort]": "low",
        "tags[]": ["a", "b"],
        "sharp": "true",
        "dull": "false",
        "strength": "0.5",
        "loras[][name]": "x",
        "input_fidelity": "high",
    }


async def test_previews_of_an_edit_are_shown() -> None:
    server = OpenAI()
    shown: list[object] = []

    async def show(preview: object) -> None:
        shown.append(preview)

    with server.served() as url:
        async with opened(url, **server.config) as backend:
            image = await backend.generate(edit(partial_images=2), show)
    assert shown == [png("a kite 0"), png("a kite 1")]
    assert (image.data, image.quality) == (png("a kite"), "high")
    assert image.usage == OpenAI.usage


@pytest.mark.parametrize("mask", [None, MASK])
async def test_an_edit_can_travel_as_json_with_data_urls(mask: Any) -> None:
    server = Scripted(b64_json(png("a kite")))
    request = ImageRequest("a kite", images=PICTURES[1:2], mask=mask, moderation="low")
    await painted(server, request, edits="json")

    def url(image: Any) -> dict[str, str]:
        data = base64.b64encode(image.data).decode()
        return {"image_url": f"data:image/{image.output_format};base64,{data}"}

    asked = server.asked[0]
    assert (asked.path, asked.headers["content-type"]) == ("/v1/images/edits", "application/json")
    assert asked.fields == {
        "prompt": "a kite",
        "n": 1,
        "moderation": "low",
        "response_format": "b64_json",
        "images": [url(PICTURES[1])],
        **({"mask": url(MASK)} if mask else {}),
    }


async def test_a_server_that_takes_no_json_edits_says_so() -> None:
    error = await refused(SDServer(), edit(), edits="json")
    said = "The image server answered 400 (Bad Request): Content-Type must be multipart/form-data"
    assert error.message == said
    assert error.code == "image_backend_refused"


async def test_a_server_without_edits_fails_with_a_hint() -> None:
    error = await refused(LocalAI(), edit())
    assert error.code == "image_backend_not_found"
    assert error.message.startswith("The image server answered 404 (Not Found); its URL must be")


async def test_a_form_is_sent_whole_again_when_response_format_is_refused() -> None:
    server = Azure()
    image = await painted(server, edit())
    assert image.data == png("a kite")
    first, second = server.asked
    assert first.files == second.files
    assert ("response_format" in first.fields, "response_format" in second.fields) == (True, False)
    assert second.headers["api-key"] == KEY


async def test_a_large_picture_is_uploaded() -> None:
    server = Scripted(b64_json(png("a kite")))
    large = read(png("a kite"))
    data = large.data[:-12] + b"\x00\x2d\xc6\xc0teXt" + b"x" * 3_000_000 + b"1234" + large.data[-12:]
    await painted(server, ImageRequest("a kite", images=(replace(large, data=data),)))
    assert server.asked[0].files[0].data == data
