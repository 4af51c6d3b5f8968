"""The server in a thread that other tests stand on."""

from __future__ import annotations

import threading
import urllib.request

import pytest
from serving import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send


async def thread_name(request: Request) -> Response:
    return PlainTextResponse(threading.current_thread().name)


def test_it_serves_from_its_own_thread_and_leaves_none_behind() -> None:
    with serve(Starlette(routes=[Route("/", thread_name)])) as url, urllib.request.urlopen(url) as answer:
        assert answer.read() == b"uvicorn"
    assert "uvicorn" not in [thread.name for thread in threading.enumerate()]


def test_an_application_that_does_not_start_is_told() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(RuntimeError, match="did not start"), serve(app):
        raise AssertionError("it never gets here")
    assert "uvicorn" not in [thread.name for thread in threading.enumerate()]
