"""A client that says what it should not, or leaves when it likes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi import middleware
from kite import KITE, kite_stream, usage
from model_server import HOSTED, JSON, KITE_TURNS, Answer, ModelServer, calling, saying
from painters import Painter
from sockets import Socket, connected, create, error
from starlette.types import Message, Receive, Scope, Send
from waiting import Clock, settle

EXPECTED = kite_stream(spent=usage(200, 20))
TEXT = {"type": "response.create", "model": "local-model", "input": "Hello."}
DEEP = "The message is JSON nested too deeply, more than 200 levels."


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("{", error(400, "The message is not valid JSON.", code="invalid_json")),
        ("[" * 500 + "]" * 500, error(400, DEEP, code="invalid_json")),
        ("[]", error(400, "The message must be a JSON object.", code="invalid_json")),
        (
            {"type": "response.steer", "input": "Greener.", "previous_response_id": "resp_1"},
            error(
                400,
                "Steering is not supported here; wait for the response's end and send a response.create.",
                param="type",
                code="steering_not_supported",
            ),
        ),
        (
            {"type": "response.cancel"},
            error(
                400,
                "The message's type must be response.create; nothing else is supported here.",
                param="type",
                code="unknown_message_type",
            ),
        ),
        (create(stream_id=7), error(400, "stream_id must be a string.", param="stream_id")),
        (
            create(generate=False, stream_id="s"),
            error(
                400,
                "Warm-ups (generate: false) are not supported here; leave generate out to get a response.",
                param="generate",
                code="unsupported_parameter",
            )
            | {"stream_id": "s"},
        ),
        (
            {**TEXT, "background": True},
            error(
                400,
                "background is not supported over WebSocket; POST the request instead.",
                param="background",
                code="unsupported_parameter",
            ),
        ),
        (
            create(input="a" * 3_000),
            error(413, "The message is larger than the 3000 bytes that max_body allows."),
        ),
    ],
)
async def test_what_is_not_understood_gets_an_error_and_the_connection_stays(message: Any, told: Any) -> None:
    server = ModelServer(*KITE_TURNS)
    async with connected(middleware(server, Painter(), max_body=3_000)) as client:
        client.say(message)
        await client.heard_ends()
        assert server.asked == []
        client.say(create())
        await client.heard_ends(2)
    assert client.events == [told, *EXPECTED]


async def test_a_binary_message_closes_the_connection_and_cancels_what_runs() -> None:
    painter = Painter(waits=True)
    async with connected(middleware(ModelServer(*KITE_TURNS), painter), stays=True) as client:
        client.say(create())
        await painter.was_asked()
        client.say(b"\x00")
    last = {"type": "websocket.close", "code": 1003, "reason": "Send JSON in text messages."}
    assert client.messages[-1] == last
    assert painter.cancelled == [KITE]


async def test_nothing_is_said_after_the_connection_was_closed() -> None:
    closed = asyncio.Event()

    async def go_on(_: Receive, send: Send) -> None:
        await closed.wait()
        await send({"type": "http.response.body", "body": b"".join(saying("Hi")), "more_body": True})

    server = ModelServer([saying("Hi")[0], go_on])
    async with connected(middleware(server, Painter()), stays=True) as client:
        client.say(TEXT)
        await client.heard(2)
        client.say(b"\x00")
        await client.heard(3)
        closed.set()
    assert client.types == ["response.created"]


async def test_a_second_request_is_refused_while_one_runs_and_does_the_running_one_no_harm() -> None:
    painter = Painter(waits=True)
    server = ModelServer(*KITE_TURNS, saying("Hi"))
    async with connected(middleware(server, painter)) as client:
        client.say(create())
        await painter.was_asked()
        client.say({**TEXT, "stream_id": "other"})
        await client.heard_ends()
        painter.may_finish.set()
        await client.heard_ends(2)
        client.say(TEXT)
        await client.heard_ends(3)
    refused = error(
        409,
        "A response is running on this connection; wait for its end, or open another connection.",
        code="response_in_progress",
    )
    events = client.events
    events.remove({**refused, "stream_id": "other"})
    assert events[: len(EXPECTED)] == EXPECTED
    assert [asked.json["input"] for asked in server.asked][::2] == ["Draw a kite.", "Hello."]


class Owned:
    """An owner of requests that cannot be told."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    async def prepare(self, *_: object) -> None:
        raise self.failure


async def test_a_failure_of_ours_costs_one_response_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = middleware(ModelServer(saying("Hi")), Painter())
    monkeypatch.setattr(app, "_creation", Owned(ZeroDivisionError("ours")))
    async with connected(app) as client:
        client.say(create(stream_id="s"))
        await client.heard_ends()
        client.say(TEXT)
        await client.heard_ends(2)
    message = "Something went wrong here; the log of the server tells what."
    assert client.events[0] == {**error(500, message), "stream_id": "s"}
    assert client.types[-1] == "response.completed"
    assert caplog.messages == ["a message on a WebSocket could not be read"]


# -- a client that leaves ------------------------------------------------------------------------


