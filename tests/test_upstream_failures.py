"""When the model server, or the application in front of it, does not do what it should."""

from __future__ import annotations

import asyncio
import json

import pytest
from asgi import ask, conversation, draw, middleware, post
from failed_stream import failed
from kite import kinds, kite_stream, usage
from model_server import HOSTED, JSON, KITE_TURNS, SSE, Answer, ModelServer, saying, whole
from painters import Painter
from rules import check_response, read_events
from starlette.types import Receive, Send
from waiting import Clock, settle

NEUTRAL = "The model server failed to complete the response."
TOO_LARGE = "The model server's answer is larger than the 1000 bytes that max_event allows."
BAD_GATEWAY = {"error": {"message": NEUTRAL, "type": "server_error", "param": None, "code": None}}
EXPECTED = kite_stream(spent=usage(200, 20))
REFUSED = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'


# -- turn one is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("status", "headers", "pieces"),
    [
        (401, [*JSON, (b"www-authenticate", b"Bearer")], [REFUSED]),
        (429, [*JSON, (b"retry-after", b"7"), (b"x-request-id", b"r1")], [REFUSED[:10], REFUSED[10:]]),
        (400, [*JSON, (b"content-length", b"82"), (b"etag", b"e"), (b"content-encoding", b"br")], [REFUSED]),
        (500, [(b"content-type", b"text/plain")], [b"Internal Server Error"]),
        (503, SSE, [b"event: error\n", b"\n", b"data: {}\n\n"]),
        (307, [(b"location", b"/v1/responses/")], []),
    ],
)
async def test_a_refusal_of_turn_one_reaches_the_client_as_it_is(
    status: int, headers: list[tuple[bytes, bytes]], pieces: list[bytes], stream: bool
) -> None:
    painter = Painter()
    server = ModelServer(Answer(pieces, status, headers))
    client = await ask(middleware(server, painter), draw(stream=stream))
    named = any(name == b"x-request-id" for name, _ in headers)
    headers = headers if named else [*headers, (b"x-request-id", b"req_1")]
    assert client.messages == [
        {"type": "http.response.start", "status": status, "headers": headers},
        *({"type": "http.response.body", "body": piece, "more_body": True} for piece in pieces),
        {"type": "http.response.body", "body": b"", "more_body": False},
    ]
    assert (painter.asked, len(server.asked)) == ([], 1)


async def test_a_refusal_is_streamed_as_it_comes_and_may_take_its_time() -> None:
    clock, rest = Clock(), asyncio.Event()
    server = ModelServer(Answer([b"one", rest, b"two"], 500))
    async with conversation(middleware(server, Painter()), draw()) as client:
        await client.heard(b"one")
        await clock.forward(2_000)
        rest.set()
    assert client.pieces == [b"one", b"two", b""]


async def test_a_refusal_without_an_end_has_none_for_the_client_either() -> None:
    client = await ask(middleware(ModelServer(Answer([b"no"], 500, complete=False)), Painter()), draw())
    assert client.pieces == [b"no"]
    assert not client.complete


async def test_what_else_an_application_sends_with_a_refusal_is_dropped() -> None:
    async def trailers(receive: Receive, send: Send) -> None:
        await send({"type": "http.response.trailers", "headers": [], "more_trailers": False})

    client = await ask(middleware(ModelServer(Answer([trailers, b"no"], 500)), Painter()), draw())
    assert client.pieces == [b"no", b""]


# -- turn one is no answer at all ------------------------------------------------------------------

HTML = [(b"content-type", b"text/html")]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html>Welcome</html>"], headers=HTML),
        Answer([b"<html>Welcome</html>"]),
        Answer([REFUSED], headers=JSON),
        Answer([b"[1]"], headers=JSON),
        Answer([], headers=[]),
    ],
    ids=["html", "html as a stream", "error with 200", "no object", "empty"],
)
async def test_an_answer_that_is_no_response_becomes_a_502(answer: Answer, stream: bool) -> None:
    painter = Painter()
    app = middleware(ModelServer(answer), painter, cors_origins="*")
    client = await ask(app, draw(stream=stream), post(headers=[(b"origin", b"https://a.example")]))
    assert (client.status, client.json) == (502, BAD_GATEWAY)
    assert client.headers == [
        (b"access-control-allow-origin", b"https://a.example"),
        (b"vary", b"Origin"),
        (b"x-request-id", b"req_1"),
        (b"x-should-retry", b"false"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(client.body)).encode()),
    ]
    assert painter.asked == []


