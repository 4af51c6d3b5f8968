"""An Images API whose pictures take a while: `python -m bench.soaking.painter FD PACE`."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import socket
import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .pictures import BROKEN, HUGE, mark_of, paint, read_mark

_SECONDS = (0.05, 0.8)
"""For one picture, and for each preview."""


async def _wait() -> None:
    await asyncio.sleep(float(sys.argv[2]) * random.uniform(*_SECONDS))


def _b64(mark: bytes, *, huge: bool = False) -> str:
    return base64.b64encode(paint(mark, huge=huge)).decode()


async def _generate(request: Request) -> Response:
    asked = await request.json()
    prompt = asked["prompt"]
    return await _answer(prompt, mark_of(prompt), int(asked.get("partial_images") or 0))


async def _edit(request: Request) -> Response:
    async with request.form() as form:
        files = [file for file in form.getlist("image[]") if isinstance(file, UploadFile)]
        sources = [read_mark(await file.read()) for file in files]
        prompt, previews = str(form["prompt"]), int(str(form.get("partial_images") or 0))
    return await _answer(prompt, mark_of(prompt, *sources), previews)


async def _answer(prompt: str, mark: bytes, previews: int) -> Response:
    if previews:
        return StreamingResponse(_events(prompt, mark, previews), media_type="text/event-stream")
    await _wait()
    if BROKEN in prompt:
        error = {"message": "This cannot be painted.", "type": "image_error", "code": "unpaintable"}
        return JSONResponse({"error": error}, 400)
    return JSONResponse({"created": 1, "data": [{"b64_json": _b64(mark, huge=HUGE in prompt)}]})


async def _events(prompt: str, mark: bytes, previews: int) -> AsyncIterator[bytes]:
    for number in range(previews):
        await _wait()
        preview = _b64(mark_of(f"{prompt} {number}"))
        yield _frame("image_generation.partial_image", b64_json=preview, partial_image_index=number)
    await _wait()
    yield _frame("image_generation.completed", b64_json=_b64(mark, huge=HUGE in prompt))


def _frame(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


if __name__ == "__main__":
    routes = [
        Route("/v1/images/generations", _generate, methods=["POST"]),
        Route("/v1/images/edits", _edit, methods=["POST"]),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
