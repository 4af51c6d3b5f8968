"""What a tool's input schema says about each of its arguments, flattened far enough to fill them.

Servers write the same thing in many ways: a type or a list of types, `$ref` into `$defs`, `anyOf` with null
for an optional value, `const` for an enum of one. `Argument` holds what is left when that is undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

__all__ = ["Argument", "ImageTool", "plain", "read_tool"]

_DEPTH = 8
"""How many references and alternatives are followed: a schema may refer to itself."""

_NESTED = 3
"""How deep objects and lists are looked into; tools have one object around their arguments at most."""

_ARGUMENTS = 200
_PARTS = 500
"""How many arguments a tool has, and how many schemas are read for each: references multiply them."""

_LARGEST = 1e9
"""No bound of a size is larger, and none is infinite or no number at all."""

_COMBINED = ("$ref", "allOf", "anyOf", "oneOf")

_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool, or one field of an argument that is an object.

    Attributes:
        types: the JSON types it may have, without null; empty for any.
        enum: the values it may have, without null; empty for any.
        required: whether a call without it is refused.
        has_default: whether the server fills it in itself, with `default`.
        notes: its description, format and encoding in lower case, to tell base64 from a URL.
        fields: those of an object, empty for anything else.
        items: what a list's elements are like; None for anything else.
        minimum: of a number, where there is one.
        maximum: of a number, where there is one.
    """

    name: str
    types: frozenset[str] = frozenset()
    enum: tuple[Any, ...] = ()
    required: bool = False
    has_default: bool = False
    default: Any = None
    notes: str = ""
    fields: tuple[Argument, ...] = ()
    items: Argument | None = None
    minimum: float | None = None
    maximum: float | None = None

    def takes(self, kind: str) -> bool:
        """Whether it may have a JSON type, such as `string` or `integer`."""
        return not self.types or kind in self.types or (kind == "integer" and "number" in self.types)

    @property
    def needed(self) -> bool:
        """Whether a call must name it, for nobody else fills it in."""
        return self.required and not self.has_default


@dataclass(frozen=True, slots=True)
class ImageTool:
    """A tool of an MCP server."""

    name: str
    arguments: tuple[Argument, ...]


def plain(name: str) -> str:
    """Write a name so that `aspect_ratio`, `aspectRatio` and `aspect-ratio` are the same."""
    return name.lower().replace("_", "").replace("-", "")


def read_tool(name: str, schema: Mapping[str, Any]) -> ImageTool:
    """Read a tool's `inputSchema`. What is no valid schema has no arguments."""
    properties = _properties(_flat(schema, _Document(schema), _DEPTH))
    return ImageTool(
        name,
        tuple(
            _argument(argument, inner, _Document(schema), _NESTED, required=required)
            for argument, inner, required in properties
        ),
    )


@dataclass(slots=True)
class _Document:
    """What references refer to, and how many more schemas are read."""

    root: Mapping[str, Any]
    left: int = _PARTS


def _properties(flat: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Give the name and the schema of each property, and whether it is required."""
    properties = flat.get("properties")
    if isinstance(properties, Mapping):
        required = _list(flat.get("required"))
        for name, schema in islice(properties.items(), _ARGUMENTS):
            yield str(name), schema, name in required


def _argument(
    name: str, schema: Any, document: _Document, nested: int, *, required: bool = False
) -> Argument:
    flat = _flat(schema, document, _DEPTH)
    notes = (flat.get(key) for key in ("description", "title", "format", "contentEncoding"))
    default = flat.get("default", _MISSING)
    items = flat.get("items")
    return Argument(
        name,
        types=_types(flat),
        enum=tuple(value for value in _values(flat) if value is not None),
        required=required,
        has_default=default is not _MISSING,
        default=None if default is _MISSING else default,
        notes=" ".join(note for note in notes if isinstance(note, str)).lower(),
        fields=tuple(_fields(flat, document, nested)),
        items=_argument("", items, document, nested - 1) if isinstance(items, Mapping) and nested else None,
        minimum=_number(flat.get("minimum")),
        maximum=_number(flat.get("maximum")),
    )


def _fields(flat: Mapping[str, Any], document: _Document, nested: int) -> Iterator[Argument]:
    if nested:
        for name, schema, required in _properties(flat):
            if document.left:
                yield _argument(name, schema, document, nested - 1, required=required)


def _flat(schema: Any, document: _Document, depth: int) -> dict[str, Any]:
    """Merge what a schema refers to and its alternatives into one level."""
    if not isinstance(schema, Mapping) or not depth or not document.left:
        return {}
    document.left -= 1
    flat: dict[str, Any] = {}
    for part in (_target(schema.get("$ref"), document.root), *_list(schema.get("allOf"))):
        flat |= _flat(part, document, depth - 1)
    flat |= {key: value for key, value in schema.items() if key not in _COMBINED}
    either = [*_list(schema.get("anyOf")), *_list(schema.get("oneOf"))]
    branches = [_flat(branch, document, depth - 1) for branch in either]
    return _joined(flat, [branch for branch in branches if branch.get("type") != "null"])


def _joined(flat: dict[str, Any], branches: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge alternatives: whatever one of them allows, with an enum where all simple values have one."""
    if not branches:
        return flat
    merged: dict[str, Any] = {}
    for branch in reversed(branches):  # the first one wins
        merged |= branch
    merged.pop("type", None)
    if all(_types(branch) for branch in branches):
        merged["type"] = sorted(frozenset[str]().union(*map(_types, branches)))
    simple = [branch for branch in branches if not _types(branch) or _types(branch) - {"object", "array"}]
    values = [_values(branch) for branch in simple]
    merged.pop("const", None)
    merged["enum"] = [value for some in values for value in some] if all(values) else []
    return merged | flat


def _types(flat: Mapping[str, Any]) -> frozenset[str]:
    kinds = flat.get("type")
    named = [kinds] if isinstance(kinds, str) else _list(kinds)
    return frozenset(kind for kind in named if isinstance(kind, str) and kind != "null")


def _values(flat: Mapping[str, Any]) -> list[Any]:
    return [flat["const"]] if "const" in flat else _list(flat.get("enum"))


def _target(reference: Any, root: Mapping[str, Any]) -> Any:
    """Follow a `$ref` within the same document; another document is never fetched."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and abs(value) <= _LARGEST else None
