"""Responses over a WebSocket whose inner application has none: the same events, each a message of its own."""

from __future__ import annotations

import asyncio
import json

import pytest
from asgi import ask, draw, middleware
from exchanges import WEATHER
from imagecall.middleware.backends.base import ImageError
from kite import KITE, kite_stream, usage
from model_server import HOSTED, KITE_TURNS, Answer, ModelServer, calling, saying
from painters import Painter, png, raising
from sockets import connected, create, handshake, payloads
from starlette.types import Message, Receive, Scope, Send
from waiting import Clock

EXPECTED = kite_stream(spent=usage(200, 20))
TEXT = {"type": "response.create", "model": "local-model", "input": "Hello."}


async def test_a_picture_comes_as_the_same_events_as_over_http_and_without_an_end_marker() -> None:
    turns = (KITE_TURNS[0], [*KITE_TURNS[1], b"data: [DONE]\n\n"])
    over_http = await ask(middleware(ModelServer(*turns), Painter()), draw())
    async with connected(middleware(ModelServer(*turns), Painter())) as client:
        client.say(create())
        await client.heard_ends()
    assert client.messages[0] == {"type": "websocket.accept", "subprotocol": None}
    assert client.texts == payloads(over_http.body)
    assert client.events == EXPECTED


async def test_the_request_is_posted_with_the_handshakes_headers_and_always_asks_for_a_stream() -> None:
    server = ModelServer(*KITE_TURNS)
    headers = [
        (b"authorization", b"Bearer k"),
        (b"accept-encoding", b"gzip"),
        (b"idempotency-key", b"once"),
        (b"content-length", b"0"),
        (b"x-trace", b"t"),
    ]
    scope = handshake(headers=headers, scheme="wss", query_string=b"a=1", state={"db": 1}, user="ann")
    async with connected(middleware(server, Painter()), scope) as client:
        client.say(create(stream=False, stream_id="left", generate=True, previous_response_id=None))
        await client.heard_ends()
    first, second = server.asked
    assert {"stream_id", "generate", "type"}.isdisjoint(first.json)
    assert first.json["stream"] is second.json["stream"] is True
    assert first.scope["headers"] == [
        (b"host", b"localhost"),
        (b"authorization", b"Bearer k"),
        (b"x-trace", b"t"),
        (b"accept", b"text/event-stream"),
        (b"content-type", b"application/json"),
        (b"x-request-id", b"req_1"),
        (b"content-length", str(len(first.body)).encode()),
        (b"accept-encoding", b"identity"),
    ]
    told = {name: first.scope[name] for name in ("type", "method", "scheme", "path", "query_string", "user")}
    assert told == {
        "type": "http",
        "method": "POST",
        "scheme": "https",
        "path": "/v1/responses",
        "query_string": b"a=1",
        "user": "ann",
    }
    assert "subprotocols" not in first.scope
    assert "extensions" not in first.scope
    assert first.scope["state"] == {"db": 1}
    assert first.scope["state"] is not scope["state"]


async def test_a_server_that_knows_no_state_and_no_scheme_is_served() -> None:
    server = ModelServer(saying("Hi"))
    scope = handshake()
    for name in ("state", "scheme", "subprotocols", "extensions"):
        del scope[name]
    async with connected(middleware(server, Painter()), scope) as client:
        client.say(TEXT)
        await client.heard_ends()
    assert server.asked[0].scope["scheme"] == "http"
    assert "state" not in server.asked[0].scope


async def test_the_first_subprotocol_is_taken_since_browsers_want_one() -> None:
    scope = handshake(subprotocols=["realtime", "openai-insecure-api-key.k"])
    async with connected(middleware(ModelServer(), Painter()), scope) as client:
        await client.heard(1)
    assert client.messages == [{"type": "websocket.accept", "subprotocol": "realtime"}]


@pytest.mark.parametrize("path", ["/responses", "/openai/v1/responses/"])
async def test_all_paths_of_the_endpoint_are_served(path: str) -> None:
    async with connected(middleware(ModelServer(*KITE_TURNS), Painter()), handshake(path)) as client:
        client.say(create())
        await client.heard_ends()
    assert client.events == EXPECTED


