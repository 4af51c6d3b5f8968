"""Gets the pictures that a user's http(s) URLs point to.

A server that fetches what strangers name can be made to ask its own network. Therefore nothing is asked
but hosts that the operator allows, and only after every address of a host has proved to be public. The
connection then goes to the addresses that were checked: a name that resolves differently the second
time (DNS rebinding) is never resolved a second time. A redirect is a new URL with all checks.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from ipaddress import IPv4Address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from ..backends.base import ImageError
from .addresses import is_public

__all__ = ["Fetcher", "Resolve", "resolve_host"]

log = logging.getLogger("imagecall")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to IP addresses, none if there is no such host."""

_MAX_REDIRECTS = 5
_TIMEOUT = 30.0
_REDIRECTS = (301, 302, 303, 307, 308)

_HEADERS = {
    "User-Agent": "imagecall",
    "Accept": "image/png, image/jpeg, image/webp, image/gif",
    "Accept-Encoding": "identity",
}

_ENCODED = re.compile(r"[!-~]+")
"""A URL that can go out as it is: many are signed, and quoting them anew breaks the signature."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Ask the system's resolver for a host's addresses."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # the latter for what can be no name
        return []
    return [str(address[0]) for *_, address in found]


class Fetcher:
    """Fetches files by URL.

    Only http and https, without user or password in the URL. The answer's Content-Type is not looked
    at; neither cookies, credentials nor the environment's proxies are used.

    Args:
        hosts: globs of the hosts that may be asked, such as `images.example.com`, `*.example.com` or
            `*` for any public one; in ASCII (punycode). Without a port they mean the scheme's own,
            with one (`cdn.example.com:8443`, `*:*`) that one.
        max_bytes: the longest file.
        timeout: seconds for one fetch, redirects included.
        resolve: finds a host's addresses.
        is_public: judges an address.
        tls: whom to trust; the system's certificates unless told otherwise. Names are always verified.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        max_bytes: int,
        timeout: float = _TIMEOUT,
        resolve: Resolve = resolve_host,
        is_public: Callable[[str], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = tuple(_split(glob.lower()) for glob in hosts)
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._resolve = resolve
        self._is_public = is_public
        self._tls = tls

    async def fetch(self, url: str) -> bytes:
        """Fetch a file, following at most five redirects.

        Raises:
            ImageError: the URL or one that it leads to may not be asked (`image_url_not_allowed`),
                or it gave nothing (`image_fetch_failed`), too much (`image_too_large`), or not in
                time (`image_fetch_timeout`). Addresses are never told.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._follow(url)
        except TimeoutError:
            raise ImageError(
                f"The picture's URL gave no whole file within {self._timeout:g} seconds.",
                code="image_fetch_timeout",
            ) from None
        except (aiohttp.ClientError, OSError):
            log.debug("a picture's URL could not be fetched", exc_info=True)
            raise _failed("could not be fetched") from None

    async def _follow(self, url: str) -> bytes:
        target = _parse(url)
        for _ in range(_MAX_REDIRECTS + 1):
            async with self._asked(target, await self._addresses(target)) as response:
                location = response.headers.get("Location") if response.status in _REDIRECTS else None
                if location is None:
                    return await self._read(response)
            target = _parse(location, target)
        raise _failed(f"is redirected more than {_MAX_REDIRECTS} times")

    async def _addresses(self, target: URL) -> Sequence[str]:
        """Return the addresses that may be connected to; refuse a host that must not be asked."""
        host, port = target.raw_host or "", target.port or 0
        if not any(_allows(glob, host.lower(), target) for glob in self._hosts):
            raise _refused("is not on a host that may be asked for pictures")
        addresses = [] if _is_odd_number(host) else await self._resolve(host, port)
        # One sentence for both: whether an inner name exists is nobody's business.
        if not addresses or not all(self._is_public(address) for address in addresses):
            raise _refused("is not on a host that can be found on the public internet")
        return addresses

    @asynccontextmanager
    async def _asked(self, target: URL, addresses: Sequence[str]) -> AsyncIterator[aiohttp.ClientResponse]:
        # A session of its own for each URL: no cookie outlives its answer.
        connector = aiohttp.TCPConnector(
            resolver=_Checked(addresses), use_dns_cache=False, force_close=True, ssl=self._tls or True
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                headers=_HEADERS,
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.get(target, allow_redirects=False) as response,
        ):
            yield response

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if response.status != 200:
            raise _failed(f"was answered with status {response.status}")
        if (response.content_length or 0) > self._max_bytes:
            raise self._too_long()
        chunks: list[bytes] = []
        left = self._max_bytes
        async for chunk in response.content.iter_any():
            left -= len(chunk)
            if left < 0:
                raise self._too_long()
            chunks.append(chunk)
        return b"".join(chunks)

    def _too_long(self) -> ImageError:
        return ImageError(
            f"The picture's URL gives more than the {self._max_bytes:,} bytes that max_image allows.",
            code="image_too_large",
        )


class _Checked(AbstractResolver):
    """Knows the addresses that were checked, for whatever name."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002  any that was found
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing open."""


def _is_odd_number(host: str) -> bool:
    """Tell `127.1`, `2130706433` and the like, which resolvers read as addresses, from plain ones.

    The connector would take them for addresses, too, and have them resolved once more.
    """
    if not host.replace(".", "").isdigit():
        return False
    try:
        IPv4Address(host)
    except ValueError:
        return True
    return False


def _split(glob: str) -> tuple[str, str | None]:
    host, colon, port = glob.rpartition(":")
    if not colon or not (port == "*" or port.isdecimal()):
        host, port = glob, ""
    if host.startswith("[") and host.endswith("]"):  # an IPv6 address, not a class of characters
        host = host[1:-1]
    return host, port or None


def _allows(glob: tuple[str, str | None], host: str, target: URL) -> bool:
    names, ports = glob
    if not fnmatchcase(host, names):
        return False
    return target.is_default_port() if ports is None else fnmatchcase(str(target.port), ports)


def _parse(text: str, base: URL | None = None) -> URL:
    """Read a URL, or a redirect's reference from `base`; refuse what cannot be asked for a picture."""
    try:
        url = URL(text, encoded=_ENCODED.fullmatch(text) is not None)
        if base is not None:
            url = base.join(url)
        usable = url.scheme in ("http", "https") and url.raw_host and url.port
    except ValueError:
        raise _refused("is not a valid URL") from None
    if not usable:
        raise _refused("is not an http or https URL")
    if url.user is not None or url.password is not None:
        raise _refused("holds a user or password")
    return url


def _refused(why: str) -> ImageError:
    return ImageError(f"The picture's URL {why}.", code="image_url_not_allowed")


def _failed(why: str) -> ImageError:
    return ImageError(f"The picture's URL {why}.", code="image_fetch_failed")
