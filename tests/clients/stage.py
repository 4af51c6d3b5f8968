"""What the clients talk to: `imagecall serve`, between a model server and a server with an Images API."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from image_servers import OpenAI, error
from imagecall.middleware.embedded.llm import LanguageModel
from imagecall.middleware.embedded.told_choice import ToldChoice
from imagecall.middleware.local import lifespan
from imagecall.middleware.proxy import ProxyApp
from images_api import KEY, Asked
from matrix import FORBIDDEN
from remembering import RememberingModel
from serving import serve
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp
from tap import Tap

__all__ = ["PainterServer", "Stage", "real_model", "set_stage"]

_COMMAND = str(Path(sys.executable).with_name("imagecall"))


class PainterServer(OpenAI):
    """OpenAI's Images API, which refuses whatever is forbidden."""

    def _refuse(self, asked: Asked, known: frozenset[str]) -> Response | None:
        if "forbidden" in asked.prompt:
            return error(400, FORBIDDEN, code="moderation_blocked")
        return super()._refuse(asked, known)


class Stage:
    """A running server and what is behind it.

    Attributes:
        url: where clients ask, with `/v1`.
        model: the scripted model server; not asked where another one stands in its place.
        painter: the server that makes the pictures.
    """

    def __init__(self, tap: Tap, model: RememberingModel, painter: PainterServer) -> None:
        self.url = f"{tap.url}/v1"
        self.model = model
        self.painter = painter
        self._tap = tap

    def clear(self) -> None:
        """Forget what was asked so far."""
        self._tap.said.clear()
        self.model.asked.clear()
        self.model.read.clear()
        self.painter.asked.clear()

    def requests(self) -> list[str]:
        """Return what the client asked for; a browser's questions whether it may ask are left out."""
        return [one for one in self._tap.requests() if not one.startswith("OPTIONS ")]


def real_model() -> ASGIApp:
    """The demo's language model, which runs as long as the application does."""

    @asynccontextmanager
    async def run(app: Starlette) -> AsyncIterator[None]:
        async with LanguageModel() as url:
            model = ToldChoice(ProxyApp(url))
            async with lifespan(model):
                app.mount("/", model)
                yield

    return Starlette(lifespan=run)


@contextmanager
def set_stage(upstream: ASGIApp | None = None) -> Iterator[Stage]:
    """Start the servers; end them at the end.

    Args:
        upstream: the model server; left out, the scripted one.
    """
    model, painter = RememberingModel(), PainterServer()
    with ExitStack() as stack:
        above = stack.enter_context(serve(upstream or model))
        pictures = stack.enter_context(painter.served())
        server = stack.enter_context(_serving(above, pictures))
        assert server.stdout is not None
        greeting = server.stdout.readline()
        assert "Listening on" in greeting, greeting
        tap = Tap(int(greeting.split()[2].rstrip(",").rpartition(":")[2]))
        stack.enter_context(tap.open())
        yield Stage(tap, model, painter)


@contextmanager
def _serving(upstream: str, pictures: str) -> Iterator[subprocess.Popen[str]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = {
        "port": port,
        "upstream": upstream,
        "backend": "openai",
        "backend-url": pictures,
        "backend-api-key": KEY,
        "backend-model": "gpt-image-2",
        "cors-origins": "*",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [_COMMAND, "serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server
        finally:
            server.terminate()
