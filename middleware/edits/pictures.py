"""Turns what a call says of earlier pictures into the pictures themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from ...events.pictures import Picture
from ..backends.base import Image, ImageError
from ..images import decode_base64, read_image
from .fetcher import Fetcher
from .workspace import Workspace

__all__ = ["PictureStore", "Pictures"]

_LARGE = 1 << 20
"""Characters of base64 above which decoding would hold up the other streams and goes to a thread."""


class PictureStore(Protocol):
    """Where the pictures of earlier responses are kept, for one owner."""

    async def picture(self, id: str) -> bytes | None:  # noqa: A002  the wire's own name
        """Return a picture's bare base64, None if it is not there any more."""
        ...


class Pictures:
    """Gets the bytes of pictures for one request.

    Args:
        store: where earlier pictures are; None where nothing is kept.
        fetcher: for http(s) URLs; None where none are fetched.
        workspace: for paths; None where the model may name none.
        max_bytes: the longest file of one picture.
        max_pixels: the largest width times height of one picture.
    """

    def __init__(
        self,
        store: PictureStore | None,
        fetcher: Fetcher | None,
        workspace: Workspace | None,
        *,
        max_bytes: int,
        max_pixels: int,
    ) -> None:
        self._store = store
        self._fetcher = fetcher
        self._workspace = workspace
        self._max_bytes = max_bytes
        self._max_pixels = max_pixels

    async def resolve(self, pictures: Sequence[Picture], mask: Picture | None = None) -> tuple[Image, ...]:
        """Get all of `pictures`, side by side, in their order, and behind them the mask, if there is one.

        Raises:
            ImageError: one of them is gone, may not be had, or is no PNG, JPEG, WebP or GIF within
                the limits; the first failure stops the others.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._image(one, _no_use(one))) for one in pictures]
                if mask is not None:
                    tasks.append(group.create_task(self._image(mask, "The mask cannot be used.")))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return tuple(task.result() for task in tasks)

    async def _image(self, picture: Picture, no_use: str) -> Image:
        """Get one; `no_use` is what to say if the bytes are not fit for it."""
        if picture.data is not None:
            encoded: str | bytes = picture.data
        elif picture.url is not None:
            return self._read(await self._fetched(picture.url), no_use)
        elif picture.path is not None:
            return self._read(await self._from_workspace(picture.path), no_use)
        else:
            encoded = await self._stored(picture.id)
        if len(encoded) < _LARGE:
            return self._decode(encoded, no_use)
        return await asyncio.to_thread(self._decode, encoded, no_use)

    async def _fetched(self, url: str) -> bytes:
        if self._fetcher is None:
            raise ImageError("Pictures are not fetched from URLs here.", code="image_url_not_allowed")
        return await self._fetcher.fetch(url)

    async def _from_workspace(self, path: str) -> bytes:
        if self._workspace is None:
            raise ImageError("There is no workspace to take pictures from.", code="path_not_allowed")
        return await self._workspace.read(path)

    async def _stored(self, identifier: str) -> bytes:
        encoded = None if self._store is None else await self._store.picture(identifier)
        if encoded is None:
            raise ImageError(
                f"The picture {identifier} is no longer available and cannot be edited.",
                code="image_not_found",
            )
        return encoded

    def _decode(self, encoded: str | bytes, no_use: str) -> Image:
        try:
            data = decode_base64(encoded, max_bytes=self._max_bytes)
        except ImageError as error:
            raise _unusable(no_use, error) from error
        return self._read(data, no_use)

    def _read(self, data: bytes, no_use: str) -> Image:
        """Believe the bytes alone, wherever they come from."""
        try:
            return read_image(data, max_bytes=self._max_bytes, max_pixels=self._max_pixels)
        except ImageError as error:
            raise _unusable(no_use, error) from error


def _unusable(no_use: str, error: ImageError) -> ImageError:
    return ImageError(f"{no_use} {error.message}", code=error.code)


def _no_use(picture: Picture) -> str:
    """Say which picture is meant: the model must not take it for the one that it asked for."""
    if picture.url is not None:
        which = "The picture at the given URL"
    elif picture.path is not None:
        which = f"The picture {picture.path[:200]!r}"
    else:
        which = f"The picture {picture.id}" if picture.id else "A picture from the user"
    return f"{which} cannot be edited."
