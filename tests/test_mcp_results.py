"""Where a tool's result has its picture."""

from __future__ import annotations

import json
from typing import Any

import pytest
from imagecall.middleware.backends.mcp_client.results import Place, places, revised_prompt, said
from mcp_servers.shapes import DOT_BASE64, SHAPES, WITHOUT_PICTURE
from mcp_types import CallToolResult

BASE64 = Place("base64", DOT_BASE64)
OTHER = "/9j/4AAQ"


def result(*content: dict[str, Any], structured: Any = None) -> tuple[Any, Any]:
    parsed = CallToolResult.model_validate({"content": list(content)})
    return parsed.content, structured


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}


def image(data: str) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


def resource(blob: str, **more: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "a://b", "blob": blob, **more}}


def found(*content: dict[str, Any], structured: Any = None) -> list[tuple[str, str]]:
    return [(place.kind, place.text) for place in places(*result(*content, structured=structured))]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_picture_is_the_first_place_and_there_only_once(shape: str) -> None:
    parsed = CallToolResult.model_validate(SHAPES[shape])
    listed = list(places(parsed.content, parsed.structured_content))
    if shape == "a link to a resource":
        assert listed == [Place("resource", "image://dot")]
    elif shape == "a data URL in a text":
        assert listed == [Place("base64", f"data:image/png;base64,{DOT_BASE64}")]
    else:
        assert listed == [BASE64]


def test_what_holds_no_picture_has_no_place_for_one() -> None:
    for shape in WITHOUT_PICTURE.values():
        parsed = CallToolResult.model_validate(shape)
        assert list(places(parsed.content, parsed.structured_content)) == []


def test_the_surest_places_come_first() -> None:
    link = {"type": "resource_link", "uri": "a://c", "name": "c"}
    content = [
        text("see https://a.example/x.png."),
        text({"b64_json": "iVBORw0KGgo1", "saved_path": "/tmp/y.png"}),
        link,
        resource("R0lGOD"),
        image("anything"),
    ]
    assert found(*content, structured={"url": "https://b.example/"}) == [
        ("base64", "anything"),
        ("base64", "R0lGOD"),
        ("resource", "a://c"),
        ("url", "https://b.example/"),
        ("base64", "iVBORw0KGgo1"),
        ("url", "https://a.example/x.png"),
        ("path", "/tmp/y.png"),
    ]


def test_what_says_that_it_is_something_else_is_not_looked_at() -> None:
    link = {"type": "resource_link", "uri": "a://c", "name": "c", "mimeType": "text/html"}
    assert found(resource("AAAA", mimeType="application/pdf"), link) == []
    assert found(resource("AAAA", mimeType="Image/PNG"), resource("BBBB")) == [
        ("base64", "AAAA"),
        ("base64", "BBBB"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"b64_json": OTHER},
        {"imageBase64": OTHER},
        {"data": [{"b64_json": OTHER, "url": None}]},
        {"images": [OTHER]},
        {"images": [{"image": {"data": f" {OTHER}\n"}}]},
        {"response": {"result": OTHER}},
        {"status": "ok", "outputs": [[{"base64": OTHER}]]},
        [{"image": OTHER}],
        OTHER,
    ],
)
def test_json_is_searched_by_its_keys(value: Any) -> None:
    assert found(text(value)) == [("base64", OTHER)]
    assert found(structured=value) == [("base64", OTHER)]


@pytest.mark.parametrize(
    "value",
    [
        {"data": "hello", "result": 5, "image": None},
        {"title": OTHER},
        {"url": "ftp://a.example/x.png"},
        {"a": {"b": {"c": {"d": {"e": {"f": {"data": OTHER}}}}}}},
        {"images": ["x"] * 100 + [OTHER]},
    ],
)
def test_json_is_not_searched_for_anything(value: Any) -> None:
    assert found(text(value)) == []


def test_urls_are_found_in_words() -> None:
    words = "Image 1: https://a.example/x.png?k=1, and ![2](http://b.example/y.webp)! <https://c.example>"
    assert found(text(words)) == [
        ("url", "https://a.example/x.png?k=1"),
        ("url", "http://b.example/y.webp"),
        ("url", "https://c.example"),
    ]


def test_broken_json_is_words() -> None:
    assert found(text('{"url": https://a.example/x.png}')) == [("url", "https://a.example/x.png}")]


def test_paths_are_found_in_json_and_in_words() -> None:
    value = {"paths": ["/a.png", 5, "/b"], "more": [{"file_path": "c.jpg"}], "path": "", "x": "/no.png"}
    assert found(structured=value) == [("path", "/a.png"), ("path", "/b"), ("path", "c.jpg")]
    deep: Any = {"path": "/deep.png"}
    for _ in range(8):
        deep = {"a": deep}
    assert found(structured=deep) == []
    words = text("Saved to file:///tmp/a.png and '/tmp/b.webp'. See https://c.example/d.png")
    assert found(words) == [
        ("url", "https://c.example/d.png"),
        ("path", "file:///tmp/a.png"),
        ("path", "/tmp/b.webp"),
    ]


def test_a_name_of_nothing_but_an_ending_is_no_file() -> None:
    assert found(text("a .png is not 'x.png.png' nor y.pngs")) == [("path", "x.png.png")]


def test_names_are_looked_for_at_the_beginning_of_a_text() -> None:
    assert found(text("x " * 40_000 + "y.png https://a.example/z.png")) == []


@pytest.mark.parametrize("word", ["A", "http://", "data:image/", "file://", "a.png/", "x "])
def test_a_picture_of_an_unknown_kind_in_a_text_takes_no_time(word: str) -> None:
    """Were each letter looked at more than a few times, this would take hours, and hold up all clients."""
    assert len(found(text(word * 1_000_000))) <= 2


def test_the_words_of_a_result_are_its_texts_or_else_its_structured_content() -> None:
    assert said(*result(text(" one "), image("x"), text(""), text("two"))) == "one\ntwo"
    assert said(*result(image("x"), structured={"error": "no"})) == '{"error":"no"}'
    assert said(*result()) == ""


def test_the_prompt_that_was_really_used_may_be_told() -> None:
    assert revised_prompt(*result(text({"revised_prompt": "a kite"}))) == "a kite"
    assert revised_prompt(*result(structured={"revised_prompt": " "})) is None
    assert revised_prompt(*result(text([1]), structured={"revised_prompt": 5})) is None
    assert revised_prompt(*result(structured={"revised_prompt": "x" * 40_000})) == "x" * 32_000
