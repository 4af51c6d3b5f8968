"""The scripted model behind a real socket, as slow as a model: `python -m bench.soaking.upstream FD PACE`.

The script itself knows no earlier response. Here it is given a memory, as model servers have one that take
`previous_response_id`.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
from collections import OrderedDict
from typing import Any

import uvicorn
from imagecall.middleware.embedded.scripted import scripted_app
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MEAN = 0.06
"""Seconds between two moments at which something is sent."""
_TOGETHER = 0.3
"""The share of events that follow the one before at once, so that one chunk has several."""
_KEPT = 4_000
"""Responses that are remembered."""


async def _pace() -> None:
    if random.random() > _TOGETHER:
        await asyncio.sleep(float(sys.argv[2]) * min(1.0, random.expovariate(1 / _MEAN)))


class _Remembering:
    """Puts the conversation so far before the input of requests that name their previous response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: OrderedDict[str, list[Any]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        data, more = b"", True
        while more:
            message = await receive()
            data += message.get("body", b"")
            more = message.get("more_body", False)
        body = json.loads(data)
        asked = body["input"]
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        if (previous := body.get("previous_response_id")) in self._kept:
            del body["previous_response_id"]
            items = [*self._kept[previous], *items]
        data = json.dumps({**body, "input": items}).encode()
        heard: list[bytes] = []

        async def again() -> Message:
            nonlocal data
            if data:
                told, data = data, b""
                return {"type": "http.request", "body": told, "more_body": False}
            return await receive()

        async def hear(message: Message) -> None:
            piece = message.get("body", b"")
            heard.append(piece)
            if b"response.completed" in piece or not message.get("more_body"):
                self._remember(items, b"".join(heard))  # the next turn may come at once
            await send(message)

        await self._app(scope, again, hear)

    def _remember(self, items: list[Any], answer: bytes) -> None:
        last = answer.rpartition(b"event: response.completed\ndata: ")[2].strip()
        if last.startswith(b"{") and last.endswith(b"}"):
            told = json.loads(last)
            response = told.get("response", told)
            if "output" in response:
                self._kept[response["id"]] = [*items, *response["output"]]
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)


if __name__ == "__main__":
    served = _Remembering(scripted_app(pace=_pace))
    config = uvicorn.Config(served, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
