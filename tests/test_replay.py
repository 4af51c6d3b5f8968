"""`ReplayApp` gives recorded turns, `Recorder` takes them down."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

import pytest
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.replay import (
    Chunks,
    RecordedTurn,
    Recorder,
    ReplayApp,
    byte_by_byte,
    frame_by_frame,
    split_at,
    whole,
)
from loopback import Client, ask, body_of, http_scope, raw_server, read_request, uvicorn_server
from starlette.types import Message, Receive, Scope, Send

BODY = b"event: a\ndata: {}\n\ndata: 1\r\n\r\n: tail"
TURN = RecordedTurn(BODY)
REFUSAL = RecordedTurn(
    b'{"error":{}}',
    429,
    ((b"content-type", b"application/json"), (b"retry-after", b"1"), (b"content-length", b"12")),
)


def head(status: int, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


async def test_the_nth_post_gets_the_nth_turn_with_its_status_and_headers() -> None:
    app = ReplayApp([TURN, REFUSAL], final=RecordedTurn(b"over", 200, ()))
    answers = [await ask(app, http_scope(), b'{"n": %d}' % number) for number in range(4)]
    assert [answer[0] for answer in answers] == [
        head(200, (b"content-type", b"text/event-stream")),
        head(429, (b"content-type", b"application/json"), (b"retry-after", b"1")),
        head(200),
        head(200),
    ]
    assert [body_of(answer) for answer in answers] == [BODY, b'{"error":{}}', b"over", b"over"]
    assert app.requests == [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("chunks", "pieces"),
    [
        (whole, [BODY]),
        (byte_by_byte, [bytes([byte]) for byte in BODY]),
        (frame_by_frame, [b"event: a\ndata: {}\n\n", b"data: 1\r\n\r\n", b": tail"]),
        (split_at(5, -6), [BODY[:5], BODY[5:-6], b": tail"]),
        (split_at(9_999, 1, -9_999), [BODY[:1], BODY[1:]]),
        (split_at(), [BODY]),
    ],
)
async def test_a_body_is_sent_in_the_pieces_that_were_asked_for(chunks: Chunks, pieces: list[bytes]) -> None:
    messages = await ask(ReplayApp([TURN], chunks=chunks), http_scope(), b"{}")
    assert messages[1:] == [
        *({"type": "http.response.body", "body": piece, "more_body": True} for piece in pieces),
        {"type": "http.response.body", "body": b"", "more_body": False},
    ]


def envelope(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "replay_error", "param": None, "code": None}}


@pytest.mark.parametrize(
    ("method", "pieces", "status", "message"),
    [
        ("POST", [b"{}"], 500, "This is request 2, but the recording has no more than 1 turns."),
        ("POST", [b"{", b"]"], 400, "The request body must be JSON."),
        ("POST", [], 400, "The request body must be JSON."),
        ("GET", [], 404, "Only POST requests were recorded, and this is a GET."),
    ],
)
async def test_what_was_not_recorded_is_an_error_that_says_so(
    method: str, pieces: Iterable[bytes], status: int, message: str
) -> None:
    app = ReplayApp([TURN])
    await ask(app, http_scope(), b"{}")
    messages = await ask(app, http_scope(method=method), *pieces)
    assert messages[0]["status"] == status
    assert dict(messages[0]["headers"])[b"x-should-retry"] == b"false"
    assert json.loads(body_of(messages)) == envelope(message)


async def test_a_request_that_is_not_understood_uses_up_no_turn() -> None:
    app = ReplayApp([TURN])
    await ask(app, http_scope(), b"nonsense")
    await ask(app, http_scope(method="GET"))
    assert body_of(await ask(app, http_scope(), b"{}")) == BODY
    assert app.requests == [{}]


async def test_a_compressed_request_is_read() -> None:
    app = ReplayApp([TURN])
    await ask(app, http_scope(headers=[(b"content-encoding", b"gzip")]), gzip.compress(b'{"a": 1}'))
    assert app.requests == [{"a": 1}]


async def test_a_request_in_a_coding_that_is_not_read_is_no_json() -> None:
    messages = await ask(ReplayApp([TURN]), http_scope(headers=[(b"content-encoding", b"br")]), b"{}")
    assert (messages[0]["status"], json.loads(body_of(messages))) == (
        400,
        envelope("The request body must be JSON."),
    )


async def test_a_replay_knows_no_websockets() -> None:
    with pytest.raises(NotImplementedError, match="no ASGI scope of type 'websocket'"):
        await ReplayApp([])({"type": "websocket"}, asyncio.Queue().get, asyncio.Queue().put)


async def test_a_recorder_keeps_raw_answers_of_real_servers_and_changes_nothing() -> None:
    app = ReplayApp([TURN, REFUSAL], chunks=byte_by_byte)
    async with uvicorn_server(app) as url, aclosing(ProxyApp(url)) as proxy:
        recorder = Recorder(proxy)
        answers = [await ask(recorder, http_scope(), b"{}") for _ in range(2)]
        await ask(recorder, http_scope(method="GET"))
    assert [body_of(answer) for answer in answers] == [BODY, b'{"error":{}}']
    assert [(turn.status, turn.body) for turn in recorder.turns] == [(200, BODY), (429, b'{"error":{}}')]
    assert [list(turn.headers) for turn in recorder.turns] == [answer[0]["headers"] for answer in answers]
    assert (b"retry-after", b"1") in recorder.turns[1].headers


async def test_a_recorder_hands_on_the_very_same_messages() -> None:
    messages = [
        {"type": "http.response.start", "status": 200},
        {"type": "http.response.body", "body": b"a", "more_body": True},
        {"type": "http.response.debug"},
        {"type": "http.response.body"},
    ]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        assert recorder.turns == [RecordedTurn(b"a", 200, ())]  # before the app has returned

    recorder = Recorder(app)
    heard = await ask(recorder, http_scope())
    assert all(one is other for one, other in zip(heard, messages, strict=True))


async def test_turns_are_kept_in_the_order_in_which_they_began() -> None:
    second = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"] == "/first"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if first:
            began.set()
            await second.wait()
        await send({"type": "http.response.body", "body": scope["path"].encode()})
        second.set()

    began = asyncio.Event()
    recorder = Recorder(app)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(recorder, http_scope("/first")))
        await began.wait()
        await ask(recorder, http_scope("/second"))
    assert [turn.body for turn in recorder.turns] == [b"/first", b"/second"]


async def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await heard.wait()

    heard = asyncio.Event()
    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as proxy:
        recorder = Recorder(proxy)
        client = Client(recorder, http_scope())
        client.send_body(b"")
        running = asyncio.ensure_future(client.run())
        while (await client.hears.get()).get("body") != b"half":
            pass
        heard.set()
        with pytest.raises(Exception, match="broke off"):
            await running
    assert recorder.turns == [RecordedTurn(b"half", 200, ((b"content-length", b"9"),))]


async def test_nothing_is_kept_of_an_app_that_fails_before_it_answers() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("no answer")

    recorder = Recorder(app)
    with pytest.raises(RuntimeError, match="no answer"):
        await ask(recorder, http_scope())
    assert recorder.turns == []
