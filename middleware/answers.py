"""Answers of our own: OpenAI's error envelope, before any byte of a stream."""

from __future__ import annotations

from starlette.types import Scope, Send

from ..events.errors import RequestError
from ..events.wire import dumps
from .headers import Headers, header
from .request_id import returned
from .shutdown import STOPPING, STOPPING_CODE
from .stored.safe import StoreError

__all__ = [
    "answer_headers",
    "error_body",
    "is_foreign",
    "send_json",
    "send_request_error",
    "send_stopping",
    "send_store_error",
    "send_upstream_error",
]

_FINAL = (b"x-should-retry", b"false")
"""Tells the official SDKs not to ask (and paint) again by themselves."""
_SOON = (b"retry-after", b"5")
"""Seconds in which the next server is likely to have started."""
_LATER = (b"retry-after", b"5")
"""Seconds for which a store that timed out is not asked."""


def error_body(message: str, *, kind: str, param: str | None = None, code: str | None = None) -> bytes:
    """Make the envelope that every OpenAI client knows how to show."""
    return dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


def answer_headers(scope: Scope, origins: tuple[str, ...]) -> Headers:
    """Return what belongs into the head of an answer of our own: the request's name, and CORS.

    A page of an allowed origin may read the answer, which no CORS middleware of the inner app sees.
    """
    origin = header(scope["headers"], b"origin")
    if not origin or not _named(origin, origins):
        return returned([])
    return returned([(b"access-control-allow-origin", origin), (b"vary", b"Origin")])


def is_foreign(scope: Scope, origins: tuple[str, ...]) -> bool:
    """Tell whether a page asks that is neither from here nor of an allowed origin.

    RFC 6455, section 10.2: browsers let any page open a WebSocket anywhere, and leave it to the server to
    look at the page's origin. A default port stands neither there nor in `Host`.
    """
    origin, host = (header(scope["headers"], name).lower() for name in (b"origin", b"host"))
    return bool(origin) and origin.partition(b"://")[2] != host and not _named(origin, origins)


def _named(origin: bytes, origins: tuple[str, ...]) -> bool:
    return "*" in origins or origin.decode("latin-1") in origins


async def send_json(send: Send, status: int, body: bytes, headers: Headers) -> None:
    """Send a whole JSON answer."""
    own = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *own]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_request_error(send: Send, error: RequestError, headers: Headers) -> None:
    """Tell the client what is wrong with its request."""
    body = error_body(error.message, kind="invalid_request_error", param=error.param, code=error.code)
    await send_json(send, error.status, body, [*headers, _FINAL])


async def send_stopping(send: Send, headers: Headers) -> None:
    """Tell the client that this server stops. Whoever asks again reaches another one, or the next."""
    body = error_body(STOPPING, kind="server_error", code=STOPPING_CODE)
    await send_json(send, 503, body, [*headers, _SOON])


async def send_store_error(send: Send, error: StoreError, headers: Headers) -> None:
    """Tell the client that the store is at fault. It may well ask again by itself: nothing was begun."""
    body = error_body(str(error), kind="server_error", code=error.code)
    await send_json(send, 503, body, [*headers, _LATER])


async def send_upstream_error(send: Send, message: str, headers: Headers) -> None:
    """Tell the client that the model server is at fault."""
    await send_json(send, 502, error_body(message, kind="server_error"), [*headers, _FINAL])
