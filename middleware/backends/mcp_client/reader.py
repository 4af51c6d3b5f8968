"""Fetches what the places of a result hold, until one of them is a picture."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import aiohttp

from ...edits.folders import read_file
from ...images import decode_base64, read_image
from ..base import Image, ImageError
from ..download import Downloads
from .results import Place

__all__ = ["PictureReader", "Resources"]

log = logging.getLogger("imagecall")

_TRIES = 16
"""How many places of one result are looked at."""

_ANY_SIZE = 1 << 40
"""Pixels: whoever asked for the picture has a limit of their own."""

_LARGE = 1 << 20
"""Characters above which decoding would hold up the other streams and goes to a thread."""


class Resources(Protocol):
    """Gives the resources that a result only links to."""

    async def read(self, uri: str) -> list[str]:
        """Read a resource; give what it holds in base64."""
        ...


class PictureReader:
    """Reads pictures from wherever a result may have them.

    Args:
        base: the server's own URL; None for one that has none.
        headers: sent when a picture is fetched from that URL's own origin.
        origins: further origins from which pictures may be fetched.
        files_dir: the one folder from which files may be read; None for no files.
        max_bytes: the longest picture.

    Raises:
        OptionError: an origin is none.
    """

    def __init__(
        self,
        *,
        base: str | None,
        headers: Mapping[str, str],
        origins: Iterable[str],
        files_dir: str | Path | None,
        max_bytes: int,
    ) -> None:
        self._base = base
        self._headers = headers
        self._downloads = Downloads(origins, max_bytes)
        self._files_dir = None if files_dir is None else Path(files_dir)
        self._max_bytes = max_bytes
        self._http: aiohttp.ClientSession | None = None

    async def read(
        self, places: Iterable[Place], resources: Resources, alive: Callable[[], None]
    ) -> tuple[Image | None, ImageError | None]:
        """Give the first picture; else what was wrong with the first place that should have held one.

        Args:
            places: where to look.
            resources: gives what is only linked to.
            alive: called after each answer of somebody else.
        """
        problem: ImageError | None = None
        for count, place in enumerate(places):
            if count == _TRIES:
                break
            try:
                for data in await self._fetch(place, resources):
                    return read_image(data, max_bytes=self._max_bytes, max_pixels=_ANY_SIZE), None
            except ImageError as error:
                log.info("The MCP server's result has a bad %s: %s", place.kind, error.code)
                problem = problem or error
            alive()
        return None, problem

    async def close(self) -> None:
        """Close the connections for downloads."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def _fetch(self, place: Place, resources: Resources) -> list[bytes]:
        match place.kind:
            case "base64":
                return [await self._decode(place.text)]
            case "url":
                return [await self._download(place.text)]
            case "path":
                return await asyncio.to_thread(self._file, place.text)
        return await self._resource(place.text, resources)

    async def _decode(self, text: str) -> bytes:
        if len(text) < _LARGE:
            return decode_base64(text, max_bytes=self._max_bytes)
        return await asyncio.to_thread(decode_base64, text, max_bytes=self._max_bytes)

    async def _resource(self, uri: str, resources: Resources) -> list[bytes]:
        """Ask the server for a resource; a URL or a file that it does not hand out may still be fetched."""
        scheme = uri.partition(":")[0].lower()
        if scheme == "data":
            return [await self._decode(uri)]
        try:
            blobs = await resources.read(uri)
        except ImageError:
            if scheme in ("http", "https"):
                return [await self._download(uri)]
            if scheme == "file" and self._files_dir is not None:
                return await asyncio.to_thread(self._file, uri)
            raise
        return [await self._decode(blob) for blob in blobs]

    async def _download(self, url: str) -> bytes:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            )
        return await self._downloads.fetch(self._http, url, self._base, headers=self._headers)

    def _file(self, name: str) -> list[bytes]:
        """Read a file that a result names; nothing, where files are not read at all.

        Raises:
            ImageError: it lies elsewhere, or cannot be read.
        """
        if self._files_dir is None:
            log.info("The MCP server's result names a file: files are read only where files_dir is set.")
            return []
        try:
            folder = self._files_dir.resolve()
            path = (folder / _path(name)).resolve()
            if not path.is_relative_to(folder):
                raise ImageError("The picture's file lies outside files_dir.", code="path_not_allowed")
            data = read_file(str(folder), path.relative_to(folder), self._max_bytes)
        except FileNotFoundError as error:
            raise ImageError("The picture's file is not there.", code="file_not_readable") from error
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that lead in a circle
            raise ImageError("The picture's file cannot be read.", code="file_not_readable") from error
        if data is None:
            message = f"The picture's file has more than the {self._max_bytes:,} bytes that max_image allows."
            raise ImageError(message, code="image_too_large")
        return [data]


def _path(name: str) -> str:
    return unquote(urlsplit(name).path) if name[:7].lower() == "file://" else name
