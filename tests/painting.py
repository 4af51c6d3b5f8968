"""Pictures from `OpenAIImagesBackend`: alone, and through the whole middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgi import ask, draw, lifespan, middleware
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from images_api import ImagesAPI
from model_server import HOSTED, JSON, KITE_TURNS, Answer, ModelServer, whole
from rules import check_stream, read_events
from waiting import no_hanging

__all__ = ["Naps", "failed_item", "ignore", "opened", "painted", "refused", "respond"]

NOW = 1_790_000_000.0


async def ignore(_: object) -> None:
    """Take a preview and forget it."""


@dataclass
class Naps:
    """Sleeps that take no time, written down."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[OpenAIImagesBackend]:
    """Open a backend that waits without losing time."""
    given = {"sleep": Naps(), "now": lambda: NOW, **settings}
    with no_hanging() as deadline:
        async with deadline, OpenAIImagesBackend(url, **given) as backend:
            yield backend


async def painted(server: ImagesAPI, request: ImageRequest | str = "a kite", **settings: Any) -> Image:
    """Let a server make one picture."""
    request = ImageRequest(request) if isinstance(request, str) else request
    with server.served() as url:
        async with opened(url, **(server.config | settings)) as backend:
            return await backend.generate(request, ignore)


async def refused(server: ImagesAPI, request: ImageRequest | str = "a kite", **settings: Any) -> ImageError:
    """Let a server refuse a picture; give the refusal."""
    with pytest.raises(ImageError) as caught:
        await painted(server, request, **settings)
    return caught.value


async def respond(
    server: ImagesAPI,
    *,
    stream: bool = True,
    turns: Sequence[Sequence[bytes]] = KITE_TURNS,
    hosted: dict[str, Any] | None = None,
    **settings: Any,
) -> tuple[dict[str, Any], ModelServer]:
    """Make one response through the middleware; give its object, and the model server it came from."""
    answers = turns if stream else [Answer([whole(turn)], headers=[*JSON]) for turn in turns]
    model = ModelServer(*answers)
    request = draw(stream=stream, tools=[{**HOSTED, **(hosted or {})}])
    with server.served() as url:
        given = {"url": url, "sleep": Naps(), "now": lambda: NOW, **server.config, **settings}
        app = middleware(model, OpenAIImagesBackend(**given))
        async with lifespan(app):
            client = await ask(app, request, owners=1)
    if not stream:
        return client.json, model
    assert check_stream(client.body, tools=request["tools"], tool_choice="auto") == []
    return read_events(client.body)[-1]["response"], model


async def failed_item(server: ImagesAPI, *, stream: bool = True, **settings: Any) -> dict[str, Any]:
    """Let a picture fail in a response that goes well; give the item, and check that the model is told."""
    response, model = await respond(server, stream=stream, **settings)
    item, message = response["output"]
    assert (response["status"], message["type"]) == ("completed", "message")
    assert (item["status"], item["result"]) == ("failed", "")
    told = model.asked[1].json["input"][-1]
    assert told["type"] == "function_call_output"
    assert item["error"]["code"] in told["output"]
    return dict(item)