async def test_an_error_in_place_of_an_event_fails_the_response() -> None:
    answer = [b'data: {"error": {"message": "out of memory"}}\n\n']
    client = await ask(middleware(ModelServer(answer), Painter()), draw())
    assert (client.status, failed(client.body, pictures=0)) == (200, [])
    assert b"out of memory" not in client.body
    client = await ask(middleware(ModelServer(answer), Painter()), draw(stream=False))
    assert (client.status, client.json) == (502, BAD_GATEWAY)


async def test_an_answer_larger_than_an_event_may_be_ends_at_once() -> None:
    rest = asyncio.Event()
    server = ModelServer(Answer([b"x" * 600, b"y" * 600, rest, b"z" * 600], headers=JSON))
    async with conversation(middleware(server, Painter(), max_event=1000), draw()) as client:
        await client.heard_all()
        assert client.status == 502
        rest.set()
    assert client.json == {"error": {**BAD_GATEWAY["error"], "message": TOO_LARGE}}


# -- without a stream ------------------------------------------------------------------------------


def broken(turn: list[bytes]) -> bytes:
    """Make the answer of a server that has failed."""
    response = json.loads(whole(turn))
    error = {"code": "server_error", "message": "CUDA out of memory"}
    return json.dumps({**response, "status": "failed", "error": error}).encode()


async def test_without_a_stream_a_failure_before_any_picture_is_the_servers_own() -> None:
    server = ModelServer(Answer([broken(saying("Half a"))], headers=JSON))
    client = await ask(middleware(server, Painter()), draw(stream=False))
    assert (client.status, client.json["status"]) == (200, "failed")
    assert check_response(client.json, tools=[HOSTED]) == []
    assert b"CUDA" not in client.body


async def test_without_a_stream_a_turn_that_breaks_off_before_any_picture_is_a_502() -> None:
    server = ModelServer(Answer([whole(KITE_TURNS[1])[:-9]], headers=JSON))
    client = await ask(middleware(server, Painter()), draw(stream=False))
    assert (client.status, client.json) == (502, BAD_GATEWAY)
    assert (b"x-should-retry", b"false") in client.headers


@pytest.mark.parametrize(
    "second",
    [
        Answer([broken(saying("Half a"))], headers=JSON),
        Answer([b"<html>"], headers=HTML),
        Answer([REFUSED], 400, JSON),
        Answer(status=0, complete=False),
    ],
    ids=["failed", "html", "refused", "no answer"],
)
async def test_without_a_stream_a_failure_after_a_picture_is_a_200_that_holds_it(second: Answer) -> None:
    server = ModelServer(Answer([whole(KITE_TURNS[0])], headers=JSON), second)
    client = await ask(middleware(server, Painter()), draw(stream=False))
    assert (client.status, client.json["status"]) == (200, "failed")
    assert client.json["output"][0]["result"]
    assert check_response(client.json, tools=[HOSTED]) == []


# -- the application raises, or returns too early --------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("boom"), asyncio.CancelledError()])
async def test_what_the_application_raises_before_its_head_comes_out_as_it_is(error: BaseException) -> None:
    server = ModelServer(Answer([error], status=0))
    client = await ask(middleware(server, Painter()), draw(), raises=error)
    assert client.messages == []


@pytest.mark.parametrize("error", [RuntimeError("boom"), asyncio.CancelledError()])
async def test_what_it_raises_after_its_head_ends_the_response_first(error: BaseException) -> None:
    server = ModelServer([*KITE_TURNS[1][:5], error])
    client = await ask(middleware(server, Painter()), draw(), raises=error)
    assert client.complete
    assert kinds({"output": failed(client.body, pictures=0)}) == ["message"]


async def test_pictures_are_cancelled_as_soon_as_their_turn_breaks_off() -> None:
    painter, cut = Painter(waits=True), asyncio.Event()
    server = ModelServer([*KITE_TURNS[0][:6], cut, b"data: {\n\n"])
    async with conversation(middleware(server, painter), draw()) as client:
        await painter.was_asked()
        client.reads.clear()
        cut.set()
        await painter.was_cancelled()
        client.reads.set()
    [item] = failed(client.body, pictures=0)
    assert item["status"] == "failed"


