"""Settings of several values, and how they are written in a variable or option."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_settings import NoDecode

from ..events.wire import loads

__all__ = ["Names", "Object", "Strings", "json_object"]


def json_object(value: object) -> object:
    """Read a JSON object; what is no text is taken as it is.

    Raises:
        ValueError: the text is no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return loads(value.encode())
    except ValueError:
        raise ValueError("Input should be a JSON object") from None


def _words(value: object) -> object:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
"""Several words; in a variable or option separated by commas."""

Strings = Annotated[dict[str, str], NoDecode, BeforeValidator(json_object)]
Object = Annotated[dict[str, Any], NoDecode, BeforeValidator(json_object)]
"""A mapping; in a variable or option a JSON object."""
