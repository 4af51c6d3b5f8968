"""Headers as ASGI has them, and which of them a proxy hands on: all but those of one connection.

See RFC 9110, section 7.6.1.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["DIGESTS", "Headers", "RawHeader", "end_to_end", "header", "request_headers", "response_headers"]

RawHeader = tuple[bytes, bytes]
Headers = list[RawHeader]

DIGESTS = frozenset({b"content-digest", b"content-md5", b"digest", b"repr-digest"})
"""Checksums of a body (RFC 9530 and its forerunners); they are wrong once it is rewritten."""

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# The server in front has answered `Expect` already; `Host` names the upstream, not us.
_NOT_FORWARDED = frozenset({b"host", b"expect"})


def header(headers: Iterable[RawHeader], name: bytes) -> bytes:
    """Return the first value of a header, whose `name` is in small letters; b"" if there is none."""
    return next((value for known, value in headers if known.lower() == name), b"")


def request_headers(headers: Iterable[RawHeader]) -> list[tuple[str, str]]:
    """Choose what the upstream gets, as aiohttp wants it. A WebSocket's handshake is made anew."""
    pairs = list(headers)
    dropped = _NOT_FORWARDED
    if any(name.lower() == b"transfer-encoding" for name, _ in pairs):
        dropped |= {b"content-length"}  # RFC 9112, section 6.3: it overrides a length
    return [
        (name.decode("latin-1"), value.decode("utf-8", "replace"))
        for name, value in end_to_end(pairs)
        if name not in dropped and not name.startswith(b"sec-websocket-")
    ]


def response_headers(status: int, headers: Iterable[RawHeader], origin: bytes) -> list[RawHeader]:
    """Choose what the client gets.

    A redirect to the upstream's own `origin` becomes one to a path: the client must not learn of the
    upstream, let alone go there.
    """
    # A 304 may tell the length of the body that it does not have; ASGI servers would wait for it.
    dropped = b"content-length" if status in (204, 304) else b""
    own = origin + b"/"
    return [
        (name, value[len(origin) :] if name == b"location" and value.startswith(own) else value)
        for name, value in end_to_end(headers)
        if name != dropped
    ]


def end_to_end(headers: Iterable[RawHeader]) -> list[RawHeader]:
    """Drop the hop-by-hop headers and those that `Connection` names; the rest keeps its order."""
    pairs = [(name.lower(), value) for name, value in headers]
    dropped = {
        token.strip().lower() for name, value in pairs if name == b"connection" for token in value.split(b",")
    }
    dropped |= _HOP_BY_HOP
    return [pair for pair in pairs if pair[0] not in dropped]
