"""A size in the words of one side, said in those of the other.

Clients ask for `1536x1024`; a tool may take just that, or width and height, an aspect ratio such as `3:2`,
a class such as `2K`, or a word such as `landscape_4_3`. Where only some values are allowed, the one that
comes nearest is taken: in its proportions first, then in its area.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .schema import Argument

__all__ = ["SIZE_NAMES", "fill_size"]

SIZE_NAMES = ("size", "imagesize", "width", "height", "aspectratio")
"""The arguments that tell a size, as `plain` writes them."""

_USUAL = "1024x1024"
"""For a tool that insists on a size which nobody asked for."""

_SIDES = re.compile(r"(\d{1,5})\s*[x×*]\s*(\d{1,5})", re.IGNORECASE)
_RATIO = re.compile(r"(\d{1,4}(?:\.\d{1,4})?)\s*[:/]\s*(\d{1,4}(?:\.\d{1,4})?)")
_CLASS = re.compile(r"(\d(?:\.\d)?)\s*k", re.IGNORECASE)
_WORD = re.compile(r"(square|portrait|landscape)(?:[_ -](hd|(\d{1,2})[_:x](\d{1,2})))?", re.IGNORECASE)
_WORD_RATIOS = {"square": 1.0, "portrait": 2 / 3, "landscape": 3 / 2}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a size's name says; None where it says nothing."""

    ratio: float | None = None
    pixels: float | None = None
    sides: tuple[int, int] | None = None


def fill_size(known: Mapping[str, Argument], size: str | None) -> dict[str, Any]:
    """Fill the arguments that tell a size.

    The first of size, image_size, width and height, aspect_ratio that can say it is used, the others only
    where they are required.

    Args:
        known: the tool's arguments by their plain names.
        size: what was asked for; None for nothing particular.
    """
    filled = {} if size is None else _first(known, size)
    for name in SIZE_NAMES:
        if name in known and known[name].needed and known[name].name not in filled:
            _put(filled, known[name], _value(name, known[name], size or _USUAL))
    return filled


def _first(known: Mapping[str, Argument], size: str) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for names in (("size",), ("imagesize",), ("width", "height"), ("aspectratio",)):
        if not all(name in known for name in names):
            continue
        values = [_value(name, known[name], size) for name in names]
        if None in values:
            continue
        filled |= {known[name].name: value for name, value in zip(names, values, strict=True)}
        if not isinstance(values[0], str) or _read(values[0]).ratio or not _read(values[0]).pixels:
            break  # else it was a class such as 2K, which leaves the proportions open
    return filled


def _put(filled: dict[str, Any], argument: Argument, value: Any) -> None:
    if value is not None:
        filled[argument.name] = value


def _value(name: str, argument: Argument, size: str) -> Any:
    """Say a size in one argument; None if it cannot."""
    shape = _read(size)
    match name:
        case "width":
            return _side(argument, shape.sides and shape.sides[0])
        case "height":
            return _side(argument, shape.sides and shape.sides[1])
        case "aspectratio":
            return _aspect(argument, size, shape)
    return _size(argument, size, shape)


def _size(argument: Argument, size: str, shape: _Shape) -> Any:
    for value in argument.enum:
        if isinstance(value, str) and value.lower() == size.lower():
            return value
    fields = {field.name for field in argument.fields}
    if shape.sides and {"width", "height"} <= fields:
        return dict(zip(("width", "height"), shape.sides, strict=True))
    if argument.enum:
        return _nearest(argument.enum, shape)
    if argument.takes("string"):
        return size
    if argument.takes("integer") and shape.sides and shape.sides[0] == shape.sides[1]:
        return shape.sides[0]
    return None


def _side(argument: Argument, pixels: int | None) -> Any:
    if pixels is None:
        return None
    numbers = [value for value in argument.enum if isinstance(value, int | float)]
    if argument.enum and not numbers:
        return next((value for value in argument.enum if str(value) == str(pixels)), None)
    if numbers:
        wanted = pixels
        return min(numbers, key=lambda value: abs(value - wanted))
    if not argument.takes("integer"):
        return str(pixels) if argument.takes("string") else None
    if argument.minimum is not None:
        pixels = max(pixels, math.ceil(argument.minimum))
    return pixels if argument.maximum is None else min(pixels, math.floor(argument.maximum))


def _aspect(argument: Argument, size: str, shape: _Shape) -> Any:
    if argument.enum:
        return _nearest(argument.enum, shape)
    if shape.ratio is None:
        return None
    if not argument.takes("string"):
        return round(shape.ratio, 4) if argument.takes("number") else None
    if shape.sides is None:
        return size if _RATIO.fullmatch(size.strip()) else None
    common = math.gcd(*shape.sides)
    return f"{shape.sides[0] // common}:{shape.sides[1] // common}"


def _read(word: str) -> _Shape:
    """Read a size's name, whoever's it is."""
    word = word.strip()
    if found := _SIDES.fullmatch(word):
        width, height = int(found[1]), int(found[2])
        return _Shape(width / height, width * height, (width, height)) if width and height else _Shape()
    if found := _RATIO.fullmatch(word):
        width_part, height_part = float(found[1]), float(found[2])
        return _Shape(width_part / height_part) if width_part and height_part else _Shape()
    if found := _CLASS.fullmatch(word):
        return _Shape(pixels=(float(found[1]) * 1024) ** 2)
    if found := _WORD.fullmatch(word):
        return _Shape(_word_ratio(found), 1024**2 if (found[2] or "").lower() == "hd" else 512**2)
    return _Shape()


def _word_ratio(found: re.Match[str]) -> float:
    word = found[1].lower()
    if not found[3] or not int(found[3]) or not int(found[4]):
        return _WORD_RATIOS[word]
    ratio = int(found[3]) / int(found[4])
    upright = word == "portrait"  # portrait_16_9 is 9:16
    return min(ratio, 1 / ratio) if upright else max(ratio, 1 / ratio)


def _nearest(words: Sequence[Any], wanted: _Shape) -> Any:
    """Choose the word that comes nearest; None if none can be compared."""
    shapes = [(word, _read(word)) for word in words if isinstance(word, str)]
    ratios = [(word, shape) for word, shape in shapes if shape.ratio and wanted.ratio]
    if ratios:
        return min(ratios, key=lambda pair: (_far(pair[1].ratio, wanted.ratio), _areas(pair[1], wanted)))[0]
    areas = [(word, shape) for word, shape in shapes if shape.pixels and wanted.pixels]
    return min(areas, key=lambda pair: _areas(pair[1], wanted))[0] if areas else None


def _areas(shape: _Shape, wanted: _Shape) -> float:
    return _far(shape.pixels, wanted.pixels)


def _far(one: float | None, other: float | None) -> float:
    """Tell how many times one is the other, as a distance; 0 if either is unknown."""
    return round(abs(math.log(one / other)), 6) if one and other else 0.0
