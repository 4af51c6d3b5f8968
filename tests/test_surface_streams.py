"""Streams told again, and requests whose answers are the model server's own."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from asgi import Client, ask, draw, middleware, post
from model_server import JSON, KITE_TURNS, Answer, ModelServer, whole
from painters import Painter
from surface import asking, delete, final, get
from test_asgi import FORM, Mirror
from waiting import Clock

GONE = Answer([b"{}"], status=404, headers=JSON)


# -- the stream again ------------------------------------------------------------------------------


@pytest.mark.parametrize("done", [b"", b"data: [DONE]\n\n"])
async def test_the_stream_can_be_had_again_byte_for_byte(done: bytes) -> None:
    turns = [[*turn, done] for turn in KITE_TURNS]
    app = middleware(ModelServer(*turns), Painter())
    client = await ask(app, draw(tools=[{"type": "image_generation", "partial_images": 1}]))
    assert client.body.endswith(done)
    again = await get(app, "resp_up1", "stream=true")
    assert again.status == 200
    assert dict(again.headers)[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert again.body == client.body


@pytest.mark.parametrize("after", [0, 3, 7, 14])
async def test_the_stream_can_be_had_from_any_number_on(after: int) -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    frames = re.findall(rb"event: .+?\n\n", (await ask(app, draw())).body, re.DOTALL)
    assert len(frames) == 15
    again = await get(app, "resp_up1", f"stream=1&starting_after={after}")
    assert again.body == b"".join(frames[after + 1 :])


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 30])
async def test_a_number_that_is_none_is_refused(after: str) -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw())
    client = await get(app, "resp_up1", f"stream=true&starting_after={after}")
    assert client.status == 400
    assert client.json["error"]["param"] == "starting_after"
    assert client.json["error"]["message"] == "Invalid 'starting_after': expected an integer of at least 0."


async def test_what_was_no_stream_has_none() -> None:
    answers = [Answer([whole(turn)], headers=JSON) for turn in KITE_TURNS]
    app = middleware(ModelServer(*answers), Painter())
    await ask(app, draw(stream=False))
    client = await get(app, "resp_up1", "stream=true")
    assert (client.status, client.json["error"]["param"]) == (400, "stream")
    assert (await get(app, "resp_up1", "stream=false")).status == 200


async def test_a_client_that_leaves_while_the_stream_is_told_again_is_left_alone() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw())
    for leave in ("message", "send"):
        client = Client(app, b"", post("/v1/responses/resp_up1", method="GET", query_string=b"stream=true"))
        if leave == "send":
            client.left = ConnectionResetError()
        else:
            client.reads.clear()
            client.leave()
        await client.run()
        assert client.raised is None
        assert not client.complete


async def test_a_client_that_takes_nothing_of_the_stream_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    app = middleware(ModelServer(*KITE_TURNS), Painter(), response_timeout=100, disconnect_grace=5)
    await ask(app, draw())
    before = asyncio.all_tasks()
    client = Client(app, b"", post("/v1/responses/resp_up1", method="GET", query_string=b"stream=true"))
    client.reads.clear()
    telling = asyncio.create_task(client.run())
    await client.sent_to.wait()
    await clock.forward(104)
    assert not telling.done()
    await clock.forward(1)
    assert telling.done()
    assert (client.messages, client.raised) == ([], None)
    assert asyncio.all_tasks() == before
    (told,) = caplog.messages
    assert told.startswith("A client that follows resp_up1 had not taken all of it")


# -- what else is asked with a request -------------------------------------------------------------


@pytest.mark.parametrize("tail", ["input_tokens", "compact"])
async def test_requests_that_create_nothing_are_lowered_and_their_answer_passes(tail: str) -> None:
    server = ModelServer(*KITE_TURNS, Answer([b'{"input_tokens": 12}'], headers=JSON))
    app = middleware(server, Painter())
    item = final(await ask(app, draw()))["output"][0]
    request = {"model": "m", "tools": [{"type": "image_generation"}], "input": [{"id": item["id"]}]}
    client = await asking(app, "POST", tail, body=request)
    assert client.body == b'{"input_tokens": 12}'
    asked = server.asked[2]
    assert (asked.scope["method"], asked.scope["path"]) == ("POST", f"/v1/responses/{tail}")
    assert [tool["type"] for tool in asked.json["tools"]] == ["function"]
    assert [one["type"] for one in asked.json["input"]] == ["function_call", "function_call_output"]
    assert "stream" not in asked.json
    assert asked.headers[b"content-length"] == str(len(asked.body)).encode()


async def test_a_stream_that_is_asked_for_travels_on_there_too() -> None:
    server = ModelServer(Answer([b"{}"], headers=JSON))
    await asking(middleware(server, Painter()), "POST", "compact", body=draw(stream=True))
    assert server.asked[0].json["stream"] is True


async def test_a_previous_response_is_replaced_there_too() -> None:
    server = ModelServer(*KITE_TURNS, Answer([b"{}"], headers=JSON), GONE, GONE)
    app = middleware(server, Painter())
    await ask(app, draw())
    request = {"model": "m", "input": "How long?", "previous_response_id": "resp_up1"}
    await asking(app, "POST", "input_tokens", body=request)
    assert server.asked[2].json["previous_response_id"] == "resp_up2"
    await delete(app, "resp_up1")
    client = await asking(app, "POST", "input_tokens", body=request)
    assert (client.status, client.json["error"]["param"]) == (404, "previous_response_id")
    assert len(server.asked) == 5


@pytest.mark.parametrize(
    ("scope", "body"),
    [
        (post("/v1/responses/input_tokens"), b'{"input": "Hello."}'),
        (post("/v1/responses/compact"), b'{"input": "ig_"'),
        (post("/v1/responses/compact", method="GET"), b""),
        (post("/v1/responses/compact") | {"headers": [(b"content-type", FORM)]}, b"input=image_generation"),
    ],
)
async def test_and_those_without_a_word_of_ours_pass_as_they_are(scope: Any, body: bytes) -> None:
    mirror = Mirror()
    client = Client(middleware(mirror, Painter()), body, scope)
    await client.run()
    assert mirror.scope is scope
    assert mirror.send is client.send
    assert mirror.received[0] is client.said[0]