async def test_each_event_names_the_clients_lane() -> None:
    async with connected(middleware(ModelServer(*KITE_TURNS), Painter())) as client:
        client.say(create(stream_id='a "lane"'))
        await client.heard_ends()
    assert client.events == [{**event, "stream_id": 'a "lane"'} for event in EXPECTED]


async def test_previews_come_before_the_picture_is_finished() -> None:
    painter = Painter(waits=True)
    async with connected(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        client.say(create(tools=[{**HOSTED, "partial_images": 2}]))
        await client.heard_of("response.image_generation_call.partial_image", 2)
        assert "response.image_generation_call.completed" not in client.types
        painter.may_finish.set()
        await client.heard_ends()
    assert client.types.count("response.image_generation_call.partial_image") == 2


async def test_two_pictures_are_made_side_by_side() -> None:
    painter = Painter(waits=True)
    async with connected(middleware(ModelServer(calling("one", "two"), saying("Both.")), painter)) as client:
        client.say(create())
        await painter.was_asked(2)
        painter.may_finish.set()
        await client.heard_ends()
    output = client.events[-1]["response"]["output"]
    assert [(item["type"], item["status"]) for item in output] == [
        ("image_generation_call", "completed"),
        ("image_generation_call", "completed"),
        ("message", "completed"),
    ]


async def test_a_failed_picture_does_not_fail_the_response() -> None:
    painter = raising(ImageError("The image server is out of paint.", code="busy"))
    async with connected(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        client.say(create())
        await client.heard_ends()
    [failed, said] = client.events[-1]["response"]["output"]
    assert (failed["status"], failed["result"], failed["error"]["code"]) == ("failed", "", "busy")
    assert (said["type"], client.types[-1]) == ("message", "response.completed")


async def test_two_responses_one_after_the_other() -> None:
    server = ModelServer(*KITE_TURNS, saying("Hello."), *KITE_TURNS)
    async with connected(middleware(server, Painter())) as client:
        for count, message in enumerate((create(), TEXT, create(stream_id="x")), 1):
            client.say(message)
            await client.heard_ends(count)
    assert [json.loads(asked.body).get("tools") is None for asked in server.asked] == [
        False,
        False,
        True,
        False,
        False,
    ]
    ends = [event for event in client.events if event["type"] == "response.completed"]
    assert [end.get("stream_id") for end in ends] == [None, None, "x"]
    assert [event["sequence_number"] for event in client.events].count(0) == 3


async def test_a_conversation_is_continued_by_the_previous_responses_id() -> None:
    change = calling("", arguments='{"prompt":"make it blue","num_last_images_to_include":1}')
    server = ModelServer(*KITE_TURNS, change, saying("Blue."))
    painter = Painter()
    async with connected(middleware(server, painter)) as client:
        client.say(create())
        await client.heard_ends()
        first = client.events[-1]["response"]["id"]
        client.say(create(input="Make it blue.", previous_response_id=first))
        await client.heard_ends(2)
    assert [(one.prompt, [image.data for image in one.images]) for one in painter.asked] == [
        (KITE, []),
        ("make it blue", [png(KITE)]),
    ]
    assert server.asked[2].json["previous_response_id"] == "resp_up2"
    assert client.events[-1]["response"]["previous_response_id"] == first == "resp_up1"


async def test_another_credential_cannot_continue_it() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    async with connected(app, handshake(headers=[(b"authorization", b"Bearer ann")])) as client:
        client.say(create())
        await client.heard_ends()
    async with connected(app, handshake(headers=[(b"authorization", b"Bearer bob")])) as client:
        client.say(create(input="Make it blue.", previous_response_id="resp_up1"))
        await client.heard_ends()
    [told] = client.events
    assert (told["type"], told["status"], told["error"]["param"]) == ("error", 404, "previous_response_id")
    assert "resp_up1" in told["error"]["message"]


async def test_the_next_request_need_not_wait_for_what_the_application_does_afterwards() -> None:
    may_rest = asyncio.Event()
    server = ModelServer(KITE_TURNS[0], Answer(KITE_TURNS[1], afterwards=[may_rest]), *KITE_TURNS)
    async with connected(middleware(server, Painter())) as client:
        client.say(create())
        await client.heard_ends()
        client.say(create())
        await client.heard_ends(2)
        may_rest.set()
    assert client.types.count("response.completed") == 2


async def test_a_request_without_the_tool_travels_as_it_is() -> None:
    turn = saying("Hi", " there")
    server = ModelServer([b"".join(turn)[:200], b"".join(turn)[200:], b"data: [DONE]\n\n"])
    asked = {**TEXT, "tools": [WEATHER], "seed": 7, "stream_id": "s"}
    scope = handshake(state={"db": 1})
    async with connected(middleware(server, Painter()), scope) as client:
        client.say(asked)
        await client.heard_ends()
    assert server.asked[0].json == {
        "model": "local-model",
        "input": "Hello.",
        "tools": [WEATHER],
        "seed": 7,
        "stream": True,
    }
    assert server.asked[0].headers[b"content-length"] == b"%d" % len(server.asked[0].body)
    assert server.asked[0].scope["state"] == {"db": 1}
    assert server.asked[0].scope["state"] is not scope["state"]
    assert client.texts == [f'{one[:-1]},"stream_id":"s"}}' for one in payloads(b"".join(turn))]


async def test_a_history_with_pictures_but_without_the_tool_is_lowered() -> None:
    server = ModelServer(saying("Red."))
    item = {"type": "image_generation_call", "id": "ig_9", "result": "aGk=", "status": "completed"}
    history = [item, {"role": "user", "content": "Which colour?"}]
    async with connected(middleware(server, Painter())) as client:
        client.say({**TEXT, "input": history})
        await client.heard_ends()
    kinds = [item.get("type") for item in server.asked[0].json["input"]]
    assert kinds == ["function_call", "function_call_output", None]
    assert client.texts == payloads(b"".join(saying("Red.")))


async def test_a_keepalive_is_left_to_the_server() -> None:
    painter = Painter(waits=True)
    clock = Clock()
    async with connected(middleware(ModelServer(*KITE_TURNS), painter, keepalive=3)) as client:
        client.say(create())
        await painter.was_asked()
        await clock.forward(4)
        painter.may_finish.set()
        await client.heard_ends()
    assert client.events == EXPECTED


async def test_a_slow_client_that_reads_again_gets_each_event_once() -> None:
    painter = Painter(waits=True)
    async with connected(middleware(ModelServer(*KITE_TURNS), painter)) as client:
        client.say(create())
        await painter.was_asked()
        client.reads.clear()
        client.sent_to.clear()
        painter.may_finish.set()
        await client.sent_to.wait()
        client.reads.set()
        await client.heard_ends()
    assert client.events == EXPECTED


@pytest.mark.parametrize("answer", ["closes", "denies", "raises", "returns", "lingers"])
async def test_whatever_way_the_application_refuses_its_http_endpoint_is_used(answer: str) -> None:
    server = ModelServer(*KITE_TURNS)
    said: list[Message] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await server(scope, receive, send)
            return
        said.append(await receive())
        if answer == "raises":
            raise LookupError("no such route")
        if answer == "closes":
            await send({"type": "websocket.close"})
        elif answer == "denies":
            head = {"status": 404, "headers": []}
            await send({"type": "websocket.http.response.start", **head})
            await send({"type": "websocket.http.response.body", "body": b"", "more_body": False})
        elif answer == "lingers":
            await send({"type": "websocket.close"})
            await send({"type": "websocket.accept"})
            said.append(await receive())

    async with connected(middleware(inner, Painter())) as client:
        client.say(create())
        await client.heard_ends()
    assert client.events == EXPECTED
    assert said[0] == {"type": "websocket.connect"}
    assert said[1:] == ([{"type": "websocket.disconnect", "code": 1006}] if answer == "lingers" else [])


async def test_without_a_picture_maker_the_clients_own_function_call_arrives() -> None:
    async with connected(middleware(ModelServer(KITE_TURNS[0]), None)) as client:
        client.say(create())
        await client.heard_ends()
    [call] = client.events[-1]["response"]["output"]
    assert (call["type"], json.loads(call["arguments"])) == ("function_call", {"prompt": KITE})
