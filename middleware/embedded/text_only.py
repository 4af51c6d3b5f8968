"""Lets a language model that cannot see answer requests with pictures in them."""

from __future__ import annotations

from typing import Any

from ...events.wire import dumps, loads
from .rewriting import Rewriting

__all__ = ["TextOnly"]

_PICTURE = "input_image"
_UNSEEN = {"type": "input_text", "text": "(a picture)"}


class TextOnly(Rewriting):
    """Leaves `input_image` parts out of the POST requests for a model that would refuse them.

    The model hears all the same that there are pictures: the function that it may call says which of
    them it can change.
    """

    def rewrite(self, data: bytes) -> bytes | None:
        """Return the body without its pictures, None if there are none."""
        if _PICTURE.encode() not in data:
            return None
        try:
            request = loads(data)
        except ValueError:
            return None
        return dumps(_without_pictures(request))


def _without_pictures(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_pictures(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    seen = [inner for inner in value if not (isinstance(inner, dict) and inner.get("type") == _PICTURE)]
    # A message without any part is none.
    return [_without_pictures(inner) for inner in seen] if seen or not value else [_UNSEEN]
