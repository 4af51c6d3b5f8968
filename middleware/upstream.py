"""Where the model server is: from the path that a client asks for to the URL to ask."""

from __future__ import annotations

from urllib.parse import quote, quote_from_bytes

from starlette.types import Scope
from yarl import URL

__all__ = ["UpstreamURL"]

_TARGET = "".join(map(chr, range(0x21, 0x7F)))
"""What may stand in a request target; anything else is percent-encoded, as it should have come."""

_PATH = "/:@!$&'()*+,;=~"
"""What a path need not encode, RFC 3986, section 3.3, besides letters and digits."""


class UpstreamURL:
    """The base URL of a model server, such as `http://127.0.0.1:8000/v1`.

    The client's path is appended to the base's path, and the longest run of segments that ends
    the one and begins the other is written once. So `/v1/responses` becomes
    `http://h/v1/responses` with `http://h`, `http://h/` and `http://h/v1` alike.

    Attributes:
        origin: scheme, host and port, fit to be shown.

    Args:
        url: http or https, without user, password, query or fragment; anything else is a
            ValueError, whose text never repeats it.
    """

    def __init__(self, url: str) -> None:
        base = _parse(url)
        self.origin = base.origin()
        self._path = base.raw_path.rstrip("/")
        self._endings = tuple(self._path[i:] for i, letter in enumerate(self._path) if letter == "/")

    def target(self, scope: Scope) -> URL | None:
        """Build the URL to ask, path and query byte for byte as the client wrote them.

        None if the client asked for no path at all (`OPTIONS *`, another server's URL).
        """
        path = quote_from_bytes(scope.get("raw_path") or quote(scope["path"], _PATH).encode(), _TARGET)
        mount = quote(scope.get("root_path", "").rstrip("/"), _PATH)
        if _begins(path, mount):
            path = path[len(mount) :]
        if path and not path.startswith("/"):
            return None
        shared = next((ending for ending in self._endings if _begins(path, ending)), "")
        return URL.build(
            scheme=self.origin.scheme,
            authority=self.origin.raw_authority,
            path=self._path + path[len(shared) :] or "/",
            query_string=quote_from_bytes(scope.get("query_string", b""), _TARGET),
            encoded=True,
        )


def _parse(url: str) -> URL:
    # `from None` and no echo: what stands in the URL by mistake may be a password.
    example = "give one such as http://127.0.0.1:8000/v1"
    try:
        parsed = URL(url)
    except ValueError:
        raise ValueError(f"the upstream is not a URL: {example}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"the upstream is not an http:// or https:// URL: {example}")
    if parsed.raw_user is not None or parsed.raw_password is not None:
        raise ValueError("the upstream URL holds a user or password: leave it out, clients bring their own")
    if parsed.raw_query_string or parsed.raw_fragment:
        raise ValueError(f"the upstream URL holds a query or fragment: {example}")
    return parsed


def _begins(path: str, segments: str) -> bool:
    return f"{path}/".startswith(f"{segments}/")
