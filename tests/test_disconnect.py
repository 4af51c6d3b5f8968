"""A client that goes away: in every state of a response, by a message and by a send that raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asgi import Client, conversation, draw, middleware, post
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from kite import kite_stream, usage
from model_server import HOSTED, JSON, KITE_TURNS, Answer, ModelServer, calling
from painters import Painter
from rules import read_events
from starlette.types import Message, Receive, Send
from waiting import Clock, settle

EXPECTED = kite_stream(spent=usage(200, 20))
KEEPALIVE = 15
"""Seconds after which the middleware notices by itself that it cannot send."""


class Listener:
    """A step of the model server that sends on until it is told that the client has gone."""

    def __init__(self, *, obeys: bool = True) -> None:
        self.told: Message | None = None
        self.reached = asyncio.Event()
        self._obeys = obeys

    async def __call__(self, receive: Receive, send: Send) -> None:
        self.reached.set()
        self.told = await receive()
        await send({"type": "http.response.body", "body": KITE_TURNS[1][5], "more_body": True})
        if not self._obeys:
            await asyncio.Event().wait()


Leave = Callable[[Client], None]


def by_message(client: Client) -> None:
    client.leave()


def by_send(client: Client) -> None:
    client.left = ConnectionResetError("gone")


both_ways = pytest.mark.parametrize("leave", [by_message, by_send])


async def test_before_the_head() -> None:
    listener = Listener()
    server = ModelServer(Answer([listener], status=0, complete=False))
    async with conversation(middleware(server, Painter()), draw()) as client:
        await listener.reached.wait()
        client.leave()
    assert listener.told == {"type": "http.disconnect"}
    assert client.messages == []
    assert not server.cancelled.is_set()


async def test_before_the_head_a_send_that_raises_counts_as_well() -> None:
    listener = Listener()
    server = ModelServer([*KITE_TURNS[1][:2], listener])
    async with conversation(middleware(server, Painter()), draw()) as client:
        by_send(client)
    assert listener.told == {"type": "http.disconnect"}
    assert client.messages == []


@both_ways
async def test_in_the_midst_of_a_turn(leave: Leave) -> None:
    said, listener = asyncio.Event(), Listener()
    server = ModelServer([*KITE_TURNS[1][:5], said, KITE_TURNS[1][5], listener])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"output_text.delta")
        heard = len(client.messages)
        leave(client)
        if leave is by_message:
            await asyncio.sleep(0)
        said.set()
    assert listener.told == {"type": "http.disconnect"}
    assert len(client.messages) - heard <= (leave is by_message)
    assert not client.complete


@both_ways
async def test_while_pictures_run_the_backends_are_cancelled_at_once(
    leave: Leave, caplog: pytest.LogCaptureFixture
) -> None:
    painter = Painter(waits=True)
    server = ModelServer(calling("one", "two", "three"))
    clock = Clock()
    async with conversation(middleware(server, painter, concurrency_per_response=2), draw()) as client:
        await painter.was_asked(2)
        leave(client)
        await clock.forward(KEEPALIVE)
        assert len(painter.cancelled) == 2
    assert sorted(painter.cancelled) == ["one", "two"]
    assert len(painter.asked) == 2
    assert not client.complete
    assert caplog.messages == []  # it is nobody's failure


async def test_a_preview_that_cannot_be_sent_cancels_its_own_picture() -> None:
    painter = Painter(waits=True)
    painter.may_preview.clear()
    tools = [{**HOSTED, "partial_images": 1}]
    async with conversation(middleware(ModelServer(calling("one")), painter), draw(tools=tools)) as client:
        await painter.was_asked()
        by_send(client)
        painter.may_preview.set()
    assert painter.cancelled == ["one"]


@both_ways
async def test_while_it_waits_to_ask_a_busy_server_again(leave: Leave) -> None:
    busy = Answer([b"busy"], 429, [*JSON, (b"retry-after", b"9")])
    server = ModelServer(KITE_TURNS[0], busy)
    clock = Clock()
    async with conversation(middleware(server, Painter(), keepalive=3), draw()) as client:
        await server.was_asked(2)
        await settle()
        leave(client)
        await clock.forward(3)
    assert len(server.asked) == 2


@both_ways
async def test_between_the_terminal_event_and_the_last_message(leave: Leave) -> None:
    listener = Listener()
    server = ModelServer(KITE_TURNS[0], [*KITE_TURNS[1], listener])
    clock = Clock()
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"response.completed")
        leave(client)
        await clock.forward(KEEPALIVE)
    assert listener.told == {"type": "http.disconnect"}
    assert read_events(client.body) == EXPECTED
    assert not client.complete


@pytest.mark.parametrize("last", [b"", b"data: [DONE]\n\n"])
async def test_a_client_that_leaves_at_the_last_message_is_no_error(last: bytes) -> None:
    rest = asyncio.Event()
    server = ModelServer(KITE_TURNS[0], [*KITE_TURNS[1], rest, last])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"response.completed")
        by_send(client)
        rest.set()
    assert read_events(client.body) == EXPECTED
    assert not client.complete


async def test_a_client_that_leaves_while_the_last_frames_are_on_their_way_is_no_error() -> None:
    rest = asyncio.Event()
    server = ModelServer(Answer([*KITE_TURNS[1][:5], rest], complete=False))
    async with conversation(middleware(server, Painter(), disconnect_grace=0), draw()) as client:
        await client.heard(b"output_text.delta")
        client.reads.clear()
        client.sent_to.clear()
        rest.set()
        await client.sent_to.wait()
        client.leave()
        await settle()
        client.reads.set()  # as servers do: the send returns, and nothing has been sent
    assert not server.cancelled.is_set()


async def test_a_message_that_says_nothing_is_not_taken_for_a_disconnect() -> None:
    painter = Painter(waits=True)
    async with conversation(middleware(ModelServer(*KITE_TURNS), painter), draw()) as client:
        await painter.was_asked()
        client.say({"type": "http.request", "body": b"", "more_body": False})
        await settle()
        painter.may_finish.set()
    assert read_events(client.body) == EXPECTED


async def test_a_client_that_has_gone_is_not_kept_alive() -> None:
    clock, deaf = Clock(), Listener(obeys=False)
    server = ModelServer([*KITE_TURNS[1][:5], deaf])
    async with conversation(middleware(server, Painter(), disconnect_grace=60), draw()) as client:
        await deaf.reached.wait()
        client.leave()
        await settle()
        await clock.forward(30)
        heard = len(client.messages)
        await clock.forward(30)
    assert len(client.messages) == heard


async def test_without_a_stream() -> None:
    painter = Painter(waits=True)
    async with conversation(middleware(ModelServer(KITE_TURNS[0]), painter), draw(stream=False)) as client:
        await painter.was_asked()
        client.leave()
    assert client.messages == []
    assert len(painter.cancelled) == 1


@both_ways
async def test_while_a_refusal_is_passed_on(leave: Leave) -> None:
    more, listener = asyncio.Event(), Listener()
    server = ModelServer(Answer([b"one", more, b"two", listener], 500))
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"one")
        leave(client)
        more.set()
    assert listener.told == {"type": "http.disconnect"}
    assert not client.complete


async def test_an_application_that_does_not_listen_is_cancelled_after_a_grace() -> None:
    clock, deaf = Clock(), Listener(obeys=False)
    server = ModelServer([*KITE_TURNS[1][:5], deaf])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await deaf.reached.wait()
        client.leave()
        await settle()
        await clock.forward(4)
        assert not server.cancelled.is_set()
        await clock.forward(1)
    assert deaf.told == {"type": "http.disconnect"}
    assert server.cancelled.is_set()


async def test_what_the_application_raises_about_it_comes_out() -> None:
    error = RuntimeError("the client has gone")
    listener = Listener()
    server = ModelServer([*KITE_TURNS[1][:5], listener, error])
    async with conversation(middleware(server, Painter()), draw(), raises=error) as client:
        await listener.reached.wait()
        client.leave()


async def test_background_tasks_of_earlier_turns_still_finish() -> None:
    painter = Painter(waits=True)
    done = asyncio.Event()
    server = ModelServer(Answer(KITE_TURNS[0], afterwards=[done]))
    async with conversation(middleware(server, painter, disconnect_grace=0), draw()) as client:
        await painter.was_asked()
        client.leave()
        await painter.was_cancelled()
        await settle()
        done.set()
    assert not server.cancelled.is_set()


async def test_a_backend_that_will_not_be_cancelled_changes_nothing() -> None:
    painter = Painter(waits=True)

    class Stubborn:
        async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes | Any:
            try:
                return await painter.generate(request, on_partial)
            except asyncio.CancelledError:
                painter.may_finish.set()
                await on_partial(b"")
                return await painter.generate(request, on_partial)

    server = ModelServer(calling("one"))
    async with conversation(middleware(server, Stubborn()), draw()) as client:
        await painter.was_asked()
        client.leave()
    assert len(server.asked) == 1
    assert b"image_generation_call.completed" not in client.body


async def test_a_call_that_is_settled_when_the_client_has_gone_is_not_run() -> None:
    painter = Painter(waits=True)
    painter.may_preview.clear()
    tools = [{**HOSTED, "partial_images": 1}]
    turn, rest = calling("one", "two"), asyncio.Event()
    server = ModelServer([*turn[:7], rest, b"".join(turn[7:])])
    async with conversation(middleware(server, painter), draw(tools=tools)) as client:
        await client.heard(b'"output_index":1')
        client.reads.clear()
        painter.may_preview.set()
        await settle()  # the preview hangs in the slow client,
        rest.set()
        await settle()  # and behind it the second call's arguments
        by_send(client)
        client.reads.set()
    assert painter.cancelled == ["one"]
    assert len(painter.asked) == 1


async def test_the_server_may_cancel_the_request_itself() -> None:
    painter = Painter(waits=True)
    server = ModelServer(Answer(calling("one"), afterwards=[asyncio.Event()]))
    app = middleware(server, painter)
    client = Client(app, draw(), post())
    running = asyncio.create_task(client.run())
    await painter.was_asked()
    running.cancel()
    await running
    assert isinstance(client.raised, asyncio.CancelledError)
    assert painter.cancelled == ["one"]
    assert server.cancelled.is_set()
