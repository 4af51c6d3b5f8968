"""HTTP to one image server: one session, no cookies, no redirects, nothing unbounded, errors in words."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from yarl import URL

from ...telemetry.propagation import trace_headers
from ..base import ImageError
from ..download import Downloads
from ..option_error import OptionError
from .errors import AnswerError, ErrorReader, TryLaterError

__all__ = ["ImagesServer", "parse_url"]

log = logging.getLogger("imagecall")

_CONNECT = 10.0
"""Seconds of one attempt to connect; nothing else is timed here, since painting takes its time."""

_KEEPALIVE = 2.0
"""Seconds for which an idle connection is kept: common servers close theirs after five, and either end may be
late on a busy machine."""

_ERROR_BODY = 64 << 10
_ERROR_TIME = 5.0
"""Bytes of an error's body that are read, and seconds that are waited for them: its status is known."""

_HINTS = {
    401: "; check backend_api_key and backend_headers",
    403: "; check backend_api_key and backend_headers",
    404: "; check backend_url and backend_model",
    405: "; check backend_url",
}

_ENDPOINT = re.compile(r"/(?:images/(?:generations|edits))?/?$")
"""What people add to the base, since it is what they see in their servers' manuals."""

_PRINTABLE = re.compile(r"[\x21-\x7e]+")


def parse_url(url: str) -> URL:
    """Parse the URL of a server.

    Raises:
        OptionError: it is not http or https, or holds a user or a password; its text is not repeated.
    """
    text = url.strip()
    try:
        parsed = URL(text, encoded=bool(_PRINTABLE.fullmatch(text)))
        if parsed.scheme in ("http", "https") and parsed.host and not (parsed.user or parsed.password):
            return parsed.with_fragment(None)
    except ValueError:
        pass
    raise OptionError(
        "url", "The URL of an image server must begin with http:// or https:// and hold no user or password."
    ) from None


class ImagesServer:
    """One server, and who else may hold its pictures.

    Args:
        url: the Images API's base; its query string goes with each request.
        headers: go to the server's own origin and nowhere else.
        downloads: fetches the pictures that the server only names.
        errors: reads its errors.

    Raises:
        OptionError: the URL is malformed; its text is not repeated.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], downloads: Downloads, errors: ErrorReader
    ) -> None:
        self._base = parse_url(url)
        self._headers = headers
        self._downloads = downloads
        self._client: aiohttp.ClientSession | None = None
        self.errors = errors

    def open(self) -> None:
        """Make the session, in a running loop.

        Raises:
            RuntimeError: there is one already.
        """
        if self._client is not None:
            raise RuntimeError("the image backend is open already")
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
            headers={"Accept-Encoding": "identity"},  # nothing here shrinks, and bombs stay small
        )

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def fetch(self, url: str) -> bytes:
        """Fetch a picture that the server only names, from its own origin or one that is allowed.

        Raises:
            ImageError: it is elsewhere, or cannot be fetched.
        """
        root = f"{self._base.origin()}/"
        return await self._downloads.fetch(self._session(), url, root, headers=self._headers)

    @asynccontextmanager
    async def post(
        self, path: str, data: Any, content_type: str | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Post to an endpoint such as `images/edits`; yield the good answer.

        Raises:
            TryLaterError: the server cannot be reached, or is busy.
            ImageError: it answered with an error, or with a redirect.
        """
        own = trace_headers() | ({} if content_type is None else {"Content-Type": content_type})
        try:
            response = await self._session().post(
                self._endpoint(path), data=data, headers={**own, **self._headers}, allow_redirects=False
            )
        except aiohttp.ClientError as error:
            raise self._failed(error) from None  # some of these hold all headers
        async with response:
            log.debug("The image server answered %d to %s.", response.status, path)
            await self._check(response)
            yield response

    def _endpoint(self, path: str) -> URL:
        base = _ENDPOINT.sub("", self._base.raw_path)
        return self._base.with_path(f"{base}/{path}", encoded=True, keep_query=True)

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            raise ImageError(
                "The image backend is not open; enter it with `async with` first.", code="no_backend"
            )
        return self._client

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        if response.status >= 400:
            body = b""
            with suppress(ImageError, TimeoutError):
                async with asyncio.timeout(_ERROR_TIME):
                    while len(body) < _ERROR_BODY and (piece := await self.read_piece(response)):
                        body += piece
            raise self.errors.refusal(response.status, response.headers, body[:_ERROR_BODY])
        if response.status >= 300:
            message = (
                f"The image server answered {response.status}, a redirect, and none is followed; "
                "its URL must be the final one."
            )
            raise AnswerError(message, status=response.status, code="image_backend_redirect")

    def tell(self, error: AnswerError) -> None:
        """Tell whoever runs this why a picture failed: by a code, since a server's words may hold prompts."""
        if not error.is_passing:
            hint = _HINTS.get(error.status, "")
            what = (self._base.origin(), error.status, error.code, hint)
            log.warning("The image server at %s answered %d without a picture: %s%s.", *what)

    def _failed(self, error: aiohttp.ClientError) -> ImageError:
        if not isinstance(error, aiohttp.ClientConnectionError):
            return ImageError("The image server's answer is no valid HTTP.", code="image_backend_error")
        match error:
            case TimeoutError():
                reason = f"no connection within {_CONNECT:g} seconds"
            case OSError(strerror=str(text)) if text:
                reason = text
            case _:
                reason = "the connection failed before an answer came"
        log.warning("The image server at %s cannot be reached: %s.", self._base.origin(), reason)
        # Where it is and why it fails concerns whoever runs this, not the client.
        return TryLaterError("The image server cannot be reached.", code="image_backend_unreachable")

    async def read_piece(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the next bytes of a body; b"" at its end.

        Raises:
            ImageError: the body broke off (`image_backend_cut`).
        """
        try:
            return await response.content.readany()
        except aiohttp.ClientError:
            message = "The image server broke off in the middle of its answer."
            raise ImageError(message, code="image_backend_cut") from None

    async def read_body(self, response: aiohttp.ClientResponse, limit: int, max_image: int) -> bytes:
        """Read a whole body of at most `limit` bytes, enough for a picture of `max_image`.

        Raises:
            ImageError: it is longer (`image_too_large`), or broke off.
        """
        pieces: list[bytes] = []
        size = response.content_length or 0
        if size <= limit:
            size = 0
            while piece := await self.read_piece(response):
                size += len(piece)
                if size > limit:
                    break
                pieces.append(piece)
        if size > limit:
            message = (
                f"The image server's answer is longer than a picture of the {max_image:,} bytes that "
                "max_image allows."
            )
            raise ImageError(message, code="image_too_large")
        return b"".join(pieces)
