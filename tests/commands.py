"""Running the `imagecall` command in this process, as its entry point does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from imagecall.middleware import cli
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send

__all__ = ["answers", "live", "run", "sse"]

_LOGGERS = ("", "imagecall", "uvicorn", "uvicorn.access", "uvicorn.asgi", "uvicorn.error")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command; return its exit code."""
    monkeypatch.setattr("sys.argv", ["imagecall", *words])
    with _log_as_it_was(), pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@contextmanager
def _log_as_it_was() -> Iterator[None]:
    """Undo what a command, or uvicorn for it, makes of the log of a process that it takes for its own."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(one, one.handlers[:], one.level, one.propagate) for one in loggers]
    try:
        yield
    finally:
        for one, handlers, level, propagate in before:
            one.handlers[:], one.propagate = handlers, propagate
            one.setLevel(level)


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
