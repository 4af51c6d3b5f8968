"""Picture files to read: real ones, forged ones."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import PIL.Image
import pytest
from imagecall.middleware.backends.base import Image, ImageError
from imagecall.middleware.images import read_image

LIMITS = {"max_bytes": 1 << 20, "max_pixels": 1 << 20}

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def drawn(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> PIL.Image.Image:
    """Make a red left half and a half-transparent blue right one, as far as the mode can hold it."""
    picture = PIL.Image.new("RGBA", size, (220, 30, 40, 255))
    picture.paste((20, 60, 200, 128), (size[0] // 2, 0, *size))
    return picture.convert(mode)


def encoded(picture: PIL.Image.Image, output_format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, output_format, **options)
    return file.getvalue()


def read(data: bytes, **facts: Any) -> Image:
    return read_image(data, **LIMITS, **facts)


def chunk(name: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png_header(width: int, height: int, *chunks: bytes) -> bytes:
    body = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_MAGIC + chunk(b"IHDR", body) + b"".join(chunks)


def noise() -> PIL.Image.Image:
    grain = random.Random(7).randbytes(32 * 32 * 3)
    return PIL.Image.frombytes("RGB", (32, 32), grain).resize((64, 64))


def refused(function: Callable[..., object], *args: Any, **kwargs: Any) -> ImageError:
    """Call something that must be refused, and give the refusal."""
    with pytest.raises(ImageError) as caught:
        function(*args, **kwargs)
    assert caught.value.message == str(caught.value)
    return caught.value
