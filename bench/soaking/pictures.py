"""Pictures that say in their pixels what they were made from, so that none can be taken for another."""

from __future__ import annotations

import base64
import io
import random
from hashlib import blake2b

from PIL import Image

__all__ = ["BROKEN", "HUGE", "mark_of", "paint", "read_mark"]

BROKEN = "broken"
"""A prompt with this word cannot be painted."""
HUGE = "huge"
"""A prompt with this word makes a picture of 270 KB; others have 27 KB."""

_SIDE, _HUGE_SIDE = 96, 300
_MARK = 24
"""Bytes: the first eight pixels."""


def mark_of(prompt: str, *sources: bytes) -> bytes:
    """Return what stands in the picture of a prompt, made from the pictures with these marks."""
    return blake2b(b"".join((prompt.encode(), *sources)), digest_size=_MARK).digest()


def paint(mark: bytes, *, huge: bool = False) -> bytes:
    """Make a PNG with a mark and noise."""
    side = _HUGE_SIDE if huge else _SIDE
    noise = random.Random(mark).randbytes(side * side * 3 - _MARK)
    with io.BytesIO() as file:
        Image.frombytes("RGB", (side, side), mark + noise).save(file, "PNG", compress_level=0)
        return file.getvalue()


def read_mark(data: bytes | str) -> bytes:
    """Read the mark of a PNG, or of one in base64."""
    encoded = base64.b64decode(data) if isinstance(data, str) else data
    with Image.open(io.BytesIO(encoded)) as picture:
        return picture.tobytes()[:_MARK]
