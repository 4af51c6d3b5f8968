"""The folder whose pictures the model may name by path."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

from ..backends.base import ImageError
from .folders import read_file

__all__ = ["Workspace"]

_MAX_SHOWN = 200
"""Characters of a path that an error repeats."""
_MAX_PATH = 4096
"""Characters of a path that is looked for; systems take no longer ones, and resolving one takes its time."""


class Workspace:
    """Reads files of one folder, and nothing outside it.

    Args:
        folder: may itself be a link.
        max_bytes: the longest file that is read.
    """

    def __init__(self, folder: Path | str, *, max_bytes: int) -> None:
        self._folder = Path(folder).absolute()
        self._max_bytes = max_bytes

    async def read(self, path: str) -> bytes:
        """Read a regular file.

        A relative path counts from the folder; an absolute one must lead into it. Links are followed
        as long as they stay inside, and `~` is a name like any other.

        Raises:
            ImageError: the path leads elsewhere (`path_not_allowed`), there is no such file
                (`image_not_found`), or it is too long (`image_too_large`). Only the path as it was
                given is repeated.
        """
        return await asyncio.to_thread(self._read, path)

    def _read(self, path: str) -> bytes:
        shown = repr(path if len(path) <= _MAX_SHOWN else path[:_MAX_SHOWN] + "…")
        try:
            root = os.path.realpath(self._folder)
            real = _resolved(self._folder, path)
            inside = real.is_relative_to(root)
            data = read_file(root, real.relative_to(root), self._max_bytes) if inside else None
        except (OSError, ValueError):  # the latter for what can be no path: a NUL, a lone surrogate
            raise ImageError(
                f"There is no readable picture file {shown} in the workspace.", code="image_not_found"
            ) from None
        if not inside:
            raise ImageError(f"The path {shown} leads out of the workspace.", code="path_not_allowed")
        if data is None:
            raise ImageError(
                f"The file {shown} is too long; max_image allows {self._max_bytes:,} bytes.",
                code="image_too_large",
            )
        return data


def _resolved(folder: Path, path: str) -> Path:
    """Free a path of links. Should one come in afterwards, opening what it replaced fails."""
    if len(path) > _MAX_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return Path(os.path.realpath(folder / path))
