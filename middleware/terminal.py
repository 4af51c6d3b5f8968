"""What the terminal commands do: ask for a picture and watch it grow, record an exchange."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status
from starlette.types import ASGIApp

from ..events.sse import SSEDecoder
from ..events.wire import dumps, loads
from .asgi import ImageGenerationMiddleware
from .demo import demo_app
from .local import lifespan, post
from .proxy import ProxyApp
from .recording import write_recording
from .replay import Recorder

__all__ = ["ask_for_picture", "record_exchange"]

_IMAGE = "response.image_generation_call."


async def ask_for_picture(
    prompt: str, *, url: str | None, model: str, tool: dict[str, str]
) -> tuple[bytes, str]:
    """Ask for a picture and show its progress on the terminal.

    Args:
        prompt: what the picture shows.
        url: an endpoint that has the tool; None asks the embedded model in this process.
        model: the model to ask for.
        tool: options of the tool, such as `size`.

    Returns:
        The picture's bytes and its format.

    Raises:
        RuntimeError: no picture came, and why.
    """
    request = {
        "model": model,
        "input": prompt,
        "stream": True,
        "tools": [{"type": "image_generation", "partial_images": 2, **tool}],
        "tool_choice": {"type": "image_generation"},
    }
    async with _endpoint(url) as app:
        with Console(stderr=True).status("asking the model") as status:
            watched = _Watched(status)
            answer = await post(app, "/v1/responses", dumps(request), on_bytes=watched.feed)
    if answer.status != 200:
        raise RuntimeError(f"the endpoint answered with status {answer.status}: {_message(answer.body)}")
    item = watched.picture
    if item is None:
        raise RuntimeError(watched.problem or "the model made no picture")
    if not item.get("result"):
        raise RuntimeError(
            f"the picture failed: {(item.get('error') or {}).get('message', 'no reason given')}"
        )
    return base64.b64decode(item["result"]), item.get("output_format") or "png"


async def record_exchange(upstream: str, request: Any, out: Path, settings: dict[str, Any]) -> int:
    """Send a request through the middleware to a model server and write a recording.

    Returns:
        The number of turns the model server was asked for.
    """
    proxy = ProxyApp(upstream)
    recorder = Recorder(proxy)
    async with lifespan(proxy):
        answer = await post(ImageGenerationMiddleware(recorder, **settings), "/v1/responses", dumps(request))
    if answer.status >= 400:
        raise RuntimeError(f"the model server answered with status {answer.status}: {_message(answer.body)}")
    meta = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "server": upstream}
    write_recording(out, request, recorder.turns, answer.body, meta)
    return len(recorder.turns)


@contextlib.asynccontextmanager
async def _endpoint(url: str | None) -> AsyncIterator[ASGIApp]:
    app: ASGIApp = demo_app("auto") if url is None else ProxyApp(url)
    async with lifespan(app):
        yield app


class _Watched:
    """Reads the stream as it comes, tells how far the picture is, and keeps the finished item."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._decoder = SSEDecoder()
        self._began = time.monotonic()
        self._previews = 0
        self.picture: dict[str, Any] | None = None
        self.problem = ""

    def feed(self, status: int, piece: bytes) -> None:
        if status != 200:
            return
        for frame in self._decoder.feed(piece):
            if frame.data != b"[DONE]":
                self._event(loads(frame.data))

    def _event(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind == _IMAGE + "partial_image":
            self._previews += 1
        if kind.startswith(_IMAGE):
            phase = kind.removeprefix(_IMAGE).replace("_", " ")
            previews = f", {self._previews} previews" if self._previews else ""
            self._status.update(f"{phase}{previews}, {time.monotonic() - self._began:.1f} s")
        if kind == "response.output_item.done" and event["item"]["type"] == "image_generation_call":
            self.picture = event["item"]
        if kind == "response.failed":
            self.problem = (event["response"].get("error") or {}).get("message", "the response failed")


def _message(body: bytes) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(loads(body)["error"]["message"])
    return body[:300].decode(errors="replace")
