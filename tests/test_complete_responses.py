"""What comes after the end of a response: background tasks, and a disconnect that is none."""

from __future__ import annotations

import asyncio
from typing import Any

from asgi import conversation, draw, middleware
from kite import kite_stream, usage
from model_server import KITE_TURNS, Answer, ModelServer
from painters import Painter
from rules import read_events
from starlette.types import Receive, Send
from waiting import settle

EXPECTED = kite_stream(spent=usage(200, 20))


async def test_a_turn_ends_with_its_body_and_background_tasks_finish_in_peace() -> None:
    done = asyncio.Event()
    told: list[Any] = []

    async def background(receive: Receive, send: Send) -> None:
        told.append(await receive())
        await done.wait()
        told.append("finished")
        await send({"type": "http.response.body", "body": b"too late", "more_body": True})

    server = ModelServer(
        Answer(KITE_TURNS[0], afterwards=[background]), Answer(KITE_TURNS[1], afterwards=[background])
    )
    async with conversation(middleware(server, Painter(), disconnect_grace=0), draw()) as client:
        await client.heard_all()
        await settle()
        assert told == [{"type": "http.disconnect"}] * 2
        done.set()
    assert told[2:] == ["finished", "finished"]
    assert not server.cancelled.is_set()
    assert read_events(client.body) == EXPECTED


# The client of these tests reports http.disconnect with the last message, as uvicorn does.


async def test_a_complete_response_is_never_taken_for_a_disconnect() -> None:
    done = asyncio.Event()
    server = ModelServer(KITE_TURNS[0], Answer(KITE_TURNS[1], afterwards=[done]))
    async with conversation(middleware(server, Painter(), disconnect_grace=0), draw()) as client:
        client.pauses = 2
        await client.heard_all()
        await settle()
        done.set()
    assert not server.cancelled.is_set()
    assert client.unread == 1
    assert read_events(client.body) == EXPECTED


async def test_a_refusal_that_was_passed_on_whole_is_never_taken_for_a_disconnect() -> None:
    done = asyncio.Event()
    server = ModelServer(Answer([b"no"], 500, afterwards=[done]))
    async with conversation(middleware(server, Painter(), disconnect_grace=0), draw()) as client:
        client.pauses = 2
        await client.heard_all()
        await settle()
        done.set()
    assert not server.cancelled.is_set()
    assert client.unread == 1
    assert client.complete
