"""The server of a soak with everything in it that a soak must find."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.exchange import Exchange
from starlette.types import Message, Receive, Scope, Send

from bench.soaking import served

_KEPT: list[Any] = []
_WASTE = 4 << 20


_call = ImageGenerationMiddleware.__call__


async def _leaking(app: ImageGenerationMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
    """Keep something of each request, and spoil each stream."""

    async def spoiling(message: Message) -> None:
        body = message.get("body", b"").replace(b'"sequence_number":5,', b'"sequence_number":6,')
        await send({**message, "body": body} if "body" in message else message)

    if scope["type"] == "http" and scope["method"] == "POST":
        stay = asyncio.Event()
        _KEPT.append((asyncio.create_task(stay.wait()), bytearray(os.urandom(_WASTE))))
        os.dup(0)
        logging.getLogger("imagecall").error("something went wrong")
    await _call(app, scope, receive, spoiling)


def main() -> None:
    run = Exchange.run

    async def kept(exchange: Exchange) -> None:
        _KEPT.append(exchange)
        await run(exchange)

    Exchange.run = kept  # type: ignore[method-assign]  # it shall leak
    ImageGenerationMiddleware.__call__ = _leaking  # type: ignore[method-assign,assignment]  # it too
    served.main()
