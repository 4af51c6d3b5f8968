"""A real uvicorn in a thread with its own event loop, for clients that need the test's own loop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

__all__ = ["serve"]


class _AnnouncedServer(uvicorn.Server):
    """A server that tells another thread when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            with suppress(SystemExit):  # how uvicorn ends when the application does not start
                asyncio.run(self.serve(sockets))
        finally:
            self.settled.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.settled.set()


@contextmanager
def serve(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve an application with its lifespan on 127.0.0.1, on a free port unless told; yield its base URL.

    At the end open connections are cut and the thread has ended.

    Raises:
        RuntimeError: the application did not start.
    """
    config = uvicorn.Config(app, lifespan="on", log_config=None, timeout_graceful_shutdown=1)
    server = _AnnouncedServer(config)
    with socket.create_server(("127.0.0.1", port)) as listener:
        host, port = listener.getsockname()
        thread = threading.Thread(target=server.run, args=([listener],), name="uvicorn")
        thread.start()
        try:
            server.settled.wait()
            if not server.started:
                raise RuntimeError("the application did not start")
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
            thread.join()
