"""The scripted model's answers: exactly OpenAI's grammar, streamed or not."""

from __future__ import annotations

import json
from typing import Any

from imagecall.middleware.embedded.scripted import scripted_app
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from rules import check_stream, read_events
from scripted_model import PAINT, ask, model

Json = dict[str, Any]


def whole_response(status: str, **fields: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "background": False,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "model": "local",
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": True,
        "temperature": 0.5,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [PAINT],
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
        "output": [],
        "usage": None,
        **fields,
    }


async def test_asked_for_a_picture_it_thinks_and_then_calls_the_function() -> None:
    request = {"model": "local", "temperature": 0.5, "tools": [PAINT], "input": "Draw a cat", "stream": True}
    answer = await ask(request)
    assert (answer.status, dict(answer.headers)[b"content-type"]) == (
        200,
        b"text/event-stream; charset=utf-8",
    )
    thought = "The user wants something that image_generation can do."
    words = ["The", " user", " wants", " something", " that", " image_generation", " can", " do", "."]
    summary = {"type": "summary_text", "text": thought}
    reasoning = {"id": "rs_2", "type": "reasoning", "summary": [summary]}
    call = {
        "id": "fc_3",
        "type": "function_call",
        "status": "completed",
        "arguments": '{"prompt":"a cat"}',
        "call_id": "call_4",
        "name": "image_generation",
    }
    usage = {
        "input_tokens": 107,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 19,
        "output_tokens_details": {"reasoning_tokens": 9},
        "total_tokens": 126,
    }
    rs = {"item_id": "rs_2", "output_index": 0, "summary_index": 0}
    fc = {"item_id": "fc_3", "output_index": 1}
    summary_text = "response.reasoning_summary_text"
    arguments = "response.function_call_arguments"
    expected = [
        {"type": "response.created", "response": whole_response("in_progress")},
        {"type": "response.in_progress", "response": whole_response("in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": {**reasoning, "summary": []}},
        {"type": "response.reasoning_summary_part.added", **rs, "part": {**summary, "text": ""}},
        *({"type": f"{summary_text}.delta", **rs, "delta": word} for word in words),
        {"type": f"{summary_text}.done", **rs, "text": thought},
        {"type": "response.reasoning_summary_part.done", **rs, "part": summary},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**call, "status": "in_progress", "arguments": ""},
        },
        *(
            {"type": f"{arguments}.delta", **fc, "delta": piece}
            for piece in ["{", '"', "prompt", '"', ":", '"', "a", " cat", '"', "}"]
        ),
        {"type": f"{arguments}.done", **fc, "arguments": call["arguments"]},
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {
            "type": "response.completed",
            "response": whole_response(
                "completed", completed_at=1_790_000_000, output=[reasoning, call], usage=usage
            ),
        },
    ]
    assert read_events(answer.body) == [
        {**event, "sequence_number": number} for number, event in enumerate(expected)
    ]


async def test_the_stream_of_a_text_keeps_the_rules_of_every_stream() -> None:
    request = {"input": "Hello", "stream": True}
    answer = await ask(request)
    assert check_stream(answer.body, tools=[], tool_choice="auto") == []
    events = read_events(answer.body)
    TypeAdapter[Any](list[ResponseStreamEvent]).validate_python(events, strict=True)
    said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == said
    assert said == "I am a script, not a language model. Ask me to draw something, such as “Draw a red cat”."


async def test_without_a_stream_the_answer_is_the_response_that_the_stream_ends_with() -> None:
    request = {"model": "local", "tools": [PAINT], "input": "Draw a cat"}
    streamed = read_events((await ask({**request, "stream": True})).body)
    whole = await ask(request)
    assert dict(whole.headers)[b"content-type"] == b"application/json"
    assert json.loads(whole.body) == streamed[-1]["response"]


async def test_the_pace_is_awaited_before_each_event() -> None:
    waited = 0

    async def pace() -> None:
        nonlocal waited
        waited += 1

    answer = await ask({"input": "Hello", "stream": True}, model(pace))
    assert waited == len(read_events(answer.body)) > 10


async def test_ids_are_unguessable_unless_told_otherwise() -> None:
    first, second = [json.loads((await ask({"input": "Hi"}, scripted_app())).body) for _ in range(2)]
    assert first["id"].startswith("resp_")
    assert len(first["id"]) == 53
    assert first["id"] != second["id"]


async def test_it_lists_itself_as_the_one_model() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("a GET has no body to wait for")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": [], "query_string": b""}
    await model()(scope, receive, send)
    assert json.loads(sent[1]["body"]) == {
        "object": "list",
        "data": [{"id": "scripted", "object": "model", "created": 1_790_000_000, "owned_by": "imagecall"}],
    }
