"""An inner application that speaks WebSocket itself: what does not concern us passes through untouched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from asgi import middleware
from kite import kite_stream, usage
from model_server import HOSTED, KITE_TURNS, ModelServer
from painters import Painter
from sockets import connected, create, error, handshake
from starlette.types import Message, Receive, Scope, Send
from waiting import News, settle

EXPECTED = kite_stream(spent=usage(200, 20))
ACCEPT: Message = {"type": "websocket.accept", "subprotocol": "b", "headers": [(b"x-inner", b"1")]}
TEXT = {"type": "response.create", "model": "local-model", "input": "Hello."}

Talk = Callable[[Receive, Send], Awaitable[None]]


class Speaker:
    """An application with both endpoints. On a WebSocket it accepts and then does as `talk` says.

    Attributes:
        http: the HTTP endpoint.
        scopes: of its WebSockets.
        heard: what it was told there.
        send: its way to the client.
    """

    def __init__(self, *turns: list[bytes], talk: Talk | None = None) -> None:
        self.http = ModelServer(*turns)
        self.scopes: list[Scope] = []
        self.heard: list[Message] = []
        self.send: Send
        self._talk = talk or self.listen
        self._news = News()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.http(scope, receive, send)
            return
        self.scopes.append(scope)
        self.send = send
        assert await receive() == {"type": "websocket.connect"}
        await send(ACCEPT)
        await self._talk(receive, send)

    async def listen(self, receive: Receive, send: Send) -> None:
        """Keep what the client says until it leaves."""
        while (message := await receive())["type"] == "websocket.receive":
            self._keep(message)
        self._keep(message)

    def _keep(self, message: Message) -> None:
        self.heard.append(message)
        self._news.tell()

    async def heard_so_many(self, count: int) -> None:
        await self._news.until(lambda: len(self.heard) >= count)


async def test_a_connection_without_the_tool_is_the_applications_own_message_by_message() -> None:
    speaker = Speaker()
    scope = handshake(subprotocols=["a", "b"])
    answers: list[Message] = [
        {"type": "websocket.send", "text": '{"type":"response.completed"}'},
        {"type": "websocket.send", "bytes": b"\xff"},
    ]
    async with connected(middleware(speaker, Painter()), scope) as client:
        said = [client.say(message) for message in (TEXT, "no JSON", b"\x00\xff", {"type": "session.update"})]
        await speaker.heard_so_many(4)
        for answer in answers:
            await speaker.send(answer)
        client.leave(4002)
        await speaker.heard_so_many(5)
    assert speaker.scopes[0] is scope
    assert client.messages[0] is ACCEPT
    assert all(sent is given for sent, given in zip(client.messages[1:], answers, strict=True))
    assert all(heard is message for heard, message in zip(speaker.heard[:4], said, strict=True))
    assert speaker.heard[4] == {"type": "websocket.disconnect", "code": 4002, "reason": ""}
    assert speaker.http.asked == []


async def test_our_words_alone_make_no_message_ours() -> None:
    speaker = Speaker()
    async with connected(middleware(speaker, Painter())) as client:
        said = [
            client.say({**TEXT, "input": "What is image_generation?"}),
            client.say({**TEXT, "previous_response_id": None, "generate": False}),
            client.say({"type": "response.steer", "input": "x", "previous_response_id": "resp_1"}),
            client.say('"image_generation'),
        ]
        await speaker.heard_so_many(4)
    assert all(heard is message for heard, message in zip(speaker.heard, said, strict=False))
    assert speaker.http.asked == []
    assert client.texts == []


async def test_a_message_that_names_the_tool_is_answered_over_http_and_the_others_are_not() -> None:
    speaker = Speaker(*KITE_TURNS)
    async with connected(middleware(speaker, Painter())) as client:
        first = client.say(TEXT)
        client.say(create())
        await client.heard_ends()
        last = client.say(TEXT)
        await speaker.heard_so_many(2)
    assert client.events == EXPECTED
    assert speaker.heard[0] is first
    assert speaker.heard[1] is last
    assert [asked.scope["type"] for asked in speaker.http.asked] == ["http", "http"]


async def test_the_applications_own_responses_go_on_while_one_of_ours_runs() -> None:
    painter = Painter(waits=True)
    speaker = Speaker(*KITE_TURNS)
    async with connected(middleware(speaker, painter)) as client:
        client.say(create(stream_id="ours"))
        await painter.was_asked()
        client.say({**TEXT, "stream_id": "theirs"})
        await speaker.heard_so_many(1)
        await speaker.send({"type": "websocket.send", "text": '{"type":"response.x","stream_id":"theirs"}'})
        client.say(create(stream_id="third"))
        await client.heard_of("error")
        painter.may_finish.set()
        await client.heard_of("response.completed")
    ours = [event for event in client.events if event["stream_id"] == "ours"]
    assert ours == [{**event, "stream_id": "ours"} for event in EXPECTED]
    others = [event for event in client.events if event["stream_id"] != "ours"]
    assert others[0] == {"type": "response.x", "stream_id": "theirs"}
    assert (others[1]["status"], others[1]["stream_id"]) == (409, "third")


async def test_what_must_be_mended_in_a_message_of_ours_does_not_reach_the_application() -> None:
    speaker = Speaker()
    async with connected(middleware(speaker, Painter(), max_body=2_000)) as client:
        client.say(create(tools=[{**HOSTED, "partial_images": 9}]))
        client.say(create(generate=False))
        client.say({**TEXT, "input": "a" * 2_000})
        client.say('{"input":"image_generation","metadata":' + "[" * 300 + "]" * 300 + "}")
        await client.heard_ends(4)
    params = [event["error"]["param"] for event in client.events]
    assert params == ["tools[0].partial_images", "generate", None, None]
    deep = "The message is JSON nested too deeply, more than 200 levels."
    assert client.events[3] == error(400, deep, code="invalid_json")
    assert client.events[2] == error(413, "The message is larger than the 2000 bytes that max_body allows.")
    assert [message["type"] for message in speaker.heard] == ["websocket.disconnect"]


async def test_the_application_hangs_up_only_when_the_picture_is_there() -> None:
    painter = Painter(waits=True)
    close: Message = {"type": "websocket.close", "code": 4001, "reason": "enough"}
    leaves = asyncio.Event()

    async def talk(receive: Receive, send: Send) -> None:
        await leaves.wait()
        await send(close)

    speaker = Speaker(*KITE_TURNS, talk=talk)
    async with connected(middleware(speaker, painter), stays=True) as client:
        client.say(create())
        await painter.was_asked()
        leaves.set()
        await settle()
        assert not client.closed
        painter.may_finish.set()
    assert client.events == EXPECTED
    assert client.messages[-1] is close


async def test_an_application_that_returns_ends_the_connection() -> None:
    async def talk(receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1000})

    async with connected(middleware(Speaker(talk=talk), Painter()), stays=True) as client:
        pass
    assert client.messages == [ACCEPT, {"type": "websocket.close", "code": 1000}]


async def test_what_the_application_raises_comes_out_as_it_was() -> None:
    failure = ZeroDivisionError("inner")

    async def talk(receive: Receive, send: Send) -> None:
        raise failure

    async with connected(middleware(Speaker(talk=talk), Painter()), stays=True, raises=failure) as client:
        pass
    assert client.messages == [ACCEPT]


async def test_the_application_learns_from_its_own_send_that_the_client_has_gone() -> None:
    gone = ConnectionResetError("gone")
    seen: list[BaseException] = []

    async def talk(receive: Receive, send: Send) -> None:
        await receive()
        try:
            await send({"type": "websocket.send", "text": "x"})
        except OSError as error:
            seen.append(error)
        seen.append(TimeoutError((await receive())["type"]))

    async with connected(middleware(Speaker(talk=talk), Painter())) as client:
        client.left = gone
        client.say(TEXT)
    assert seen[0] is gone
    assert str(seen[1]) == "websocket.disconnect"


async def test_a_client_is_not_read_much_further_than_the_application_reads() -> None:
    reads = asyncio.Event()
    speaker: Speaker

    async def talk(receive: Receive, send: Send) -> None:
        await reads.wait()
        await speaker.listen(receive, send)

    speaker = Speaker(talk=talk)
    async with connected(middleware(speaker, Painter())) as client:
        said: list[Any] = [client.say({**TEXT, "input": str(number)}) for number in range(40)]
        await settle()
        assert client.unread > 20
        reads.set()
        await speaker.heard_so_many(40)
    assert speaker.heard[:40] == said


async def test_a_client_that_leaves_takes_both_conversations_with_it() -> None:
    painter = Painter(waits=True)
    speaker = Speaker(*KITE_TURNS)
    async with connected(middleware(speaker, painter)) as client:
        client.say(create())
        await painter.was_asked()
        client.leave()
        await painter.was_cancelled()
    assert [message["type"] for message in speaker.heard] == ["websocket.disconnect"]
    assert "response.completed" not in json.dumps(client.events)
