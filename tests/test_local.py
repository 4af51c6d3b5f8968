"""Asking an ASGI application in this process."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.local import lifespan, post
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send


async def test_an_answer_has_its_status_headers_and_whole_body() -> None:
    async def echo(request: Request) -> Response:
        told = {"body": await request.json(), "key": request.headers.get("x-key")}
        return JSONResponse(told, status_code=201, headers={"x-answer": "yes"})

    app = Starlette(routes=[Route("/here", echo, methods=["POST"])])
    seen: list[tuple[int, bytes]] = []
    answer = await post(
        app, "/here", b'{"a":1}', headers=[(b"x-key", b"k")], on_bytes=lambda *told: seen.append(told)
    )
    assert answer.status == 201
    assert (b"x-answer", b"yes") in answer.headers
    assert answer.body == b'{"body":{"a":1},"key":"k"}'
    assert seen == [(201, answer.body)]


async def test_the_application_is_told_of_a_disconnect_once_its_answer_is_complete() -> None:
    heard: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append(await receive())
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})
        heard.append(await receive())

    answer = await post(app, "/", b"{}")
    assert (answer.status, answer.body) == (204, b"")
    assert [message["type"] for message in heard] == ["http.request", "http.disconnect"]


async def test_a_lifespan_is_started_and_shut_down() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(2):
            message = await receive()
            seen.append(message["type"])
            await send({"type": message["type"] + ".complete"})

    async with lifespan(app):
        assert seen == ["lifespan.startup"]
    assert seen == ["lifespan.startup", "lifespan.shutdown"]


@pytest.mark.parametrize("said", [{"message": "no model"}, {}])
async def test_an_application_that_cannot_start_says_why(said: dict[str, Any]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", **said})

    with pytest.raises(RuntimeError, match=said.get("message", "the application could not start")):
        async with lifespan(app):
            raise AssertionError("it has not started")


async def test_an_application_that_raises_at_its_start_says_so() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        async with lifespan(app):
            raise AssertionError("it has not started")
