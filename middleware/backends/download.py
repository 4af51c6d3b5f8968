"""A picture that an image server only names: fetched from that server's own origin and from nowhere else.

A result is text that a model or a stranger may have steered. Whoever follows any URL in it lets them reach
whatever this machine can reach, so origins are compared, not addresses: the server itself may well be on a
private one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import aiohttp
from yarl import URL

from .base import ImageError
from .option_error import OptionError

__all__ = ["Downloads"]

log = logging.getLogger("imagecall")

_REDIRECTS = 3

_LONGEST = 16_384
"""Characters of a URL: signed ones have some hundreds, and no server takes more."""


class Downloads:
    """Fetches pictures from allowed origins.

    Args:
        origins: allowed beside the server's own, such as `https://cdn.example.com`.
        max_bytes: the longest body.

    Raises:
        OptionError: an origin is none.
    """

    def __init__(self, origins: Iterable[str], max_bytes: int) -> None:
        self._origins = {_configured(origin) for origin in origins}
        self._max_bytes = max_bytes

    async def fetch(
        self,
        session: aiohttp.ClientSession,
        url: str,
        base: str | None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Fetch one picture, following redirects only among the allowed origins.

        Args:
            session: makes the requests.
            url: what the result names, absolute or relative to `base`.
            base: the server's own URL; None if it has none.
            headers: for the server's own origin only, such as its key.

        Raises:
            ImageError: the URL is not allowed, the answer is no success, or too long.
        """
        own = None if base is None else URL(base).origin()
        target = _parsed(url, base)
        for _ in range(_REDIRECTS + 1):
            self._check(target, own)
            sent = headers if _origin(target) == own else None
            try:
                async with session.get(
                    target, headers={**(sent or {}), "Accept-Encoding": "identity"}, allow_redirects=False
                ) as answer:
                    location = answer.headers.get("Location")
                    if answer.status not in (301, 302, 303, 307, 308) or location is None:
                        return await self._body(answer)
            except (aiohttp.ClientError, TimeoutError) as error:
                message = f"The picture could not be fetched from {target.host}: {type(error).__name__}."
                raise ImageError(message, code="image_download_failed") from error
            target = _parsed(location, str(target))
        raise ImageError("The picture's URL leads from one to the next.", code="image_download_failed")

    def _check(self, target: URL, own: URL | None) -> None:
        origin = _origin(target)
        if origin is None or target.raw_user is not None:
            raise ImageError("The picture's URL is not a plain http or https URL.", code="url_not_allowed")
        if origin != own and origin not in self._origins:
            message = (
                f"The picture's URL is on {str(origin)[:100]}, which is not the image server's own origin. "
                "Allow it with backend_origins."
            )
            log.warning("%s", message)
            raise ImageError(message, code="url_not_allowed")

    async def _body(self, answer: aiohttp.ClientResponse) -> bytes:
        if answer.status != 200:
            message = f"The picture could not be fetched: {answer.url.host} answered HTTP {answer.status}."
            raise ImageError(message, code="image_download_failed")
        body = bytearray()
        async for piece in answer.content.iter_any():
            body += piece
            if len(body) > self._max_bytes:
                message = f"The picture has more than the {self._max_bytes:,} bytes that max_image allows."
                raise ImageError(message, code="image_too_large")
        return bytes(body)


def _parsed(url: str, base: str | None) -> URL:
    unreadable = ImageError("The picture's URL cannot be read.", code="url_not_allowed")
    if len(url) > _LONGEST:
        raise unreadable
    try:
        target = URL(url) if base is None else URL(base).join(URL(url))
        _ = _origin(target)  # only then the host is decoded
    except ValueError:
        raise unreadable from None
    return target


def _origin(url: URL) -> URL | None:
    return url.origin() if url.scheme in ("http", "https") and url.host else None


def _configured(origin: str) -> URL:
    try:
        found = _origin(URL(origin))
    except ValueError:
        found = None
    if found is None:
        message = f"{origin[:60]!r} is no origin: give one such as https://cdn.example.com"
        raise OptionError("origins", message)
    return found
