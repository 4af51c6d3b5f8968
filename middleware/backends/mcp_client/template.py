"""A tool's arguments as somebody wrote them down, for tools that synonyms cannot fill."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..base import ImageRequest
from ..option_error import OptionError
from .pictures import bare, data_url

__all__ = ["ArgumentsTemplate"]

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_SIDES = re.compile(r"(\d{1,5})[xX](\d{1,5})")

_ABSENT: Any = object()

Value = Callable[[ImageRequest, "str | None"], Any]


def _sides(request: ImageRequest) -> tuple[int, int] | None:
    found = _SIDES.fullmatch(request.size or "")
    return (int(found[1]), int(found[2])) if found and int(found[1]) and int(found[2]) else None


def _aspect(request: ImageRequest) -> str | None:
    sides = _sides(request)
    if sides is None:
        return None
    common = math.gcd(*sides)
    return f"{sides[0] // common}:{sides[1] // common}"


_VALUES: dict[str, Value] = {
    "prompt": lambda request, _: request.prompt,
    "model": lambda _, model: model,
    "n": lambda _request, _model: 1,
    "size": lambda request, _: request.size,
    "width": lambda request, _: (_sides(request) or (None, None))[0],
    "height": lambda request, _: (_sides(request) or (None, None))[1],
    "aspect_ratio": lambda request, _: _aspect(request),
    "quality": lambda request, _: request.quality,
    "background": lambda request, _: request.background,
    "output_format": lambda request, _: request.output_format,
    "output_compression": lambda request, _: request.output_compression,
    "moderation": lambda request, _: request.moderation,
    "input_fidelity": lambda request, _: request.input_fidelity,
    "image": lambda request, _: bare(request.images[-1]) if request.images else None,
    "image_url": lambda request, _: data_url(request.images[-1]) if request.images else None,
    "images": lambda request, _: [bare(image) for image in request.images] or None,
    "image_urls": lambda request, _: [data_url(image) for image in request.images] or None,
    "mask": lambda request, _: bare(request.mask) if request.mask else None,
    "mask_url": lambda request, _: data_url(request.mask) if request.mask else None,
}
_PICTURES = {"image", "image_url", "images", "image_urls"}


class ArgumentsTemplate:
    """The arguments object of a tool, with placeholders.

    Within its strings, at whatever depth, these names in braces stand for the request's values: prompt,
    size (`1536x1024`), width, height, aspect_ratio (`3:2`), quality, background, output_format,
    output_compression, moderation, input_fidelity, model (the configured one), n (1); and for edits image
    (the latest, in base64), image_url (as a data URL), images, image_urls (lists of all), mask, mask_url.

    A string that is just one placeholder becomes the value with its own type: `"{width}"` a number,
    `"{images}"` a list. If nobody asked for that value, the key or the list's element is left out, and so
    is an object or a list in which nothing is left for that reason. Within a longer string a value that is
    missing is empty. All else stays as it is written.

    Args:
        template: the arguments object.

    Attributes:
        edits: whether the template has a place for pictures.

    Raises:
        OptionError: it has an unknown placeholder, or none for the prompt.
    """

    def __init__(self, template: Mapping[str, Any]) -> None:
        self._template = template
        names = set(_names(template))
        if unknown := sorted(names - set(_VALUES)):
            known = ", ".join(_VALUES)
            message = (
                f"The arguments template has an unknown placeholder {{{unknown[0]}}}; there are: {known}."
            )
            raise OptionError("arguments", message)
        if "prompt" not in names:
            message = "The arguments template has no {prompt}: no picture could be what was asked for."
            raise OptionError("arguments", message)
        self._names = names
        self.edits = bool(names & _PICTURES)

    def fill(self, request: ImageRequest, model: str | None) -> dict[str, Any]:
        """Fill the placeholders in one pass: braces within a prompt mean nothing."""
        values = {name: _VALUES[name](request, model) for name in self._names}
        filled = _filled(self._template, values)
        assert isinstance(filled, dict)  # it holds the prompt
        return filled


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _names(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _names(inner)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        if whole := _PLACEHOLDER.fullmatch(value):
            filled = values[whole[1]]
            return _ABSENT if filled is None else filled
        return _PLACEHOLDER.sub(lambda found: _text(values[found[1]]), value)
    if isinstance(value, Mapping):
        fields = {key: _filled(inner, values) for key, inner in value.items()}
        kept = {key: inner for key, inner in fields.items() if inner is not _ABSENT}
        return kept if kept or not fields else _ABSENT
    if isinstance(value, list | tuple):
        items = [_filled(inner, values) for inner in value]
        left = [inner for inner in items if inner is not _ABSENT]
        return left if left or not items else _ABSENT
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ",".join(value) if isinstance(value, list) else str(value)
