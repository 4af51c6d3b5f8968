"""The middleware itself: what is ours, and what passes through untouched."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..events.errors import RequestError
from ..events.wire import NestingError, loads
from .answers import answer_headers, send_request_error, send_stopping, send_store_error
from .backends.base import ImageBackend
from .backends.routing import make_routing
from .background.background import Background
from .body import RequestBody, read_body
from .creation import Creation, Prepared
from .edits.artifacts import Artifacts
from .request_id import identified
from .settings import Settings, load_settings
from .shared import Shared
from .shutdown import Shutdown
from .sinks import JSONSink, SSESink
from .store import Store, named_store
from .stored.opening import StoreOwner
from .stored.owners import Owner, default_owner
from .stored.safe import StoreError
from .surface.routes import Route, Routes
from .surface.surface import Surface
from .telemetry.telemetry import Telemetry
from .websocket.connection import ResponsesSocket

__all__ = ["ImageGenerationMiddleware"]

log = logging.getLogger("imagecall")

_NEEDLES = (b"image_generation", b"ig_", b"previous_response_id", b"item_reference", b'"conversation"')
"""A request without any of these has nothing for us to do, and is not even parsed."""

_ESCAPED = re.compile(rb"\\u00[5-7]")
"""How JSON may also write a small letter or `_`: nobody must get past us by that."""


def _concerns(data: bytes) -> bool:
    if any(needle in data for needle in _NEEDLES):
        return True
    # Only UTF-16 and UTF-32, which some servers read, have zero bytes.
    return b"\0" in data or (rb"\u00" in data and _ESCAPED.search(data) is not None)


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(24)}"


class ImageGenerationMiddleware:
    """Gives any ASGI application with a `/v1/responses` endpoint the hosted image_generation tool.

    `app.add_middleware(ImageGenerationMiddleware, backend="scene")`, or with no argument at all,
    configured by `IMAGECALL_*` variables, as `vllm serve --middleware` builds it.

    Args:
        app: the inner application.
        backend: who makes the pictures: a name, any object with the `ImageBackend` method, or a mapping
            from globs of the declared image model to either; see `make_routing`.
        store: where pictures and responses are kept for later turns: a name, or any object with the
            methods of `Store`; in memory unless told otherwise.
        owner: tells whose a request is; by default the credential in its headers decides.
        new_id: makes an id that begins with the given prefix and an underscore; unguessable by default.
        now: seconds since the epoch.
        telemetry: where spans and measurements go; to the process's own providers unless told otherwise.
        **settings: the settings by name; see `Settings`.

    Attributes:
        settings: all of them.
        shutdown: tells by `begun` whether the server stops. Who stops it without a signal may call `begin`.

    Raises:
        SettingsError: a setting is wrong.
        ImportError: the named backend needs an extra that is not installed.
    """

    def __init__(
        self,
        app: ASGIApp,
        backend: ImageBackend | str | Mapping[str, Any] | None = None,
        *,
        store: Store | str | None = None,
        owner: Owner = default_owner,
        new_id: Callable[[str], str] = _new_id,
        now: Callable[[], float] = time.time,
        telemetry: Telemetry | None = None,
        **settings: Any,
    ) -> None:
        maker, named = (None, {"backend": backend}) if isinstance(backend, str | Mapping) else (backend, {})
        keeper, stored = (None, {"store": store}) if isinstance(store, str) else (store, {})
        self.settings: Settings = load_settings({**settings, **named, **stored})
        self._routing = make_routing(self.settings, maker)
        if not self._routing.present:
            log.warning(
                "No image backend is set: calls of image_generation reach the client as function calls. "
                "Set backend or IMAGECALL_BACKEND."
            )
        self._app = app
        self._new_id = new_id
        self._stores = StoreOwner(
            named_store(self.settings) if keeper is None else keeper, owner, ttl=self.settings.store_ttl
        )
        self._background = Background()
        self._surface = Surface(app, self._stores, self._background, self.settings)
        self.shutdown = Shutdown(self.settings.shutdown_grace)
        folder = self.settings.artifact_dir
        shared = Shared(
            app=app,
            settings=self.settings,
            routing=self._routing,
            slots=asyncio.Semaphore(self.settings.concurrency),
            shutdown=self.shutdown,
            telemetry=telemetry or Telemetry(),
            artifacts=Artifacts(folder) if folder else None,
        )
        self._creation = Creation(shared, self._stores, self._background, new_id=new_id, now=now)
        self._routes = Routes(self.settings.paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection. Whatever is not ours reaches the inner application as it came."""
        if scope["type"] == "lifespan":
            self.shutdown.reopen()
            await self._app(scope, self._closing(receive), send)
        elif scope["type"] == "http":
            with identified(scope, self._new_id):
                await self._answer(scope, receive, send)
        elif scope["type"] == "websocket" and self._routes.is_endpoint(scope):
            socket = ResponsesSocket(
                self._app, self._creation, self.settings, self.shutdown, _concerns, scope, receive, send
            )
            with identified(scope, self._new_id):
                await socket.run()
        else:
            await self._app(scope, receive, send)

    async def check_shutdown(self) -> str:
        """Say whether the server stops; "" if it does not."""
        return "The server is shutting down." if self.shutdown.begun else ""

    async def check_backend(self) -> str:
        """Say whether nobody is set to make pictures; "" if somebody is."""
        return "" if self._routing.present else "No image backend is set."

    async def check_store(self) -> str:
        """Say whether the store is out of order; "" if it answers, or none is set."""
        return "" if await self._stores.answers() else "The store does not answer."

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.find(scope)
        if route is None:
            await self._app(scope, receive, send)
            return
        try:
            if route.response_id:
                await self._surface.answer(route, scope, receive, send)
            else:
                await self._create(route, scope, receive, send)
        except StoreError as error:  # always before anything was sent
            await send_store_error(send, error, answer_headers(scope, self.settings.cors_origins))

    async def _create(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        headers = answer_headers(scope, self.settings.cors_origins)
        try:
            body = await read_body(scope, receive, self.settings.max_body)
            prepared = await self._prepare(scope, body)
        except RequestError as error:
            await send_request_error(send, error, headers)
            return
        if prepared is None:
            await self._app(scope, body.replay(receive), send)
            return
        del body  # it may be megabytes, and the response may take minutes
        if self.shutdown.begun:
            await send_stopping(send, headers)
        elif route.kind == "derive":
            await self._creation.derive(prepared, scope, receive, send)
        else:
            sink = (SSESink if prepared.stream else JSONSink)(send, headers)
            await self._creation.run(prepared, scope, receive, send, sink)

    async def _prepare(self, scope: Scope, body: RequestBody) -> Prepared | None:
        """Parse and lower a body, if it holds a word of ours at all."""
        if body.data is None or not _concerns(body.data):
            return None
        try:
            request = loads(body.data)
        except NestingError as error:
            raise RequestError(f"The request is {error}.") from None
        except ValueError:
            return None  # the inner application says it better
        if not isinstance(request, dict):
            return None
        return await self._creation.prepare(scope, request)

    def _closing(self, receive: Receive) -> Receive:
        """Close what is open when the application shuts down."""

        async def closing() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.shutdown.close()
                await self._background.close()
                await self._stores.close()
                await self._routing.close()
            return message

        return closing