class Listener:
    """A step of the model server that waits until it is told that the client has gone."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.told: Message | None = None

    async def __call__(self, receive: Receive, send: Send) -> None:
        self.reached.set()
        self.told = await receive()
        await send({"type": "http.response.body", "body": KITE_TURNS[1][5], "more_body": True})


def by_message(client: Socket) -> None:
    client.leave(1001)


def by_send(client: Socket) -> None:
    client.left = ConnectionResetError("gone")


async def test_a_client_that_leaves_before_it_is_accepted() -> None:
    async def inner(scope: Any, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "websocket.connect"
        assert (await receive())["type"] == "websocket.disconnect"

    async with connected(middleware(inner, Painter()), answered=False) as client:
        pass
    assert client.messages == []


async def test_a_client_that_leaves_without_a_word() -> None:
    async with connected(middleware(ModelServer(), Painter())) as client:
        pass
    assert [message["type"] for message in client.messages] == ["websocket.accept"]


@pytest.mark.parametrize("message", [create(), TEXT])
async def test_before_the_head(message: Any) -> None:
    listener = Listener()
    async with connected(
        middleware(ModelServer(Answer([listener], status=0, complete=False)), Painter())
    ) as client:
        client.say(message)
        await listener.reached.wait()
        client.leave()
    assert listener.told == {"type": "http.disconnect"}
    assert client.texts == []


@pytest.mark.parametrize("leave", [by_message, by_send])
@pytest.mark.parametrize("message", [create(), TEXT])
async def test_in_the_midst_of_a_turn(message: Any, leave: Any) -> None:
    listener, said = Listener(), asyncio.Event()
    server = ModelServer([*KITE_TURNS[1][:5], said, KITE_TURNS[1][5], listener])
    async with connected(middleware(server, Painter())) as client:
        client.say(message)
        await client.heard_of("response.output_text.delta")
        heard = len(client.messages)
        leave(client)
        await settle()
        said.set()
    assert listener.told == {"type": "http.disconnect"}
    assert len(client.messages) == heard


@pytest.mark.parametrize("leave", [by_message, by_send])
async def test_while_a_picture_is_made_its_backend_is_cancelled_at_once(
    leave: Any, caplog: pytest.LogCaptureFixture
) -> None:
    painter = Painter(waits=True)
    painter.may_preview.clear()
    server = ModelServer(calling("one", "two"))
    async with connected(middleware(server, painter)) as client:
        client.say(create(tools=[{**HOSTED, "partial_images": 1}]))
        await painter.was_asked(2)
        leave(client)
        painter.may_preview.set()
        await painter.was_cancelled(2)
    assert sorted(painter.cancelled) == ["one", "two"]
    assert len(server.asked) == 1
    assert caplog.messages == []


async def test_while_it_waits_to_ask_a_busy_server_again() -> None:
    busy = Answer([b"busy"], 429, [*JSON, (b"retry-after", b"9")])
    server = ModelServer(KITE_TURNS[0], busy)
    clock = Clock()
    async with connected(middleware(server, Painter(), keepalive=0)) as client:
        client.say(create())
        await server.was_asked(2)
        await settle()
        client.leave()
        await clock.forward(3)
    assert len(server.asked) == 2


async def test_amid_a_send_that_is_held_up() -> None:
    painter = Painter(waits=True)
    async with connected(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        client.say(create())
        await painter.was_asked()
        client.reads.clear()
        client.sent_to.clear()
        painter.may_finish.set()
        await client.sent_to.wait()
        heard = len(client.messages)
        by_send(client)
        client.leave()
        await settle()
        client.reads.set()
    assert len(client.messages) == heard


# -- when it takes nothing any more ----------------------------------------------------------------

TOO_LONG, GRACE = 100, 5


async def _stalls(client: Socket, clock: Clock) -> None:
    """Take nothing until long after the response's time is up."""
    await settle()
    await clock.forward(TOO_LONG)
    await clock.forward(GRACE)


@pytest.mark.parametrize("takes", ["nothing", "all but the end"])
async def test_its_connection_is_left_when_its_responses_time_is_up(
    takes: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    app = middleware(ModelServer(*KITE_TURNS), Painter(), response_timeout=TOO_LONG, disconnect_grace=GRACE)
    async with connected(app, stays=True) as client:
        await settle()
        client.stops_at = "response.created" if takes == "nothing" else "response.completed"
        client.say(create())
        await _stalls(client, clock)
    assert not client.closed
    assert "it was cut off" in caplog.text


async def test_an_applications_own_end_of_its_connection_is_cancelled_then() -> None:
    clock, model = Clock(), ModelServer(*KITE_TURNS)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await model(scope, receive, send)
            return
        await send({"type": "websocket.accept"})
        await asyncio.Event().wait()

    served = middleware(app, Painter(), response_timeout=TOO_LONG, disconnect_grace=GRACE)
    async with connected(served, stays=True) as client:
        client.stops_at = "response.created"
        client.say(create())
        await _stalls(client, clock)
    assert client.events == []
