"""Pictures written to files."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backends.base import Image, ImageError
from ..images import decode_base64, read_image

__all__ = ["SavedPicture", "save_pictures"]

MAX_FILE = 1 << 30
"""Bytes: a picture that has come is kept, whatever its size."""


@dataclass(frozen=True, slots=True)
class SavedPicture:
    """A picture in a file.

    Attributes:
        file: where it is.
        size: `WIDTHxHEIGHT` in pixels; None where neither the file nor the endpoint tells.
        format: such as `png`.
        revised_prompt: what was really drawn, as far as the endpoint tells.
        image: the picture itself; None where it is in no format that is known here.
    """

    file: Path
    size: str | None
    format: str
    revised_prompt: str | None
    image: Image | None

    def facts(self) -> dict[str, Any]:
        """Return what a script wants to know, for JSON."""
        return {
            "file": str(self.file),
            "size": self.size,
            "format": self.format,
            "revised_prompt": self.revised_prompt,
        }


def save_pictures(items: Iterable[dict[str, Any]], output: Path | None) -> list[SavedPicture]:
    """Write the pictures of finished items to files.

    Args:
        items: `image_generation_call` items with a result.
        output: the file for the first picture; more of them are numbered after it. None takes
            `picture.png` and so on in the current folder, and no file that is there already.

    Raises:
        ImageError: a result is not base64.
        RuntimeError: a file cannot be written.
    """
    saved: list[SavedPicture] = []
    for item in items:
        saved.append(_save(item, output, overwrite=not saved))
    return saved


def _save(item: dict[str, Any], output: Path | None, *, overwrite: bool) -> SavedPicture:
    data = decode_base64(item["result"], max_bytes=MAX_FILE)
    image: Image | None = None
    size, kind = item.get("size"), str(item.get("output_format") or "png")
    with contextlib.suppress(ImageError):
        image = read_image(data, max_bytes=MAX_FILE, max_pixels=MAX_FILE)
        size, kind = f"{image.width}x{image.height}", image.output_format
    suffix = kind if kind.isalnum() else "png"  # an endpoint must not choose the folder
    file = output if output and overwrite else _free_name(output or Path(f"picture.{suffix}"))
    try:
        file.write_bytes(data)
    except OSError as error:
        raise RuntimeError(f"{file} cannot be written: {error.strerror}") from error
    return SavedPicture(file, size, kind, item.get("revised_prompt"), image)


def _free_name(like: Path) -> Path:
    names = (like.with_stem(f"{like.stem}-{number}") if number else like for number in itertools.count())
    return next(name for name in names if not name.exists())
