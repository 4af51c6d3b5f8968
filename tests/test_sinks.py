"""The client's end of a response: heads, frames, and the two kinds of an end."""

from __future__ import annotations

import asyncio

import pytest
from asgi import ask, draw, middleware
from imagecall.events.actions import Finish
from imagecall.events.sse import KEEPALIVE
from imagecall.middleware.headers import Headers
from imagecall.middleware.sinks import JSONSink, SSESink
from model_server import JSON, KITE_TURNS, SSE, Answer, ModelServer, whole
from painters import Painter
from starlette.types import Message

Pairs = list[tuple[bytes, bytes]]

OF_THE_OLD_BODY: Pairs = [
    (b"Content-Length", b"12"),
    (b"content-encoding", b"gzip"),
    (b"ETag", b'"e"'),
    (b"transfer-encoding", b"chunked"),
]
KEPT: Pairs = [
    (b"x-request-id", b"req_1"),
    (b"x-ratelimit-remaining-requests", b"9"),
    (b"set-cookie", b"a=1"),
    (b"set-cookie", b"b=2"),
]
ERROR: Pairs = [(b"vary", b"Origin")]
FRAME = b"event: x\ndata: {}\n\n"


class Sent:
    """Records what a sink sends; a send that fails is not recorded."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.fails: BaseException | None = None

    async def __call__(self, message: Message) -> None:
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error
        self.messages.append(message)


def start(status: int, headers: Headers) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data: bytes, *, more_body: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more_body}


STREAM: Pairs = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


async def test_the_head_goes_out_with_the_first_frames_and_only_then() -> None:
    sent = Sent()
    sink = SSESink(sent, ERROR)
    sink.head(201, [*OF_THE_OLD_BODY[:2], *SSE, *KEPT, *OF_THE_OLD_BODY[2:]])
    await sink.keepalive()
    assert sent.messages == []
    await sink.write(FRAME)
    await sink.keepalive()
    await sink.write(FRAME * 2)
    await sink.close(Finish((b"{}",)))
    assert sent.messages == [
        start(201, [*KEPT, *STREAM]),
        body(FRAME),
        body(KEEPALIVE),
        body(FRAME * 2),
        body(b"", more_body=False),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], STREAM[1:]),
        ([(b"Cache-Control", b"private")], STREAM[2:]),
        ([(b"X-Accel-Buffering", b"yes")], STREAM[1:2]),
    ],
)
async def test_what_the_upstream_says_of_caches_is_kept(given: Pairs, told: Pairs) -> None:
    sent = Sent()
    sink = SSESink(sent, [])
    kind = (b"content-type", b"text/event-stream; charset=latin-1")
    sink.head(200, [kind, *given])
    await sink.write(FRAME)
    assert sent.messages[0]["headers"] == [*given, kind, *told]


@pytest.mark.parametrize("given", [JSON, [], [(b"Content-Type", b"text/plain")]])
async def test_what_was_no_event_stream_is_declared_one(given: Pairs) -> None:
    sent = Sent()
    sink = SSESink(sent, [])
    sink.head(200, given)
    await sink.write(FRAME)
    kinds = [value for name, value in sent.messages[0]["headers"] if name.lower() == b"content-type"]
    assert kinds == [b"text/event-stream; charset=utf-8"]


async def test_a_head_whose_send_was_cancelled_is_sent_again() -> None:
    sent = Sent()
    sink = SSESink(sent, [])
    sent.fails = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await sink.write(FRAME)
    await sink.write(FRAME)
    assert [message["type"] for message in sent.messages] == ["http.response.start", "http.response.body"]


@pytest.mark.parametrize("sink_type", [SSESink, JSONSink])
async def test_a_response_that_never_began_ends_as_a_502(sink_type: type[SSESink | JSONSink]) -> None:
    sent = Sent()
    sink = sink_type(sent, ERROR)
    sink.head(200, [*SSE, *KEPT])
    await sink.close(Finish(None, failed=True))
    head, end = sent.messages
    length = str(len(end["body"])).encode()
    own = [(b"x-should-retry", b"false"), *JSON, (b"content-length", length)]
    assert head == start(502, [*ERROR, *own])
    assert end["more_body"] is False


async def test_an_object_goes_out_at_the_end_with_the_head_of_turn_one() -> None:
    sent = Sent()
    sink = JSONSink(sent, ERROR)
    sink.head(201, [*OF_THE_OLD_BODY, *JSON, *KEPT])
    await sink.write(FRAME)
    await sink.keepalive()
    assert sent.messages == []
    await sink.close(Finish((b'{"id":1}',)))
    assert sent.messages == [
        start(201, [*KEPT, *JSON, (b"content-length", b"8")]),
        body(b'{"id":1}', more_body=False),
    ]


@pytest.mark.parametrize("stream", [True, False])
async def test_the_clients_head_is_that_of_turn_one(stream: bool) -> None:
    kind = SSE if stream else JSON
    first, second = KITE_TURNS if stream else ([whole(turn)] for turn in KITE_TURNS)
    server = ModelServer(
        Answer(first, 201, [*kind, *KEPT, *OF_THE_OLD_BODY]),
        Answer(second, 200, [*kind, (b"x-request-id", b"req_2")]),
    )
    client = await ask(middleware(server, Painter()), draw(stream=stream))
    assert client.status == 201
    assert client.headers[: len(KEPT)] == KEPT
    rewritten = {name.lower() for name, _ in client.headers[len(KEPT) :]}
    own = {b"cache-control", b"x-accel-buffering"} if stream else {b"content-length"}
    assert rewritten == {b"content-type", *own}
