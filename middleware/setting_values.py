"""What settings may hold, and how several values are written in a variable or option."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from ..events.wire import loads

__all__ = ["Folder", "Hosts", "Names", "NewFolder", "Object", "Origins", "Paths", "Strings", "json_object"]

_ORIGIN = r"\*|null|file://|[a-z][a-z0-9+.-]*://([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:[0-9]+)?"
"""As browsers write it (RFC 6454, 6.2), in small letters and without a path; some write `file://`."""


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


def _each(pattern: str, taken: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Let each word match; the error counts them, since it must not repeat what may hold a secret."""
    allowed = re.compile(pattern)

    def check(words: tuple[str, ...]) -> tuple[str, ...]:
        for number, word in enumerate(words, 1):
            if not allowed.fullmatch(word):
                raise ValueError(f"Entry {number} should be {taken}")
        return words

    return check


# Not `Path.is_dir` and `Path.exists`, which raise where this process may not look.


def _folder(path: Path) -> Path:
    if not os.path.isdir(path):  # noqa: PTH112
        raise ValueError("Input should be a folder that exists; make it, or mend the path")
    return path


def _new_folder(path: Path) -> Path:
    if os.path.exists(path) and not os.path.isdir(path):  # noqa: PTH110, PTH112
        raise ValueError("Input should be a folder, not a file; name another path")
    return path


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
"""Several words; in a variable or option separated by commas."""

Origins = Annotated[
    Names,
    AfterValidator(
        _each(
            _ORIGIN,
            "an origin as browsers write it, such as https://app.example or http://localhost:3000, in small "
            "letters and with nothing behind the host or port; or * or null",
        )
    ),
]
Paths = Annotated[Names, AfterValidator(_each(r"/.*", "a path that begins with /, such as /v1/responses"))]
Hosts = Annotated[
    Names,
    AfterValidator(
        _each(
            r"[^\s/@]+",
            "a host without scheme or path, such as images.example.com, *.example.com or a.example:8443",
        )
    ),
]

Folder = Annotated[Path, AfterValidator(_folder)]
"""A folder that is there."""
NewFolder = Annotated[Path, AfterValidator(_new_folder)]
"""A folder that is there or can be made."""

Strings = Annotated[dict[str, str], NoDecode, BeforeValidator(json_object)]
Object = Annotated[dict[str, Any], NoDecode, BeforeValidator(json_object)]
"""A mapping; in a variable or option a JSON object."""
