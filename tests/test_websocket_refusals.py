"""Over a WebSocket, what is no response becomes an error event, and costs that one response only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgi import middleware
from kite import kite_stream, usage
from model_server import HOSTED, JSON, KITE_TURNS, SSE, Answer, ModelServer, saying, whole
from painters import Painter
from sockets import connected, create, error, handshake

EXPECTED = kite_stream(spent=usage(200, 20))
NEUTRAL = "The model server failed to complete the response."
TEXT = {"type": "response.create", "model": "local-model", "input": "Hello."}

REFUSED = {"message": "Wrong key.", "type": "auth", "param": None, "code": "invalid_api_key"}


@pytest.mark.parametrize("message", [create(), TEXT])
async def test_a_refusal_becomes_an_error_with_its_status_and_the_connection_stays(message: Any) -> None:
    refusal = Answer([json.dumps({"error": REFUSED}).encode()], 401, JSON)
    painter = Painter()
    server = ModelServer(refusal, *KITE_TURNS)
    async with connected(middleware(server, painter)) as client:
        client.say({**message, "stream_id": "s"})
        await client.heard_ends()
        assert painter.asked == []
        client.say(create())
        await client.heard_ends(2)
    assert client.events[0] == {"type": "error", "status": 401, "error": REFUSED, "stream_id": "s"}
    assert client.events[1:] == EXPECTED


async def test_what_the_client_must_mend_is_told_with_its_place() -> None:
    server = ModelServer(*KITE_TURNS)
    async with connected(middleware(server, Painter())) as client:
        client.say(create(tools=[{**HOSTED, "partial_images": 9}], stream_id="s"))
        await client.heard_ends()
    [told] = client.events
    assert (told["status"], told["stream_id"]) == (400, "s")
    assert told["error"]["param"] == "tools[0].partial_images"
    assert server.asked == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer([b"no"], 503, SSE), error(503, "no")),
        (Answer([], 502), error(502, "The model server answered 502.")),
        (Answer([b'{"detail":"who?"}'], 404, JSON), error(404, '{"detail":"who?"}')),
        (Answer([b'{"message":"flat","code":7}'], 400, JSON), error(400, "flat", code=7)),
        (Answer([b'{"error":"words"}'], 400, JSON), error(400, '{"error":"words"}')),
        (Answer([b"[1]"], 200, JSON), error(502, NEUTRAL)),
        (Answer([b"<html>"], 200, [(b"content-type", b"text/html")]), error(502, NEUTRAL)),
        (Answer([], 200), error(502, NEUTRAL)),
        (Answer(status=0, complete=False), error(502, NEUTRAL)),
    ],
)
async def test_an_answer_that_is_no_response_becomes_an_error(answer: Answer, told: Any) -> None:
    async with connected(middleware(ModelServer(answer), Painter())) as client:
        client.say(TEXT)
        await client.heard_ends()
    assert client.events == [told]


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "odd"])
async def test_a_whole_response_in_answer_to_a_stream_request_becomes_its_last_event(status: str) -> None:
    response = {**json.loads(whole(saying("Hi"))), "status": status}
    server = ModelServer(Answer([json.dumps(response).encode()], 200, JSON))
    async with connected(middleware(server, Painter())) as client:
        client.say(TEXT)
        await client.heard_ends()
    kind = f"response.{'completed' if status == 'odd' else status}"
    assert client.events == [{"type": kind, "sequence_number": 0, "response": response}]


@pytest.mark.parametrize("message", [create(), TEXT])
async def test_an_application_that_raises_costs_one_response_only(
    message: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broken = ZeroDivisionError("broken")
    server = ModelServer(Answer([broken], status=0), saying("Hi"))
    async with connected(middleware(server, Painter())) as client:
        client.say(message)
        await client.heard_ends()
        client.say(TEXT)
        await client.heard_ends(2)
    assert client.events[0] == error(502, NEUTRAL)
    assert client.types[-1] == "response.completed"
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info is not None
    assert record.exc_info[1] is broken


async def test_a_model_server_that_breaks_off_amid_a_picture_ends_the_response_as_failed() -> None:
    server = ModelServer(Answer([*KITE_TURNS[0][:4], ConnectionError("cut")], complete=False))
    async with connected(middleware(server, Painter())) as client:
        client.say(create())
        await client.heard_of("response.failed")
    assert client.types[-2:] == ["error", "response.failed"]
    assert client.events[-2]["error"]["message"] == NEUTRAL


async def test_another_turn_one_that_is_no_response_becomes_an_error() -> None:
    server = ModelServer(Answer([b"<html>"], 200, [(b"content-type", b"text/html")]))
    async with connected(middleware(server, Painter())) as client:
        client.say(create())
        await client.heard_ends()
    assert client.events == [error(502, NEUTRAL)]


# -- pages of other origins ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origins", "origin", "accepted"),
    [
        ("", b"http://localhost", True),
        ("", b"https://LOCALHOST", True),  # a proxy before us may speak TLS
        ("", b"http://localhost:8080", False),
        ("", b"https://thief.example", False),
        ("", b"null", False),
        ("https://page.example", b"https://page.example", True),
        ("https://page.example", b"http://page.example", False),
        ("null", b"null", True),
        ("*", b"https://page.example", True),
    ],
)
async def test_only_pages_that_could_post_may_open_a_websocket(
    origins: str, origin: bytes, accepted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = middleware(ModelServer(), Painter(), cors_origins=origins)
    async with connected(app, handshake(headers=[(b"origin", origin)]), stays=not accepted) as client:
        pass
    told = "websocket.accept" if accepted else "websocket.close"
    assert [message["type"] for message in client.messages] == [told]
    assert ("cors_origins" in caplog.text) is not accepted
