"""Opening a folder so that no symbolic link, not even one put there meanwhile, leads out of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["open_folder"]


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
