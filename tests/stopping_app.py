"""Somebody's application under uvicorn (`uvicorn stopping_app:app`), with a stream of its own beside ours.

Where the model server and the picture maker are is told by `UPSTREAM` and the `IMAGECALL_*` variables.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.proxy import ProxyApp
from sse_starlette import EventSourceResponse

__all__ = ["app"]

proxy = ProxyApp(os.environ["UPSTREAM"])


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    yield
    await proxy.aclose()


app = FastAPI(lifespan=lifespan)


@app.get("/ticks")
async def ticks() -> EventSourceResponse:
    async def tick() -> AsyncIterator[str]:
        yield "tick"
        await asyncio.Event().wait()

    return EventSourceResponse(tick())


app.mount("/", proxy)
app.add_middleware(ImageGenerationMiddleware)
app.add_middleware(ImageGenerationMiddleware, paths=("/other",))
