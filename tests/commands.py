"""Running the `imagecall` command in this process, as its entry point does."""

from __future__ import annotations

import logging

import pytest
from imagecall.middleware import cli
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send

__all__ = ["answers", "live", "run", "sse"]


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command; return its exit code."""
    monkeypatch.setattr("sys.argv", ["imagecall", *words])
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:  # the command has set up the log of a process that it takes for its own
        root.handlers[:] = handlers
        root.setLevel(level)
    return int(end.value.code or 0)


def answers(response: Response) -> ASGIApp:
    """An endpoint that answers every request alike."""

    async def answer(request: Request) -> Response:
        return response

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])


def sse(body: bytes) -> ASGIApp:
    """An endpoint that answers every request with this stream."""
    return answers(PlainTextResponse(body, media_type="text/event-stream"))


async def live(receive: Receive, send: Send) -> None:
    """Go through a lifespan in which nothing happens."""
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})
