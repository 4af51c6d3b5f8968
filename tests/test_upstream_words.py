"""What the log tells of a failing model server, and what it keeps to itself."""

from __future__ import annotations

import logging

import pytest
from asgi import ask, draw, middleware
from model_server import JSON, KITE_TURNS, Answer, ModelServer, calling, saying
from painters import Painter

SECRET = "a very private prompt"
REFUSAL = Answer([b'{"detail": "bad input: %b"}' % SECRET.encode()], status=422, headers=[*JSON])
FAILURE = (
    b'event: response.failed\ndata: {"type":"response.failed","response":'
    b'{"id":"r","status":"failed","error":{"code":"oops","message":"%b"}}}\n\n' % SECRET.encode()
)


@pytest.mark.parametrize(
    ("answers", "note"),
    [
        (
            (KITE_TURNS[0], REFUSAL, REFUSAL),
            "the model server answered a follow-up turn with status 422",
        ),
        (([FAILURE],), "the model server failed: it reported an error"),
    ],
)
async def test_the_servers_own_words_may_repeat_a_prompt_and_are_for_debugging_only(
    answers: tuple[object, ...], note: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "imagecall"):
        await ask(middleware(ModelServer(*answers), Painter()), draw())
    assert note in caplog.messages
    holding = {record.levelno for record in caplog.records if SECRET in record.getMessage()}
    assert holding == {logging.DEBUG}


async def test_a_call_written_as_text_names_the_servers_missing_switch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = '{"name": "image_generation", "arguments": {"prompt": "a kite"}}'
    client = await ask(middleware(ModelServer(saying(text)), Painter()), draw())
    assert b"image_generation_call" not in client.body
    (note,) = caplog.messages
    assert "--enable-auto-tool-choice" in note


async def test_a_call_against_the_clients_own_choice_is_neither_run_nor_shown() -> None:
    painter = Painter()
    app = middleware(ModelServer(calling("a kite")), painter)
    client = await ask(app, draw(tool_choice="none"))
    assert painter.asked == []
    assert b"image_generation_call" not in client.body
    assert b"function_call" not in client.body
    assert client.body.count(b"event: response.completed\n") == 1
