"""Pictures that go into a tool."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from imagecall.middleware.backends.base import Image, ImageError
from imagecall.middleware.backends.mcp_client.pictures import data_url, fill_pictures, takes_pictures
from imagecall.middleware.backends.mcp_client.schema import read_tool

KITE = Image(b"kite", "png", 1, 1)
DOG = Image(b"dog", "jpeg", 1, 1)
MASK = Image(b"mask", "png", 1, 1)
BARE = base64.b64encode(b"kite").decode()
URL = f"data:image/png;base64,{BARE}"
STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}


def fill(*images: Image, mask: Image | None = None, required: tuple[str, ...] = (), **properties: Any) -> Any:
    tool = read_tool("t", {"properties": properties, "required": list(required)})
    assert takes_pictures(tool.arguments)
    return fill_pictures(tool.arguments, images, mask)


def described(words: str) -> dict[str, str]:
    return {**STRING, "description": words}


@pytest.mark.parametrize(
    ("properties", "filled"),
    [
        ({"image": STRING}, {"image": BARE}),
        ({"image_base64": described("a URL")}, {"image_base64": BARE}),
        ({"imageUrl": STRING}, {"imageUrl": URL}),
        ({"image": described("A data URL or base64")}, {"image": URL}),
        ({"image": described("Base64 or URL")}, {"image": BARE}),
        ({"image": described("The URL of the image")}, {"image": URL}),
        ({"image": {**STRING, "format": "uri"}}, {"image": URL}),
        ({"image": {**STRING, "contentEncoding": "base64"}}, {"image": BARE}),
        ({"image": described("A path or a URL")}, {"image": URL}),
        ({"image": described("A path"), "init_image": STRING}, {"init_image": BARE}),
        ({"images": STRINGS}, {"images": [BARE]}),
        ({"images": {"type": "array", "items": {**STRING, "format": "uri"}}}, {"images": [URL]}),
        ({"image": {"anyOf": [STRING, STRINGS]}}, {"image": BARE}),
        ({"reference_image": STRING, "input_image": STRING}, {"input_image": BARE}),
    ],
)
def test_a_picture_is_written_as_the_argument_wants_it(
    properties: dict[str, Any], filled: dict[str, Any]
) -> None:
    assert fill(KITE, **properties) == filled


def test_several_pictures_need_a_list() -> None:
    assert fill(KITE, DOG, image_url=STRING, images=STRINGS) == {"images": [BARE, "ZG9n"]}
    assert fill(KITE, DOG, image={"anyOf": [STRING, STRINGS]}) == {"image": [BARE, "ZG9n"]}
    with pytest.raises(ImageError) as caught:
        fill(KITE, DOG, image=STRING)
    assert caught.value.code == "too_many_images"
    assert caught.value.message == "This server edits one picture at a time, and 2 were given."


def test_all_required_places_are_filled() -> None:
    filled = fill(KITE, image=STRING, image_url=STRING, images=STRINGS, required=("image", "image_url"))
    assert filled == {"image": BARE, "image_url": URL}


def test_a_mask_needs_a_place_of_its_own() -> None:
    filled = fill(KITE, mask=MASK, image=STRING, mask_url=STRING)
    assert filled == {"image": BARE, "mask_url": data_url(MASK)}
    with pytest.raises(ImageError, match="takes no mask"):
        fill(KITE, mask=MASK, image=STRING)


@pytest.mark.parametrize(
    "properties",
    [
        {"prompt": STRING},
        {"image": described("Path of the file")},
        {"image": {"type": "boolean"}},
        {"image": {"type": "string", "enum": ["last"]}},
        {"images": {"type": "array"}},
        {"images": {"type": "array", "items": {"type": "object"}}},
        {"images": {"type": "array", "items": described("a path")}},
    ],
)
def test_what_can_take_no_picture_is_no_place_for_one(properties: dict[str, Any]) -> None:
    tool = read_tool("t", {"properties": properties})
    assert not takes_pictures(tool.arguments)
    with pytest.raises(ImageError, match="takes no picture"):
        fill_pictures(tool.arguments, [KITE], None)


def test_a_picture_may_belong_into_the_tools_one_object() -> None:
    inner = {"type": "object", "properties": {"image": STRING}}
    assert takes_pictures(read_tool("t", {"properties": {"params": inner}}).arguments)
