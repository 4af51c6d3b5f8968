"""What the scripted model refuses: everything that some real server refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.local import post

Json = dict[str, Any]

FUNCTION: Json = {"type": "function", "name": "paint", "parameters": {"type": "object"}}
CALL: Json = {"type": "function_call", "call_id": "call_1", "name": "paint", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
REASONING: Json = {"type": "reasoning", "summary": []}
PICTURE: Json = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}


async def answer_to(body: bytes) -> tuple[int, Any]:
    answer = await post(scripted_app(), "/v1/responses", body)
    return answer.status, json.loads(answer.body)


async def refusal_of(request: Any) -> tuple[str, str | None]:
    status, body = await answer_to(json.dumps(request).encode())
    assert (status, body["error"]["type"]) == (400, "invalid_request_error"), body
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    return body["error"]["message"], body["error"]["param"]


async def test_everything_that_it_knows_is_taken() -> None:
    request = {
        "model": "any",
        "stream": None,
        "a_field_of_a_later_version": {"is": "fine"},
        "tools": [{**FUNCTION, "strict": None, "description": "Paints."}, {"type": "function", "name": "b"}],
        "tool_choice": None,
        "input": [
            {"role": "system", "content": "Be brief."},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Really."}]},
            {"role": "user", "content": "Hello"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []},
                    {"type": "refusal", "refusal": "No."},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "status": "completed",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "content": [{"type": "reasoning_text", "text": "Hm, hm."}],
                "encrypted_content": "c2VjcmV0",
            },
            {**CALL, "id": "fc_1", "status": "completed"},
            {**CALL, "call_id": "call_2"},
            {**OUTPUT, "call_id": "call_2"},
            {**OUTPUT, "id": "fco_1", "status": "completed"},
            {"role": "user", "content": [{"type": "input_text", "text": "Bye"}]},
        ],
    }
    status, body = await answer_to(json.dumps(request).encode())
    assert (status, body["status"]) == (200, "completed")


async def test_a_body_that_is_no_json_is_refused() -> None:
    status, body = await answer_to(b'{"input": ')
    assert (status, body["error"]["message"]) == (400, "The request body is not valid JSON.")


@pytest.mark.parametrize(
    ("request_", "message", "param"),
    [
        ([], "The request body must be a JSON object.", None),
        ({}, "Invalid 'input': it must be a string or a list of items.", "input"),
        ({"input": "", "stream": "yes"}, "Invalid 'stream': it must be true or false.", "stream"),
        (
            {"input": "", "parallel_tool_calls": 1},
            "Invalid 'parallel_tool_calls': it must be true or false.",
            "parallel_tool_calls",
        ),
        (
            {"input": "", "previous_response_id": "resp_1"},
            "Previous response with id 'resp_1' not found.",
            "previous_response_id",
        ),
        ({"input": "", "tools": {}}, "Invalid 'tools': it must be a list.", "tools"),
        ({"input": "", "tools": ["paint"]}, "Invalid 'tools[0]': it must be an object.", "tools[0]"),
        (
            {"input": "", "tools": [FUNCTION, {"type": "image_generation"}]},
            "Invalid 'tools[1].type': it is 'image_generation'; this model knows only 'function'.",
            "tools[1].type",
        ),
        (
            {"input": "", "tools": [{**FUNCTION, "n": 1}]},
            "Unknown parameter: 'tools[0].n'.",
            "tools[0].n",
        ),
        (
            {"input": "", "tools": [{"type": "function"}]},
            "Invalid 'tools[0].name': it must be a string that is not empty.",
            "tools[0].name",
        ),
        (
            {"input": "", "tools": [{**FUNCTION, "parameters": "none"}]},
            "Invalid 'tools[0].parameters': it must be a JSON Schema object.",
            "tools[0].parameters",
        ),
        (
            {"input": "", "tools": [FUNCTION, FUNCTION]},
            "Invalid 'tools[1].name': it names 'paint', which is declared already.",
            "tools[1].name",
        ),
    ],
)
async def test_a_wrong_field_of_the_request_is_named(request_: Any, message: str, param: str | None) -> None:
    assert await refusal_of(request_) == (message, param)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("maybe", "must be 'auto', 'none', 'required', or an object that names functions"),
        ({"type": "image_generation"}, "must be 'auto', 'none', 'required', or an object"),
        ({"type": "function", "name": "draw"}, "Tool choice 'draw' not found in 'tools' parameter."),
        ({"type": "allowed_tools", "mode": "none", "tools": []}, "must be 'auto' or 'required'"),
        ({"type": "allowed_tools", "mode": "auto", "tools": {}}, "must be a list"),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "draw"}]},
            "Tool choice 'draw' not found in 'tools' parameter.",
        ),
    ],
)
async def test_a_choice_must_be_of_the_declared_functions(choice: Any, message: str) -> None:
    told, param = await refusal_of({"input": "", "tools": [FUNCTION], "tool_choice": choice})
    assert message in told
    assert str(param).startswith("tool_choice")


async def test_a_required_choice_needs_something_to_choose_from() -> None:
    assert await refusal_of({"input": "", "tool_choice": "required"}) == (
        "Tool choice 'required' must be specified with 'tools'.",
        "tool_choice",
    )


@pytest.mark.parametrize(
    ("items", "message", "param"),
    [
        (["Hello"], "must be an object", "input[0]"),
        ([{"type": "image_generation_call", "id": "ig_1"}], "is no item this model takes", "input[0].type"),
        ([{"type": "item_reference", "id": "msg_1"}], "is no item this model takes", "input[0].type"),
        ([{"type": ["message"]}], "is no item this model takes", "input[0].type"),
        ([{"content": "Hello"}], "is no item this model takes", "input[0].type"),
        ([{"role": "user"}], "Missing required parameter: 'input[0].content'.", "input[0].content"),
        ([{"role": "tool", "content": ""}], "must be one of user, assistant", "input[0].role"),
        ([{"role": "user", "content": "", "name": "x"}], "Unknown parameter", "input[0].name"),
        ([{"role": "user", "content": None}], "must be a string or a list of parts", "input[0].content"),
        ([{"role": "user", "content": ["Hello"]}], "must be an object", "input[0].content[0]"),
        ([{"role": "user", "content": [PICTURE]}], "is 'input_image'", "input[0].content[0].type"),
        (
            [{"role": "user", "content": [{"type": "output_text", "text": ""}]}],
            "this model takes 'input_text' here",
            "input[0].content[0].type",
        ),
        (
            [{"role": "user", "content": [{"type": "input_text"}]}],
            "must be a string",
            "input[0].content[0].text",
        ),
        (
            [{"role": "user", "content": [{"type": "input_text", "text": "", "annotations": []}]}],
            "Unknown parameter",
            "input[0].content[0].annotations",
        ),
        ([{"role": "user", "content": "", "status": None}], "must be one of in_progress", "input[0].status"),
        ([{**REASONING, "id": "msg_1"}], "an ID that begins with 'rs'", "input[0].id"),
        ([{**REASONING, "id": None}], "an ID that begins with 'rs'", "input[0].id"),
        ([{**REASONING, "encrypted_content": None}], "not empty", "input[0].encrypted_content"),
        ([{**REASONING, "content": None}], "must be a list of parts", "input[0].content"),
        ([{**REASONING, "content": [{"type": "text", "text": ""}]}], "is 'text'", "input[0].content[0].type"),
        ([{"type": "reasoning"}], "Missing required parameter", "input[0].summary"),
        ([{**CALL, "arguments": "{"}, OUTPUT], "must be a JSON object", "input[0].arguments"),
        ([{**CALL, "arguments": "[]"}, OUTPUT], "must be a JSON object", "input[0].arguments"),
        ([{**CALL, "arguments": {}}, OUTPUT], "must be a string", "input[0].arguments"),
        ([{**CALL, "id": "ig_1"}, OUTPUT], "an ID that begins with 'fc'", "input[0].id"),
        ([{**CALL, "caller": None}, OUTPUT], "Unknown parameter", "input[0].caller"),
        ([CALL, {**OUTPUT, "output": [PICTURE]}], "must be a string", "input[1].output"),
        ([CALL], "No tool output found for function call call_1.", "input[0]"),
        ([OUTPUT, CALL], "No tool call found for function call output", "input[0].call_id"),
        ([CALL, OUTPUT, OUTPUT], "No tool call found for function call output", "input[2].call_id"),
        ([CALL, OUTPUT, CALL, OUTPUT], "which stands for another call already", "input[2].call_id"),
        ([CALL, CALL, OUTPUT], "which stands for another call already", "input[1].call_id"),
        (
            [{**REASONING, "id": "rs_1"}, {**REASONING, "id": "rs_1"}],
            "Duplicate item found with id rs_1.",
            "input[1].id",
        ),
    ],
)
async def test_a_wrong_item_is_named(items: list[Any], message: str, param: str) -> None:
    told, where = await refusal_of({"input": items, "tools": [FUNCTION]})
    assert message in told
    assert where == param
