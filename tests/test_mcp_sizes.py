"""A size, said in whatever arguments a tool has for it."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.backends.mcp_client.schema import plain, read_tool
from imagecall.middleware.backends.mcp_client.sizes import fill_size

FAL = ["square_hd", "square", "portrait_4_3", "portrait_16_9", "landscape_4_3", "landscape_16_9"]
OPENAI = ["1024x1024", "1536x1024", "1024x1536", "auto"]
RATIOS = ["1:1", "16:9", "9:16", "3:2", "2:3", "auto"]
STRING = {"type": "string"}
INTEGER = {"type": "integer"}
BOX = {"type": "object", "properties": {"width": INTEGER, "height": INTEGER}}


def fill(asked: str | None, required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    tool = read_tool("t", {"properties": properties, "required": list(required)})
    return fill_size({plain(one.name): one for one in tool.arguments}, asked)


@pytest.mark.parametrize(
    ("size", "properties", "filled"),
    [
        ("1536x1024", {"size": STRING}, {"size": "1536x1024"}),
        ("1536x1024", {"size": STRING, "aspect_ratio": STRING}, {"size": "1536x1024"}),
        ("1536x1024", {"imageSize": STRING}, {"imageSize": "1536x1024"}),
        ("1200x800", {"size": {"enum": OPENAI}}, {"size": "1536x1024"}),
        ("1536X1024", {"size": {"enum": OPENAI}}, {"size": "1536x1024"}),
        ("1536x1024", {"image_size": {"enum": FAL}}, {"image_size": "landscape_4_3"}),
        ("1024x1792", {"image_size": {"enum": FAL}}, {"image_size": "portrait_16_9"}),
        ("1024x1024", {"image_size": {"enum": FAL}}, {"image_size": "square_hd"}),
        ("512x512", {"image_size": {"enum": FAL}}, {"image_size": "square"}),
        ("1536x1024", {"image_size": {"enum": ["square", "landscape", 5]}}, {"image_size": "landscape"}),
        ("800x1200", {"image_size": {"enum": ["portrait", "portrait_0_0"]}}, {"image_size": "portrait"}),
        (
            "1536x1024",
            {"image_size": {"anyOf": [{"enum": FAL, "type": "string"}, BOX]}},
            {"image_size": {"width": 1536, "height": 1024}},
        ),
        (
            "landscape_4_3",
            {"image_size": {"anyOf": [{"enum": FAL, "type": "string"}, BOX]}},
            {"image_size": "landscape_4_3"},
        ),
        ("1536x1024", {"width": INTEGER, "height": INTEGER}, {"width": 1536, "height": 1024}),
        ("1536x1024", {"width": {"type": "number"}, "height": STRING}, {"width": 1536, "height": "1024"}),
        (
            "1536x1024",
            {"width": {"enum": [512, 1024]}, "height": {"enum": ["1024"]}},
            {"width": 1024, "height": "1024"},
        ),
        (
            "100x4000",
            {"width": {**INTEGER, "minimum": 256}, "height": {**INTEGER, "maximum": 2048}},
            {"width": 256, "height": 2048},
        ),
        ("1536x1024", {"width": INTEGER, "aspect_ratio": STRING}, {"aspect_ratio": "3:2"}),
        ("1792x1024", {"aspectRatio": {"enum": RATIOS}}, {"aspectRatio": "16:9"}),
        ("1024x1024", {"aspectRatio": {"enum": RATIOS}}, {"aspectRatio": "1:1"}),
        ("1536x1024", {"aspect_ratio": {"type": "number"}}, {"aspect_ratio": 1.5}),
        ("16:9", {"aspect_ratio": STRING}, {"aspect_ratio": "16:9"}),
        ("16:9", {"aspect_ratio": {"enum": RATIOS}}, {"aspect_ratio": "16:9"}),
        (
            "2048x1152",
            {"imageSize": {"enum": ["1K", "2K", "4K"]}, "aspectRatio": {"enum": RATIOS}},
            {"imageSize": "2K", "aspectRatio": "16:9"},
        ),
        ("2K", {"imageSize": {"enum": ["1K", "2K"]}, "aspectRatio": STRING}, {"imageSize": "2K"}),
        ("1024x1024", {"size": INTEGER}, {"size": 1024}),
    ],
)
def test_a_size_is_said_in_the_tools_own_words(
    size: str, properties: dict[str, Any], filled: dict[str, Any]
) -> None:
    assert fill(size, **properties) == filled


@pytest.mark.parametrize(
    ("size", "properties"),
    [
        ("1536x1024", {}),
        ("1536x1024", {"size": INTEGER}),
        ("1536x1024", {"size": {"type": "boolean"}}),
        ("1536x1024", {"size": {"enum": ["small", "large"]}}),
        ("huge", {"size": {"enum": OPENAI}}),
        ("0x1024", {"size": {"enum": OPENAI}}),
        ("0:1", {"size": {"enum": RATIOS}}),
        ("huge", {"width": INTEGER, "height": INTEGER}),
        ("huge", {"aspect_ratio": STRING}),
        ("landscape", {"aspect_ratio": STRING}),
        ("1536x1024", {"width": {"enum": ["big"]}, "height": INTEGER}),
        ("1536x1024", {"width": {"type": "boolean"}, "height": INTEGER}),
        ("1536x1024", {"aspect_ratio": {"type": "boolean"}}),
        (None, {"size": STRING, "width": INTEGER, "height": INTEGER}),
    ],
)
def test_a_size_that_cannot_be_said_is_left_out(size: str | None, properties: dict[str, Any]) -> None:
    assert fill(size, **properties) == {}


def test_a_tool_that_insists_on_a_size_gets_the_usual_one() -> None:
    assert fill(None, ("size",), size=STRING) == {"size": "1024x1024"}
    assert fill(None, ("width", "height"), width=INTEGER, height=INTEGER) == {"width": 1024, "height": 1024}
    assert fill(None, ("aspect_ratio",), aspect_ratio={"enum": RATIOS}) == {"aspect_ratio": "1:1"}
    assert fill(None, ("size",), size={**STRING, "default": "auto"}) == {}
    assert fill(None, ("size",), size={"enum": ["small", "large"]}) == {}


def test_a_tool_that_insists_on_two_gets_both() -> None:
    filled = fill("1536x1024", ("size", "aspect_ratio"), size=STRING, aspect_ratio=STRING)
    assert filled == {"size": "1536x1024", "aspect_ratio": "3:2"}
