"""Lets a language model that cannot see answer requests with pictures in them."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ...events.wire import dumps, loads
from ..body import RequestBody, read_body

__all__ = ["TextOnly"]

_MAX_BODY = 1 << 30
_PICTURE = "input_image"
_BODY_HEADERS = (b"content-length", b"content-encoding")
_UNSEEN = {"type": "input_text", "text": "(a picture)"}


class TextOnly:
    """Leaves `input_image` parts out of the POST requests for a model that would refuse them.

    The model hears all the same that there are pictures: the function that it may call says which of
    them it can change.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope; requests without a picture pass as they are."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await read_body(scope, receive, _MAX_BODY)
        blind = _blind(body.data or b"")
        if blind is not None:
            headers = [pair for pair in scope["headers"] if pair[0] not in _BODY_HEADERS]
            scope = {**scope, "headers": [*headers, (b"content-length", str(len(blind)).encode())]}
            message = {"type": "http.request", "body": blind, "more_body": False}
            body = RequestBody([message], blind)
        await self._app(scope, body.replay(receive), send)


def _blind(data: bytes) -> bytes | None:
    """Return the body without its pictures, None if there are none."""
    if _PICTURE.encode() not in data:
        return None
    try:
        request = loads(data)
    except ValueError:
        return None
    return dumps(_without_pictures(request))


def _without_pictures(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_pictures(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    seen = [inner for inner in value if not (isinstance(inner, dict) and inner.get("type") == _PICTURE)]
    # A message without any part is none.
    return [_without_pictures(inner) for inner in seen] if seen or not value else [_UNSEEN]
