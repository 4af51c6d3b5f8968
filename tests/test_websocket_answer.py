"""One response's way to a client of a WebSocket, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from imagecall.events.actions import Finish
from imagecall.events.sse import DONE, encode
from imagecall.middleware.websocket.answer import WebSocketAnswer
from model_server import KITE_TURNS, SSE, saying
from sockets import error, payloads
from starlette.types import Message
from waiting import settle

BODY = b"".join(saying("Hi", " there"))
NEUTRAL = "The model server failed to complete the response."


class Told:
    """Takes text messages, so many at once and the others when it may."""

    def __init__(self, waits_after: int = 1_000) -> None:
        self.texts: list[str] = []
        self.may = asyncio.Event()
        self._waits_after = waits_after

    async def __call__(self, text: str) -> None:
        if len(self.texts) >= self._waits_after:
            await self.may.wait()
        self.texts.append(text)

    @property
    def events(self) -> list[Any]:
        return [json.loads(text) for text in self.texts]


async def feed(answer: WebSocketAnswer, pieces: Iterable[bytes], **head: Any) -> None:
    """Give an answer over HTTP whose body comes in pieces."""
    await answer.send({"type": "http.response.start", "status": 200, "headers": SSE, **head})
    for piece in pieces:
        await answer.send({"type": "http.response.body", "body": piece, "more_body": True})
    await answer.send({"type": "http.response.body"})


async def test_frames_become_messages_and_end_the_response_with_the_terminal_one() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    answer.head(200, [])
    frames = saying("Hi")
    await answer.write(b"".join(frames[:-1]))
    assert not answer.over.is_set()
    await answer.keepalive()
    await answer.write(frames[-1] + DONE)
    assert answer.over.is_set()
    await answer.close(Finish((b"{}",)))
    await answer.end()
    assert told.texts == payloads(b"".join(frames))


async def test_the_response_is_over_before_the_client_can_have_read_so() -> None:
    told = Told(waits_after=0)
    answer = WebSocketAnswer(told, None, 1 << 20)
    async with asyncio.TaskGroup() as group:
        group.create_task(answer.write(saying("Hi")[-1]))
        await settle()
        assert (answer.over.is_set(), told.texts) == (True, [])
        told.may.set()


@pytest.mark.parametrize("sent", [0, 1, 3])
async def test_a_write_that_was_cancelled_goes_on_where_it_was(sent: int) -> None:
    told = Told(waits_after=sent)
    answer = WebSocketAnswer(told, None, 1 << 20)
    frames = b"".join(KITE_TURNS[1])
    task = asyncio.create_task(answer.write(frames))
    await settle()
    task.cancel()
    await asyncio.wait((task,))
    assert len(told.texts) == sent
    told.may.set()
    await answer.write(frames)
    assert told.texts == payloads(frames)
    await answer.write(encode(b"response.in_progress", b'{"type":"response.in_progress"}'))
    assert told.texts[-1] == '{"type":"response.in_progress"}'


async def test_a_response_that_never_began_is_an_error() -> None:
    told = Told()
    answer = WebSocketAnswer(told, "s", 1 << 20)
    await answer.close(Finish(None, failed=True))
    assert told.events == [{**error(502, NEUTRAL), "stream_id": "s"}]
    assert answer.over.is_set()


@pytest.mark.parametrize("size", [1, 7, 1_000, len(BODY)])
async def test_a_body_cut_anywhere_gives_the_same_messages(size: int) -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    await feed(answer, (BODY[start : start + size] for start in range(0, len(BODY), size)))
    assert told.texts == payloads(BODY)


async def test_frames_in_any_other_shape_are_understood() -> None:
    told = Told()
    answer = WebSocketAnswer(told, "s", 1 << 20)
    body = (
        b': comment\r\ndata:{"type": "response.created"}\r\n\r\n'
        b'id: 1\ndata: {"type":"response.output_text.delta",\ndata: "delta":"\xff"}\n\n'
        b"data: {}\n\n"
        b'data: {"response":{"status":"completed"},"type" : "response.completed"}\n\n'
        b'data: {"type":"response.in_progress"}\n\ndata: [DONE]\n\n'
    )
    await feed(answer, [body])
    assert told.texts == [
        '{"type": "response.created","stream_id":"s"}',
        '{"type":"response.output_text.delta",\n"delta":"�","stream_id":"s"}',
        "{}",
        '{"response":{"status":"completed"},"type" : "response.completed","stream_id":"s"}',
    ]


async def test_a_last_frame_that_lacks_its_empty_line_counts() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    await feed(answer, [b'data: {"type":"response.incomplete"}'])
    assert told.texts == ['{"type":"response.incomplete"}']


@pytest.mark.parametrize("cut", [BODY[: BODY.rindex(b"event: ")], b"", b"data: [DONE]\n\n"])
async def test_a_stream_that_ends_too_early_ends_in_an_error(cut: bytes) -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    await feed(answer, [cut])
    assert told.texts[:-1] == payloads(cut)
    assert told.events[-1] == error(502, NEUTRAL)


async def test_a_word_in_an_event_is_no_end() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    inner = b'{"type":"x","part":{"type":"response.completed"}}'
    await feed(answer, [b"data: " + inner + b'\n\ndata: "type":"error"\n\n'])
    assert told.texts[:2] == [inner.decode(), '"type":"error"']
    assert json.loads(told.texts[2]) == error(502, NEUTRAL)


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (
            {"type": "error", "code": "busy", "message": "Later.", "param": None, "sequence_number": 3},
            {"type": "server_error", "code": "busy", "message": "Later.", "param": None},
        ),
        ({"type": "error", "error": {"message": "Later."}}, {"message": "Later."}),
    ],
)
async def test_an_error_of_the_model_server_is_nested_and_is_the_last_word(sent: Any, got: Any) -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    await feed(answer, [encode(b"error", json.dumps(sent).encode())])
    assert told.events == [{**sent, "error": got}]
    assert answer.over.is_set()


async def test_an_event_that_is_too_large_ends_in_an_error() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 100)
    await feed(answer, [b'data: {"type":"a"}\n\n', b"data: " + b"a" * 200 + b"\n\n", BODY])
    assert told.events == [{"type": "a"}, error(502, NEUTRAL)]


async def test_of_a_large_refusal_only_the_beginning_is_read() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    await feed(answer, [b"no" * 700, b"a" * (64 << 10)], status=500)
    assert told.events == [error(500, "no" * 500)]


async def test_a_whole_answer_beyond_the_limit_is_an_error() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 30)
    await feed(answer, [b'{"object":"response",', b'"status":"completed"}'], headers=[])
    assert told.events == [error(502, NEUTRAL)]


async def test_other_messages_of_an_application_mean_nothing_here() -> None:
    told = Told()
    answer = WebSocketAnswer(told, None, 1 << 20)
    other: Message = {"type": "http.response.debug", "info": {}}
    await answer.send(other)
    assert told.texts == []
