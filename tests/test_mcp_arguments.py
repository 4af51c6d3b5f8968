"""A tool's arguments, filled by what they are called."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.backends.mcp_client.arguments import fill_arguments
from imagecall.middleware.backends.mcp_client.schema import read_tool

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
PROMPT = {"prompt": STRING}


def fill(
    properties: dict[str, Any],
    *,
    required: tuple[str, ...] = ("prompt",),
    model: str | None = None,
    **request: Any,
) -> dict[str, Any]:
    tool = read_tool("paint", {"properties": properties, "required": list(required)})
    return fill_arguments(tool, ImageRequest("a kite", **request), model=model)


def refused(properties: dict[str, Any], *required: str, **request: Any) -> str:
    with pytest.raises(ImageError) as caught:
        fill(properties, required=required, **request)
    assert caught.value.code == "mcp_arguments"
    return caught.value.message


@pytest.mark.parametrize("name", ["prompt", "text", "description", "Prompt"])
def test_the_prompt_goes_by_several_names(name: str) -> None:
    assert fill({name: STRING, "mood": STRING}, required=(name,)) == {name: "a kite"}


def test_the_best_name_for_the_prompt_wins() -> None:
    assert fill({"description": STRING, "text": STRING, **PROMPT}) == {"prompt": "a kite"}
    assert fill({"prompt": INTEGER, "text": STRING}, required=()) == {"text": "a kite"}


def test_nothing_is_sent_that_nobody_asked_for() -> None:
    options = ("size", "quality", "background", "output_format", "seed", "negative_prompt", "n", "model")
    assert fill({**PROMPT, **dict.fromkeys(options, STRING)}) == {"prompt": "a kite"}


def test_options_are_filled_where_the_tool_has_them() -> None:
    properties = {**PROMPT, "quality": STRING, "background": STRING, "format": STRING, "size": STRING}
    asked = {"quality": "high", "background": "opaque", "output_format": "webp", "size": "1536x1024"}
    assert fill(properties, **asked) == {
        "prompt": "a kite",
        "quality": "high",
        "background": "opaque",
        "format": "webp",
        "size": "1536x1024",
    }
    assert fill(PROMPT, **asked) == PROMPT | {"prompt": "a kite"}


def test_an_enum_is_respected() -> None:
    quality = {"enum": ["HD", "Standard"]}
    assert fill({**PROMPT, "quality": quality}, quality="hd") == {"prompt": "a kite", "quality": "HD"}
    assert fill({**PROMPT, "quality": quality}, quality="high") == {"prompt": "a kite"}
    formats = {"output_format": {"enum": [5, "png", "jpg"]}}
    asked = fill({**PROMPT, **formats}, output_format="jpeg")
    assert asked == {"prompt": "a kite", "output_format": "jpg"}
    both = {"output_format": {"enum": ["JPEG", "jpeg"]}}
    assert fill({**PROMPT, **both}, output_format="jpeg")["output_format"] == "jpeg"


def test_a_type_is_respected() -> None:
    assert fill({**PROMPT, "quality": INTEGER}, quality="high") == {"prompt": "a kite"}


def test_a_required_option_that_nobody_asked_for_gets_a_neutral_value() -> None:
    properties = {
        **PROMPT,
        "quality": {"enum": ["low", "medium"]},
        "background": {"enum": ["plain", "busy"]},
        "output_format": STRING,
        "size": STRING,
    }
    assert fill(properties, required=tuple(properties)) == {
        "prompt": "a kite",
        "quality": "medium",
        "background": "plain",
        "output_format": "png",
        "size": "1024x1024",
    }


@pytest.mark.parametrize(
    ("name", "schema", "required", "sent"),
    [
        ("n", INTEGER, False, {}),
        ("n", INTEGER, True, {"n": 1}),
        ("num_images", {**INTEGER, "default": 4}, False, {"num_images": 1}),
        ("count", {**INTEGER, "default": 1}, False, {}),
        ("count", {"type": ["integer", "null"], "default": None}, False, {}),
        ("n", STRING, True, {"n": "1"}),
        ("n", {"enum": [1, 2], "default": 2}, False, {"n": 1}),
        ("n", {"enum": [2, 4], "default": 2}, False, {}),
    ],
)
def test_one_picture_is_asked_for_where_there_would_be_more(
    name: str, schema: dict[str, Any], required: bool, sent: dict[str, Any]
) -> None:
    names = ("prompt", name) if required else ("prompt",)
    assert fill({**PROMPT, name: schema}, required=names) == {"prompt": "a kite", **sent}


def test_the_model_is_the_configured_one_and_never_the_clients() -> None:
    properties = {**PROMPT, "model": STRING}
    assert fill(properties, model="flux") == {"prompt": "a kite", "model": "flux"}
    assert fill(properties) == {"prompt": "a kite"}
    assert fill(PROMPT, model="flux") == {"prompt": "a kite"}
    tool = read_tool("paint", {"properties": properties})
    assert fill_arguments(tool, ImageRequest("a kite", model="gpt-image-1")) == {"prompt": "a kite"}
    assert refused(properties, "prompt", "model") == (
        "The MCP tool 'paint' requires a model: name one with backend_model. "
        "A template, backend_arguments, can fill it."
    )


def test_what_the_schema_itself_decides_is_filled_in() -> None:
    properties = {**PROMPT, "mode": {"const": "image"}, "style": {**STRING, "default": "vivid"}}
    filled = fill(properties, required=("prompt", "mode", "style"))
    assert filled == {"prompt": "a kite", "mode": "image", "style": "vivid"}


def test_a_required_argument_that_is_unknown_is_an_error() -> None:
    assert refused({**PROMPT, "style": STRING, "seed": INTEGER}, "prompt", "style", "seed") == (
        "The MCP tool 'paint' also requires style, seed. A template, backend_arguments, can fill it."
    )


def test_a_tool_without_a_place_for_the_prompt_is_an_error() -> None:
    for properties in ({}, {"words": STRING}, {"a": {"properties": PROMPT}, "b": {"properties": PROMPT}}):
        assert refused(properties) == (
            "The MCP tool 'paint' has no argument for the prompt (prompt, text, description). "
            "A template, backend_arguments, can fill it."
        )


def test_a_tool_whose_arguments_stand_in_one_object_gets_that_object() -> None:
    inner = {
        "type": "object",
        "properties": {**PROMPT, "size": STRING, "style": {"default": "vivid"}},
        "required": ["prompt", "style"],
    }
    schema = {"properties": {"params": {"$ref": "#/$defs/P"}}, "required": ["params"], "$defs": {"P": inner}}
    filled = fill_arguments(read_tool("paint", schema), ImageRequest("a kite", size="512x512"))
    assert filled == {"params": {"prompt": "a kite", "size": "512x512", "style": "vivid"}}


def test_the_pictures_of_an_edit_are_filled_in() -> None:
    images = (Image(b"kite", "png", 1, 1),)
    filled = fill({**PROMPT, "image": STRING}, images=images)
    assert filled == {"prompt": "a kite", "image": "a2l0ZQ=="}
