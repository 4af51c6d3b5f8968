"""One worker of several: `uvicorn worker:app`, with a model that draws, and a backend that changes nothing.

An edit gives back the picture it starts from, so that a client sees which one reached the backend.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from imagecall.middleware.background import job, leases
from model_server import SSE, calling, saying
from painters import png
from starlette.types import Receive, Scope, Send

__all__ = ["app"]

leases._LEASE = 3.0
job.BEATS = 1


async def model(scope: Scope, receive: Receive, send: Send) -> None:
    """Draw what is asked for, edit if it is to be made blue, and say something of the result."""
    if scope["type"] == "lifespan":
        for phase in ("startup", "shutdown"):
            await receive()
            print(phase, flush=True)  # noqa: T201  for who waits until the worker serves
            await send({"type": f"lifespan.{phase}.complete"})
        return
    message = await receive()
    if scope["method"] != "POST":
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    await send({"type": "http.response.start", "status": 200, "headers": SSE})
    for frame in _turn(message["body"]):
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _turn(body: bytes) -> list[bytes]:
    assert b"iVBOR" not in body, "a picture reached the model"
    asked = json.loads(body)
    last = asked["input"] if isinstance(asked["input"], str) else asked["input"][-1]
    identifier = f"resp_{secrets.token_hex(8)}"
    if isinstance(last, dict) and last.get("type") == "function_call_output":
        return saying("There ", "it is.", response_id=identifier)
    prompt = last if isinstance(last, str) else last["content"]
    arguments: dict[str, Any] = {"prompt": prompt}
    if "blue" in prompt:
        arguments["num_last_images_to_include"] = 1
    return calling(prompt, arguments=json.dumps(arguments), response_id=identifier)


class Copyist:
    """Gives back the last of the given pictures, or paints; of a slow one it only shows a preview."""

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        if "slow" in request.prompt:
            await on_partial(png("preview"))
            await asyncio.Event().wait()
        return request.images[-1].data if request.images else png(request.prompt)


app = ImageGenerationMiddleware(model, Copyist())
