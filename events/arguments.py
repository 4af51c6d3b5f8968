"""A function call's name and arguments as models really write them."""

from __future__ import annotations

import json
from typing import Any

from .wire import is_deep

__all__ = ["parse_arguments", "plain_name"]

_DECODER = json.JSONDecoder(strict=False)
_NAMESPACES = ("functions.", "function.", "tools.")


def plain_name(name: str) -> str:
    """Strip what stuck to a function's name: harmony tokens behind it, one namespace before it."""
    name = name.split("<|", 1)[0].strip()
    for namespace in _NAMESPACES:
        if name.startswith(namespace):
            return name[len(namespace) :]
    return name


def parse_arguments(given: object) -> dict[str, Any] | None:
    """Read arguments: nothing is `{}`, text behind the object is ignored, None if it is no object.

    Models append stray tokens and server-side parsers keep them; some models write the object as a
    JSON string once more.
    """
    if isinstance(given, dict):
        return given
    if not isinstance(given, str):
        return None
    text = given.strip()
    if not text:
        return {}
    try:
        value, _ = _DECODER.raw_decode(text)
        if isinstance(value, str):
            value, _ = _DECODER.raw_decode(value.strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_deep(value) else None
