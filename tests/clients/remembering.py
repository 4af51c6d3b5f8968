"""A model server with a memory: the scripted model, which also knows its own earlier responses by id."""

from __future__ import annotations

import json
from typing import Any

from imagecall.middleware.embedded.scripted import scripted_app
from starlette.types import Message, Receive, Scope, Send

__all__ = ["RememberingModel"]

Json = dict[str, Any]


class RememberingModel:
    """Answers as the scripted model does; `previous_response_id` stands for that response's input and output.

    Attributes:
        asked: the bodies as they came, in order.
        read: the inputs as the model read them, with what they stand for.
    """

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.read: list[list[Json]] = []
        self._app = scripted_app()
        self._known: dict[str, list[Json]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse what is none."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        self.asked.append(body)
        request = json.loads(body)
        given = request["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        for item in items:
            if item.get("encrypted_content", "") is None:  # nothing, says the specification
                del item["encrypted_content"]
        known = self._known.get(request.get("previous_response_id") or "")
        if known is not None:
            del request["previous_response_id"]
            items = [*known, *items]
        self.read.append(items)
        answer = b""

        async def keep(message: Message) -> None:
            nonlocal answer
            answer += message.get("body", b"")
            await send(message)

        data = json.dumps({**request, "input": items}).encode()
        await self._app(_resized(scope, len(data)), _once(data, receive), keep)
        response = _response(answer)
        if "id" in response:
            self._known[response["id"]] = [*items, *response["output"]]


async def _whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    return body


def _once(body: bytes, receive: Receive) -> Receive:
    pending = [body]

    async def once() -> Message:
        return {"type": "http.request", "body": pending.pop()} if pending else await receive()

    return once


def _resized(scope: Scope, length: int) -> Scope:
    headers = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
    return {**scope, "headers": [*headers, (b"content-length", b"%d" % length)]}


def _response(answer: bytes) -> Json:
    """Read the response out of an answer, streamed or not."""
    told = answer.decode().rpartition("\ndata: ")[2]
    whole = json.loads(told)
    return dict(whole.get("response", whole))
