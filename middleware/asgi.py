"""The middleware itself: what is ours, and what passes through untouched."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..events.errors import RequestError
from ..events.lowering import LoweredRequest, lower_request
from ..events.translator import Translator
from ..events.wire import dumps, loads
from .answers import cors_headers, send_request_error
from .backends.base import ImageBackend
from .body import RequestBody, header, read_body
from .exchange import Exchange, Shared
from .runner import BackendOwner
from .settings import Settings, load_settings
from .sinks import JSONSink, SSESink
from .turns import rewritten_scope

__all__ = ["ImageGenerationMiddleware"]

log = logging.getLogger("imagecall")

_NEEDLES = (b"image_generation", b"ig_", b"previous_response_id")
"""A request without any of these has nothing for us to do, and is not even parsed."""


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(24)}"


class ImageGenerationMiddleware:
    """Gives any ASGI application with a `/v1/responses` endpoint the hosted image_generation tool.

    `app.add_middleware(ImageGenerationMiddleware, backend="scene")`, or with no argument at all,
    configured by `IMAGECALL_*` variables, as `vllm serve --middleware` builds it.

    Args:
        app: the inner application.
        backend: who makes the pictures: a name, or any object with the `ImageBackend` method.
        new_id: makes an id that begins with the given prefix and an underscore; unguessable by default.
        now: seconds since the epoch.
        **settings: the settings by name; see `Settings`.

    Raises:
        SettingsError: a setting is wrong.
    """

    def __init__(
        self,
        app: ASGIApp,
        backend: ImageBackend | str | None = None,
        *,
        new_id: Callable[[str], str] = _new_id,
        now: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        named = {"backend": backend} if isinstance(backend, str) else {}
        self.settings: Settings = load_settings({**settings, **named})
        maker = backend if backend is not None and not isinstance(backend, str) else _named(self.settings)
        if maker is None:
            log.warning(
                "No image backend is set: calls of image_generation reach the client as function calls. "
                "Set backend or IMAGECALL_BACKEND."
            )
        self._app = app
        self._owner = BackendOwner(maker)
        self._shared = Shared(app, self.settings, self._owner, asyncio.Semaphore(self.settings.concurrency))
        self._lowering = self.settings.lowering(backend=self._owner.present)
        self._limits = self.settings.limits()
        self._paths = frozenset(path.rstrip("/") for path in self.settings.paths)
        self._new_id = new_id
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection. Whatever is not ours reaches the inner application as it came."""
        if scope["type"] == "lifespan":
            await self._app(scope, self._closing(receive), send)
        elif scope["type"] == "http" and self._may_be_ours(scope):
            await self._answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _may_be_ours(self, scope: Scope) -> bool:
        if scope["method"] != "POST":
            return False
        path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
        if path.rstrip("/") not in self._paths:
            return False
        kind = header(scope, b"content-type")
        return not kind or b"json" in kind.lower()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope, receive, self.settings.max_body)
            lowered = self._lower(body)
        except RequestError as error:
            headers = cors_headers(scope, self.settings.cors_origins)
            await send_request_error(send, error, headers)
            return
        if lowered is None:
            await self._app(scope, body.replay(receive), send)
            return
        upstream_body = dumps(lowered.body)
        if lowered.tool is None:
            await self._app(rewritten_scope(scope, len(upstream_body)), _once(upstream_body, receive), send)
            return
        await self._translate(scope, receive, send, lowered, upstream_body)

    async def _translate(
        self, scope: Scope, receive: Receive, send: Send, lowered: LoweredRequest, body: bytes
    ) -> None:
        translator = Translator(
            lowered,
            new_id=self._new_id,
            now=self._now,
            limits=self._limits,
            strict_arguments=self.settings.strict_arguments,
            feedback=self.settings.feedback,
        )
        sink = (SSESink if lowered.stream else JSONSink)(
            send, cors_headers(scope, self.settings.cors_origins)
        )
        await Exchange(self._shared, scope, receive, send, translator, sink).run(body)

    def _lower(self, body: RequestBody) -> LoweredRequest | None:
        """Parse and lower a body, if it holds a word of ours at all."""
        if body.data is None or not any(needle in body.data for needle in _NEEDLES):
            return None
        try:
            request = loads(body.data)
        except ValueError:
            return None  # the inner application says it better
        if not isinstance(request, dict):
            return None
        return lower_request(request, {}, self._lowering)

    def _closing(self, receive: Receive) -> Receive:
        """Close the backend when the application shuts down."""

        async def closing() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._owner.close()
            return message

        return closing


def _named(settings: Settings) -> ImageBackend | None:
    if settings.backend is None:
        return None
    from .backends.scene import SceneBackend

    return SceneBackend()


def _once(body: bytes, receive: Receive) -> Receive:
    pending = [body]

    async def rest() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return rest
