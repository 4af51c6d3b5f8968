"""`imagecall serve`: the middleware in front of a URL, in this process or in several."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from collections.abc import Mapping
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.supervisors import multiprocess

from .asgi import ImageGenerationMiddleware
from .health import Health
from .proxy import ProxyApp
from .server import Config, Server, Worker, Workers
from .settings import Settings
from .telemetry.flushing import Flushing

__all__ = ["listening", "serve_one", "serve_several", "upstream_app", "uvicorn_options", "worker_app"]

_UPSTREAM = "IMAGECALL_UPSTREAM"

_LONGEST = 1 << 31
"""Milliseconds of a connection's patience that are too many to be told to the system."""

_FOR_PAGES = ("retry-after", "x-request-id", "x-should-retry")
"""Headers of an answer that clients in a browser look at."""


def upstream_app(upstream: str, settings: Mapping[str, Any]) -> tuple[Health, Settings]:
    """Build what `serve` serves; nothing is opened yet.

    Args:
        upstream: the model server's URL.
        settings: by name; the environment's count where one is left out.

    Raises:
        ValueError: one line about what is wrong.
    """
    proxy = ProxyApp(upstream)
    served = ImageGenerationMiddleware(Flushing(proxy), **settings)
    checks = {
        "shutdown": served.check_shutdown,
        "upstream": proxy.check,
        "backend": served.check_backend,
        "store": served.check_store,
    }
    return Health(_open_to_pages(served), checks), served.settings


def _open_to_pages(served: ImageGenerationMiddleware) -> ASGIApp:
    """Let pages of the named origins ask: a model server of one's own seldom does so itself."""
    origins = served.settings.cors_origins
    if not origins:
        return served
    return CORSMiddleware(
        _silent_on_origins(served),
        allow_origins=origins,
        allow_methods=["*"],
        allow_headers=["*"],
        allow_private_network=True,  # browsers ask so before a page from outside reaches this machine
        expose_headers=_FOR_PAGES,
    )


def _silent_on_origins(app: ASGIApp) -> ASGIApp:
    """Leave out what others say of it: many model servers let the pages of all origins read."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = message.get("headers", ())
                kept = [pair for pair in said if not pair[0].lower().startswith(b"access-control-")]
                message = {**message, "headers": kept}
            await send(message)

        await app(scope, receive, answer)

    return serve


def worker_app() -> ASGIApp:
    """Build the same in a worker's process, from its environment."""
    return upstream_app(os.environ[_UPSTREAM], {})[0]


def listening(host: str, port: int, settings: Settings) -> tuple[socket.socket, str]:
    """Open a port; return it and its URL.

    Where the system can (Linux), it closes connections whose clients take nothing for as long as a response
    may last: a server that closes one goes on waiting until what it has written is taken.

    Raises:
        OSError: the port is not to be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        raise OSError(f"cannot listen on {host}:{port} ({reason}); choose --host and --port") from error
    patience = settings.client_patience * 1_000
    if hasattr(socket, "TCP_USER_TIMEOUT") and patience < _LONGEST:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, math.ceil(patience))
    name = f"[{host}]" if ":" in host else host
    return listener, f"http://{name}:{port}"


def serve_one(app: ASGIApp, listener: socket.socket, grace: float, **options: Any) -> None:
    """Serve in this process until it is told to stop.

    Args:
        app: what is served.
        listener: where.
        grace: seconds that open streams have then.
        **options: of `uvicorn.Config`.
    """
    server = Server(Config(app, grace, **options))
    with listener, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def serve_several(
    workers: int,
    listener: socket.socket,
    upstream: str,
    given: Mapping[str, Any],
    settings: Settings,
    log: dict[str, Any],
) -> None:
    """Serve in several processes until this one is told to stop. One that dies is replaced.

    Args:
        workers: how many.
        listener: where; all of them accept from it.
        upstream: the model server's URL.
        given: the settings that were given as options, as text.
        settings: all of them.
        log: the configuration of the workers' logs.
    """
    # Each worker is a new interpreter and reads them again from its environment.
    os.environ[_UPSTREAM] = upstream
    os.environ.update({f"IMAGECALL_{name.upper()}": value for name, value in given.items()})
    config = Config(
        "imagecall.middleware.serving:worker_app",
        settings.shutdown_grace,
        factory=True,
        workers=workers,
        log_config=log,
        **uvicorn_options(settings),
    )
    multiprocess.Process = Worker  # type: ignore[misc]  # the only way to give them a server
    with listener:
        Workers(config, sockets=[listener]).run()


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """Return what a proxy wants of uvicorn."""
    # The upstream has said its own date and name; a WebSocket's messages are bodies, too.
    return {"server_header": False, "date_header": False, "ws_max_size": settings.max_body}
