"""Input schemas, in the many ways in which servers write them."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.backends.mcp_client.schema import Argument, plain, read_tool


def argument(schema: Any, **more: Any) -> Argument:
    """Read the one argument of a tool."""
    tool = read_tool("t", {"type": "object", "properties": {"a": schema}, **more})
    assert len(tool.arguments) == 1
    return tool.arguments[0]


@pytest.mark.parametrize(
    ("schema", "types", "enum"),
    [
        ({"type": "string"}, {"string"}, ()),
        ({"type": ["string", "null"]}, {"string"}, ()),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"integer"}, ()),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"string", "integer"}, ()),
        ({"anyOf": [{"type": "string"}, {}]}, set(), ()),
        ({"enum": ["a", "b", None]}, set(), ("a", "b")),
        ({"const": "a"}, set(), ("a",)),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, set(), ("a", "b")),
        (
            {"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "object"}]},
            {"string", "object"},
            ("a",),
        ),
        ({"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "string"}]}, {"string"}, ()),
        ({"anyOf": [{"type": "null"}], "type": "string"}, {"string"}, ()),
        ({"$ref": "#/$defs/Size"}, {"string"}, ("s", "m")),
        ({"allOf": [{"$ref": "#/$defs/Size"}], "default": "s"}, {"string"}, ("s", "m")),
        ({"$ref": "#/$defs/a~1b"}, {"integer"}, ()),
        ({"$ref": "#/$defs/Nothing/more"}, set(), ()),
        ({"$ref": "https://example.com/schema"}, set(), ()),
        ({"$ref": 5}, set(), ()),
        (True, set(), ()),
        ({"type": 5, "enum": 5, "anyOf": 5}, set(), ()),
    ],
)
def test_an_argument_is_known_by_its_types_and_values(schema: Any, types: set[str], enum: tuple[Any]) -> None:
    more = {"$defs": {"Size": {"type": "string", "enum": ["s", "m"]}, "a/b": {"type": "integer"}}}
    read = argument(schema, **more)
    assert (read.types, read.enum) == (types, enum)


def test_what_a_reference_says_yields_to_what_stands_beside_it() -> None:
    defs = {"Size": {"type": "string", "default": "s", "description": "Small"}}
    read = argument({"$ref": "#/$defs/Size", "default": "m"}, **{"$defs": defs})
    assert (read.default, read.has_default, read.notes) == ("m", True, "small")


def test_a_schema_that_refers_to_itself_has_an_end() -> None:
    read = argument({"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": {"allOf": [{"$ref": "#/$defs/Tree"}]}}})
    assert read == Argument("a")
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}}
    assert read_tool("t", tree).arguments[0].fields


@pytest.mark.parametrize("fan", [3, 40])
@pytest.mark.parametrize("how", ["properties", "anyOf", "items"])
def test_a_schema_that_multiplies_itself_is_read_in_part(how: str, fan: int) -> None:
    node = {"$ref": "#/$defs/Node"}
    grown: dict[str, Any] = {"properties": {f"child_{number}": node for number in range(fan)}}
    if how == "anyOf":
        grown = {"anyOf": [node] * fan, "type": "string"}
    elif how == "items":
        grown["items"] = node
    properties = {"tree": node, "prompt": {"type": "string"}}
    tree, prompt = read_tool("t", {"properties": properties, "$defs": {"Node": grown}}).arguments
    assert prompt == Argument("prompt", frozenset({"string"}))
    assert str(tree).count("Argument(") < 1_000


def test_objects_within_objects_are_read_three_deep() -> None:
    tree = {"properties": {"a": {"$ref": "#"}}}
    assert str(read_tool("t", tree)).count("Argument(") == 4


def test_a_tool_with_too_many_arguments_keeps_the_first_ones() -> None:
    assert len(read_tool("t", {"properties": {str(number): {} for number in range(1_000)}}).arguments) == 200


def test_objects_have_fields_and_lists_have_items() -> None:
    read = argument(
        {
            "type": "object",
            "properties": {"width": {"type": "integer", "minimum": 64, "maximum": 2048}, "x": 5},
            "required": ["width"],
        }
    )
    width = Argument("width", frozenset({"integer"}), required=True, minimum=64, maximum=2048)
    assert read.fields == (width, Argument("x"))
    read = argument({"type": "array", "items": {"type": "string", "format": "uri"}})
    assert read.items == Argument("", frozenset({"string"}), notes="uri")


@pytest.mark.parametrize("bound", [float("inf"), float("nan"), 10**400, "64", None])
def test_a_bound_that_is_no_size_is_none(bound: Any) -> None:
    assert argument({"type": "integer", "minimum": bound, "maximum": bound}) == Argument(
        "a", frozenset({"integer"})
    )


def test_a_required_argument_with_a_default_need_not_be_named() -> None:
    assert argument({}, required=["a"]).needed
    assert not argument({"default": None}, required=["a"]).needed
    assert not argument({}).needed


def test_what_is_no_schema_has_no_arguments() -> None:
    assert read_tool("t", {}).arguments == ()
    assert read_tool("t", {"properties": []}).arguments == ()


def test_a_number_takes_an_integer_and_anything_takes_all() -> None:
    assert argument({"type": "number"}).takes("integer")
    assert not argument({"type": "integer"}).takes("number")
    assert argument({}).takes("object")


def test_the_spelling_of_a_name_does_not_matter() -> None:
    assert {plain(name) for name in ("aspect_ratio", "aspectRatio", "Aspect-Ratio")} == {"aspectratio"}