async def test_what_it_raises_between_its_head_and_the_first_event_is_a_502() -> None:
    error = RuntimeError("boom")
    client = await ask(middleware(ModelServer([error]), Painter()), draw(), raises=error)
    assert (client.status, client.json) == (502, BAD_GATEWAY)


@pytest.mark.parametrize("status", [0, 200])
async def test_what_it_raises_in_turn_two_leaves_the_client_its_picture(status: int) -> None:
    error = RuntimeError("boom")
    steps = [*(KITE_TURNS[1][:5] if status else ()), error]
    server = ModelServer(KITE_TURNS[0], Answer(steps, status=status))
    client = await ask(middleware(server, Painter()), draw(), raises=error)
    assert client.complete
    assert len(failed(client.body, pictures=1)) == (2 if status else 1)


@pytest.mark.parametrize("complete", [True, False])
async def test_what_it_raises_after_the_end_costs_the_client_nothing(complete: bool) -> None:
    error = RuntimeError("boom")
    last = Answer([*KITE_TURNS[1], *(() if complete else (error,))], complete=complete, afterwards=[error])
    server = ModelServer(KITE_TURNS[0], last)
    client = await ask(middleware(server, Painter()), draw(), raises=error)
    assert client.complete
    assert read_events(client.body) == EXPECTED


async def test_the_first_of_several_exceptions_comes_out() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    server = ModelServer(Answer(KITE_TURNS[0], afterwards=[first]), [second])
    client = await ask(middleware(server, Painter()), draw(), raises=first)
    failed(client.body, pictures=1)


async def test_a_server_error_page_that_is_followed_by_its_exception_passes_with_it() -> None:
    error = RuntimeError("boom")  # as Starlette does it
    answer = Answer([b"Internal Server Error"], 500, afterwards=[error])
    client = await ask(middleware(ModelServer(answer), Painter()), draw(), raises=error)
    assert (client.status, client.body) == (500, b"Internal Server Error")


async def test_an_application_that_returns_without_an_answer_leaves_it_to_the_server() -> None:
    client = await ask(middleware(ModelServer(Answer(status=0, complete=False)), Painter()), draw())
    assert client.messages == []


async def test_an_application_that_returns_in_the_midst_of_its_answer_has_failed() -> None:
    client = await ask(middleware(ModelServer(Answer(KITE_TURNS[1][:5], complete=False)), Painter()), draw())
    assert client.complete
    failed(client.body, pictures=0)


async def test_an_answer_without_its_last_message_is_whole_if_its_last_event_was_there() -> None:
    server = ModelServer(*(Answer(turn, complete=False) for turn in KITE_TURNS))
    client = await ask(middleware(server, Painter()), draw())
    assert client.complete
    assert read_events(client.body) == EXPECTED


# -- follow-ups that are refused -------------------------------------------------------------------


async def test_a_busy_server_is_asked_once_more_after_the_time_it_names() -> None:
    clock = Clock()
    busy = Answer([REFUSED], 429, [*JSON, (b"retry-after", b"8")])
    server = ModelServer(KITE_TURNS[0], busy, KITE_TURNS[1])
    async with conversation(middleware(server, Painter()), draw()) as client:
        await server.was_asked(2)
        await settle()
        await clock.forward(7)
        assert len(server.asked) == 2
        await clock.forward(1)
    assert read_events(client.body) == EXPECTED
    assert server.asked[1].body == server.asked[2].body


async def test_a_server_that_stays_busy_ends_the_response() -> None:
    busy = Answer([b"x" * 70_000, b"y" * 70_000], 503, [(b"retry-after", b"0")])
    server = ModelServer(KITE_TURNS[0], busy, busy)
    client = await ask(middleware(server, Painter()), draw())
    failed(client.body, pictures=1)
    assert len(server.asked) == 3


async def test_the_body_of_a_refusal_reaches_the_log_but_not_the_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ModelServer(KITE_TURNS[0], Answer([REFUSED], 422, JSON))
    client = await ask(middleware(server, Painter()), draw())
    failed(client.body, pictures=1)
    assert "status 422" in caplog.text
    assert REFUSED not in client.body
