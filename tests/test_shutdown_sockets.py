"""A server that stops while responses run over WebSocket and in the background."""

from __future__ import annotations

import asyncio
from typing import Any

from asgi import lifespan, middleware
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.shutdown import STOPPING
from jobs import asked, begun, ended, running
from model_server import KITE_TURNS, Answer, ModelServer
from painters import Painter
from sockets import connected, create, error
from starlette.types import Receive, Scope, Send
from waiting import Clock, settle

GRACE = 5.0
STOPPED = error(503, STOPPING, code="server_shutting_down")


# -- over WebSocket --------------------------------------------------------------------------------


def farewell(client: Any) -> tuple[int, str]:
    last = client.messages[-1]
    assert last["type"] == "websocket.close"
    return last["code"], last["reason"]


async def _read_slowly_while_it_stops(app: ImageGenerationMiddleware) -> Any:
    """Ask, and take nothing from the first word on until the server has begun to stop."""
    async with connected(app, stays=True) as client:
        await settle()
        client.reads.clear()
        client.sent_to.clear()
        client.say({"type": "response.create", "model": "m", "input": "Hello."})
        await client.sent_to.wait()
        app.shutdown.begin()
        await settle()
        client.reads.set()
    return client


async def test_a_websockets_response_ends_at_once_since_servers_close_such_connections_first() -> None:
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter)
    async with connected(app, stays=True) as client:
        client.say(create())
        await painter.was_asked()
        app.shutdown.begin()
    assert client.types[-2:] == ["error", "response.failed"]
    assert client.events[-1]["response"]["error"] == {"code": "server_error", "message": STOPPING}
    assert farewell(client) == (1012, STOPPING)
    assert len(painter.cancelled) == 1


async def test_a_websockets_response_that_has_shown_nothing_ends_in_an_error() -> None:
    server = ModelServer(Answer([asyncio.Event()], status=0))
    app = middleware(server, Painter(), disconnect_grace=0)
    async with connected(app, stays=True) as client:
        client.say(create())
        await server.was_asked(1)
        app.shutdown.begin()
    assert client.events == [STOPPED]
    assert farewell(client) == (1012, STOPPING)


async def test_a_websocket_on_which_nothing_runs_is_closed() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    async with connected(app, stays=True) as client:
        client.say(create())
        await client.heard_ends()
        app.shutdown.begin()
    assert client.types[-1] == "response.completed"
    assert farewell(client) == (1012, STOPPING)


async def test_a_websocket_that_comes_too_late_is_closed_as_soon_as_it_is_open() -> None:
    app = middleware(ModelServer(), Painter())
    app.shutdown.begin()
    async with connected(app, stays=True) as client:
        pass
    assert farewell(client) == (1012, STOPPING)


async def test_what_is_the_model_servers_own_ends_in_an_error_on_a_websocket() -> None:
    listening = asyncio.Event()

    async def until_left(receive: Receive, send: Send) -> None:
        listening.set()
        await receive()

    server = ModelServer(Answer([KITE_TURNS[1][0], until_left], complete=False))
    app = middleware(server, Painter())
    async with connected(app, stays=True) as client:
        client.say({"type": "response.create", "model": "m", "input": "Hello."})
        await listening.wait()
        app.shutdown.begin()
    assert client.types == ["response.created", "error"]
    assert client.events[-1] == STOPPED
    assert farewell(client) == (1012, STOPPING)


async def test_a_client_that_reads_slowly_hears_nothing_of_a_response_behind_its_end() -> None:
    app = middleware(ModelServer(Answer([b"".join(KITE_TURNS[1])])), Painter())
    client = await _read_slowly_while_it_stops(app)
    assert client.types == ["response.created", "error"]
    assert farewell(client) == (1012, STOPPING)


async def test_a_refusal_on_its_way_to_a_client_is_all_that_it_hears_of_a_response() -> None:
    app = middleware(ModelServer(Answer([b"no"], 429)), Painter())
    client = await _read_slowly_while_it_stops(app)
    assert client.events == [error(429, "no")]
    assert farewell(client) == (1012, STOPPING)


async def test_a_client_that_reads_slowly_hears_the_end_though_the_model_server_has_ended_before() -> None:
    may = asyncio.Event()
    app = middleware(ModelServer(Answer([KITE_TURNS[1][0], may])), Painter())
    async with connected(app, stays=True) as client:
        client.say({"type": "response.create", "model": "m", "input": "Hello."})
        await client.heard(2)
        client.reads.clear()
        client.sent_to.clear()
        app.shutdown.begin()
        await client.sent_to.wait()
        may.set()
        await settle()
        client.reads.set()
    assert client.events[1:] == [STOPPED]
    assert farewell(client) == (1012, STOPPING)


async def test_an_application_with_a_websocket_of_its_own_closes_it_itself() -> None:
    painter, model = Painter(waits=True), ModelServer(*KITE_TURNS)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await model(scope, receive, send)
            return
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    served = middleware(app, painter)
    async with connected(served) as client:
        client.say(create())
        await painter.was_asked()
        served.shutdown.begin()
        await client.heard_of("response.failed")
    assert not client.closed


# -- in the background -----------------------------------------------------------------------------


async def test_a_response_in_the_background_has_failed_after_the_grace() -> None:
    clock, painter = Clock(), Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter) as app:
        queued = await begun(app)
        await painter.was_asked()
        app.shutdown.begin()
        await settle()
        await clock.forward(GRACE)
        response = await ended(app, queued["id"])
    assert (response["status"], response["error"]) == (
        "failed",
        {"code": "server_error", "message": STOPPING},
    )
    assert len(painter.cancelled) == 1


async def test_an_application_that_ends_gives_the_background_what_is_left_of_the_grace() -> None:
    painter = Painter(waits=True)
    app = middleware(ModelServer(*KITE_TURNS), painter)
    async with lifespan(app):
        queued = await begun(app)
        await painter.was_asked()
        app.shutdown.begin()
        asyncio.get_running_loop().call_later(0.01, painter.may_finish.set)
    assert painter.cancelled == []
    response = (await asked(app, "GET", f"/{queued['id']}")).json
    assert response["status"] == "completed"


async def test_one_that_has_said_nothing_has_failed_too() -> None:
    server = ModelServer(Answer([asyncio.Event()]))
    async with running(server, Painter(), disconnect_grace=0) as app:
        queued = await begun(app)
    response = (await asked(app, "GET", f"/{queued['id']}")).json
    assert (response["status"], response["error"]) == (
        "failed",
        {"code": "server_error", "message": STOPPING},
    )
