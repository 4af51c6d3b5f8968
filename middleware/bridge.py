"""A WebSocket between two ends: an ASGI client on this side, aiohttp's client on the other."""

from __future__ import annotations

from contextlib import suppress

import aiohttp
from anyio.abc import TaskGroup
from starlette.types import Message, Receive, Send

__all__ = ["bridge"]

_UNSENDABLE_CODES = {1005: 1000, 1006: 1001}
"""WebSocket close codes that tell of a missing close frame, and what to put into one instead."""


async def bridge(
    group: TaskGroup, receive: Receive, send: Send, upstream: aiohttp.ClientWebSocketResponse
) -> None:
    """Carry messages both ways until one side closes; the other is closed with the same code.

    `group` is for this connection alone, and nothing else is to be done in it afterwards.
    """
    left = False

    async def to_upstream() -> None:
        nonlocal left
        while (message := await receive())["type"] == "websocket.receive":
            with suppress(aiohttp.ClientError):  # it is closing: the other direction will say so
                if (text := message.get("text")) is not None:
                    await upstream.send_str(text)
                else:
                    await upstream.send_bytes(message["bytes"])
        left = True
        code = message.get("code") or 1005
        await upstream.close(code=_UNSENDABLE_CODES.get(code, code))

    group.start_soon(to_upstream)
    farewell = await _to_client(upstream, send)
    if not left:
        await send(farewell)
        group.cancel_scope.cancel()


async def _to_client(upstream: aiohttp.ClientWebSocketResponse, send: Send) -> Message:
    """Carry the upstream's messages until it closes; return how to close the client."""
    while True:
        message = await upstream.receive()
        match message.type:
            case aiohttp.WSMsgType.TEXT:
                await send({"type": "websocket.send", "text": message.data})
            case aiohttp.WSMsgType.BINARY:
                await send({"type": "websocket.send", "bytes": message.data})
            case aiohttp.WSMsgType.CLOSE:
                return {
                    "type": "websocket.close",
                    "code": message.data or 1000,
                    "reason": message.extra or "",
                }
            case _:
                return {"type": "websocket.close", "code": 1011, "reason": "the upstream broke off"}
