"""The scripted model: what it says to what, in exactly OpenAI's grammar."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from rules import check_stream, read_events
from starlette.types import ASGIApp

from imagecall.middleware.local import Answer, post
from imagecall.middleware.scripted import Pace, scripted_app

Json = dict[str, Any]

PAINT: Json = {
    "type": "function",
    "name": "image_generation",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"prompt": {"type": "string"}, "size": {"type": "string"}},
        "required": ["prompt"],
    },
}
WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "units": {"type": "string", "enum": ["metric", "imperial"]},
            "notes": {"type": "string"},
        },
        "required": ["city", "days", "units"],
    },
}
METRIC = {"city": "Paris", "days": 1, "units": "metric"}


def model(pace: Pace | None = None) -> ASGIApp:
    numbers = itertools.count(1)
    return scripted_app(
        pace=pace, new_id=lambda prefix: f"{prefix}_{next(numbers)}", now=lambda: 1_790_000_000.5
    )


async def ask(request: Json, app: ASGIApp | None = None) -> Answer:
    return await post(app or model(), "/v1/responses", json.dumps(request).encode())


async def response_to(asked: str | list[Json], **request: Any) -> Json:
    answer = await ask({"model": "local", "input": asked, **request})
    assert answer.status == 200, answer.body
    response = json.loads(answer.body)
    Response.model_validate(response, strict=True)
    return dict(response)


async def calls_of(asked: str | list[Json], *tools: Json, **request: Any) -> list[tuple[str, Json]]:
    response = await response_to(asked, tools=list(tools), **request)
    return [
        (item["name"], json.loads(item["arguments"]))
        for item in response["output"]
        if item["type"] == "function_call"
    ]


async def text_of(asked: str | list[Json], *tools: Json, **request: Any) -> str:
    response = await response_to(asked, tools=list(tools), **request)
    assert [item["type"] for item in response["output"]] == ["message"]
    return str(response["output"][0]["content"][0]["text"])


def user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def called(name: str, output: str, number: int = 1, **arguments: Any) -> list[Json]:
    call_id = f"call_{number}"
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def painted(prompt: str, number: int = 1, output: str = '{"status": "completed"}') -> list[Json]:
    return called("image_generation", output, number, prompt=prompt)


# -- the stream ----------------------------------------------------------------------------------


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


# -- what it calls -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "prompts"),
    [
        ("Draw a red cat", ["a red cat"]),
        ("Please paint me a house by the sea, please.", ["a house by the sea"]),
        ("Generate an image of a mountain at sunset", ["a mountain at sunset"]),
        ("Draw a picture of a dragon! It may be green.", ["a dragon"]),
        ("I want a drawing", ["I want a drawing"]),
        ("draw", ["draw"]),
        ("Draw a lion and a mouse", ["a lion", "a mouse"]),
        ("Make two pictures: a cat and the dog.", ["a cat", "the dog"]),
        ("Make two different pictures of a lake", ["a lake by day", "a lake by night"]),
        ("Draw a house with a red roof and a tree", ["a house with a red roof and a tree"]),
        ("Draw one", ["one"]),
    ],
)
async def test_it_reads_from_the_words_what_to_draw(asked: str, prompts: list[str]) -> None:
    assert await calls_of(asked, PAINT) == [("image_generation", {"prompt": p}) for p in prompts]


async def test_a_blue_one_is_of_the_kind_drawn_before() -> None:
    history = [user("Draw a red cat"), *painted("a red cat"), user("Thanks"), user("Now draw a blue one")]
    assert await calls_of(history, PAINT) == [("image_generation", {"prompt": "a blue cat"})]


async def test_without_parallel_calls_it_draws_one_picture_after_the_other() -> None:
    one_by_one = {"parallel_tool_calls": False}
    history = [user("Draw a lion and a mouse")]
    assert await calls_of(history, PAINT, **one_by_one) == [("image_generation", {"prompt": "a lion"})]
    history += painted("a lion")
    assert await calls_of(history, PAINT, **one_by_one) == [("image_generation", {"prompt": "a mouse"})]
    history += painted("a mouse", 2)
    assert await text_of(history, PAINT, **one_by_one) == "Here they are: a lion and a mouse."


async def test_a_function_of_the_clients_is_called_beside_the_picture() -> None:
    asked = "Draw a red cat and tell me the weather in Paris"
    assert await calls_of(asked, PAINT, WEATHER) == [
        ("image_generation", {"prompt": "a red cat"}),
        ("get_weather", METRIC),
    ]
    assert await calls_of(asked, WEATHER) == [("get_weather", METRIC)]


async def test_a_function_without_parameters_is_called_by_its_topic() -> None:
    assert await calls_of("Play some music", {"type": "function", "name": "music"}) == [("music", {})]


async def test_tool_choice_none_makes_it_speak() -> None:
    assert "I am a script" in await text_of("Draw a red cat", PAINT, tool_choice="none")


async def test_an_allowed_tool_may_be_called_and_no_other() -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
    asked = "Draw a cat and tell me the weather in Paris"
    assert await calls_of(asked, PAINT, WEATHER, tool_choice=allowed) == [("get_weather", METRIC)]
    assert "I am a script" in await text_of("Draw a cat", PAINT, WEATHER, tool_choice=allowed)


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "name": "image_generation"},
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "image_generation"}],
        },
    ],
)
async def test_a_forced_choice_is_obeyed_whatever_was_said(choice: Any) -> None:
    expected = [("image_generation", {"prompt": "Hello"})]
    assert await calls_of("Hello", PAINT, tool_choice=choice) == expected
    # A choice that stays forced never lets the model speak: this loop is what clients must break.
    assert await calls_of([user("Hello"), *painted("Hello")], PAINT, tool_choice=choice) == expected


async def test_a_forced_function_gets_arguments_that_fit_its_schema() -> None:
    everything = {
        "type": "function",
        "name": "everything",
        "parameters": {
            "properties": {
                "flag": {"type": "boolean"},
                "list": {"type": "array"},
                "number": {"type": "number"},
                "inner": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]},
                "either": {"type": ["string", "null"]},
            },
            "required": ["flag", "list", "number", "inner", "either"],
        },
    }
    arguments = {"flag": True, "list": [], "number": 1, "inner": {"a": 1}, "either": "Hello"}
    assert await calls_of("Hello", everything, tool_choice="required") == [("everything", arguments)]
    bare = {"type": "function", "name": "bare", "parameters": {"properties": None}}
    assert await calls_of("Hello", bare, tool_choice="required") == [("bare", {})]


# -- what it says --------------------------------------------------------------------------------


async def test_it_reports_what_came_of_its_calls() -> None:
    failed = '{"status": "failed", "error": {"message": "The safety system refused it."}}'
    history = [
        user("Draw a lion and a mouse and tell me the weather in Paris"),
        *painted("a lion"),
        *painted("a mouse", 2, failed),
        *called("get_weather", "Rain, 8 °C", 3, city="Paris"),
    ]
    assert await text_of(history, PAINT, WEATHER) == (
        "Here it is: a lion. Sorry, there is no picture of “a mouse”: The safety system refused it. "
        "get_weather says: Rain, 8 °C"
    )


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("ok", "Here it is: a cat."),
        ("[]", "Here it is: a cat."),
        ("{}", "Here it is: a cat."),
        ('{"status": "failed"}', "Sorry, there is no picture of “a cat”: it could not be made."),
        (
            '{"status": "unavailable", "error": {}}',
            "Sorry, there is no picture of “a cat”: it could not be made.",
        ),
    ],
)
async def test_any_output_is_understood_somehow(output: str, said: str) -> None:
    assert await text_of([user("Draw a cat"), *painted("a cat", output=output)], PAINT) == said


async def test_its_text_has_the_format_that_was_asked_for() -> None:
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["word"],
    }
    of_schema = {"format": {"type": "json_schema", "name": "answer", "schema": schema}}
    assert json.loads(await text_of("Hello", text=of_schema)) == {"word": "something", "count": 1}
    of_object = json.loads(await text_of("Hello", text={"format": {"type": "json_object"}}))
    assert list(of_object) == ["answer"]
