"""Writes finished pictures into a folder, beside handing them to the client."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from ..backends.base import Image
from .folders import open_folder

__all__ = ["Artifacts", "file_name"]

log = logging.getLogger("imagecall")

_MAX_BYTES = 32 << 20
"""The longest file that is written."""

_MAX_NAME = 100
"""Characters kept of an id: gateways make ids of several hundred, file systems take names of 255 bytes."""

_MAX_SECONDS = 30.0
"""A folder on a network that has gone silent must not keep the picture from the client."""

_MAX_CLASHES = 100
"""Files of one name, told apart by a number; more are no accident."""

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]|^\.")


def file_name(identifier: str) -> str:
    """Make a file's name of an id: `[A-Za-z0-9._-]`, no dot in front, at most 109 characters.

    An id that cannot be kept as it is gets a part of its hash, so that two of them stay apart.
    """
    name = _FOREIGN.sub("_", identifier)[:_MAX_NAME]
    if name and name == identifier:
        return name
    digest = hashlib.sha256(identifier.encode(errors="surrogatepass")).hexdigest()
    return f"{name}-{digest[:8]}"


class Artifacts:
    """Keeps each picture as `<folder>/<response id>/<item id>.<format>`.

    Args:
        folder: made at the first picture; it may itself be a link, which nothing below it may be.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder).absolute()

    async def write(self, response_id: str, item_id: str, image: Image) -> Path | None:
        """Write a picture and return its absolute path; None after a warning in the log.

        A file appears under its name only when it is whole, and never replaces another: a second one
        of that name is numbered.
        """
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                return await asyncio.to_thread(self._write, file_name(response_id), file_name(item_id), image)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            log.warning("%s was not written into the artifact folder: %s", file_name(item_id), reason)
            return None

    def _write(self, response: str, item: str, image: Image) -> Path:
        if len(image.data) > _MAX_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        self._folder.mkdir(parents=True, exist_ok=True)
        root = str(self._folder)
        with open_folder(root) as top, suppress(FileExistsError):
            os.mkdir(response, 0o755, dir_fd=top)
        with open_folder(root, response) as folder:
            part = f".{item}.{secrets.token_hex(8)}.part"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(part, flags, 0o644, dir_fd=folder)
            try:
                with open(descriptor, "wb") as file:  # noqa: PTH123  there is no path yet
                    file.write(image.data)
                name = _publish(part, item, image.output_format, folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folder)
        return self._folder / response / name


def _publish(part: str, stem: str, suffix: str, folder: int) -> str:
    """Give a whole file the first of its names that is free."""
    for count in range(1, _MAX_CLASHES + 1):
        name = f"{stem}.{suffix}" if count == 1 else f"{stem}-{count}.{suffix}"
        try:
            _move(part, name, folder)
        except FileExistsError:
            continue
        return name
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))


def _move(part: str, name: str, folder: int) -> None:
    """Rename without replacing anything, which only a link can do in one step.

    Raises:
        FileExistsError: the name is taken, be it by a link that leads nowhere.
    """
    try:
        os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError:  # taken, or a file system without hard links: then take the name first
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder))
        try:
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise
