"""ASGI applications for the measurements in one process: `python -m bench.apps NAME FD`."""

from __future__ import annotations

import asyncio
import re
import socket
import sys

import uvicorn
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from starlette.types import ASGIApp, Receive, Scope, Send

from .stream import call_turn, picture, renamed, text_turn
from .upstream import INTERVAL

_MODEL = re.compile(rb'"model": ?"(\w+)-(\d+)"')
_SMALL = picture(300)


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as the upstream does, with one send for each event."""
    if scope["type"] == "lifespan":
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    asked = _MODEL.search(body)
    assert asked is not None
    kind, frames = asked[1], text_turn(int(asked[2]))
    if kind == b"picture" and b"function_call_output" not in body:
        frames = call_turn()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
        }
    )
    for frame in renamed(frames):
        if kind == b"paced":
            await asyncio.sleep(INTERVAL)
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def no_op(scope: Scope, receive: Receive, send: Send) -> None:
    """Wrap `send` and do nothing: what any middleware of this kind costs at least."""

    async def sending(message: dict[str, object]) -> None:
        await send(message)

    await bare(scope, receive, sending)  # type: ignore[arg-type]  # its messages are dicts


class _Painter:
    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        return _SMALL


def _app(name: str) -> ASGIApp:
    if name == "imagecall":
        return ImageGenerationMiddleware(bare, backend=_Painter())
    return {"bare": bare, "no-op": no_op}[name]


if __name__ == "__main__":
    config = uvicorn.Config(_app(sys.argv[1]), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[2]))])
