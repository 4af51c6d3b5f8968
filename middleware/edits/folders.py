"""Opening a folder so that no symbolic link, not even one put there meanwhile, leads out of it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["open_folder", "read_file"]


@contextmanager
def open_folder(root: str, *names: str) -> Iterator[int]:
    """Open the folder `names[0]/names[1]/…` below `root`; give its descriptor, to be used as `dir_fd`.

    Each name is looked up in the folder opened before it, and none may be a link: between a check of a
    path and its use somebody can exchange a folder for a link, between two descriptors nobody can.
    `root` itself is the operator's and may be a link.

    Raises:
        OSError: there is no such folder, a link is on the way, or the system cannot open files
            relative to a folder (Windows).
    """
    if os.open not in os.supports_dir_fd:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    with ExitStack() as opened:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        opened.callback(os.close, folder)
        for name in names:
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            opened.callback(os.close, folder)
        yield folder


def read_file(root: str, path: Path, max_bytes: int) -> bytes | None:
    """Read a regular file below `root` by a path that is free of links; None if it is longer than that.

    Raises:
        OSError: there is no such file, or it is none: a pipe would be waited for, a device has no end.
    """
    with open_folder(root, *path.parts[:-1]) as folder:
        # Without O_NONBLOCK a named pipe would be waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path.name or ".", flags, dir_fd=folder)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > max_bytes:
        os.close(descriptor)  # `open` leaves a folder's open when it refuses it
        if stat.S_ISREG(facts.st_mode):
            return None
        raise FileNotFoundError
    with open(descriptor, "rb") as file:  # noqa: PTH123  there is no path any more
        data = file.read(max_bytes + 1)  # it may grow meanwhile
    return data if len(data) <= max_bytes else None
