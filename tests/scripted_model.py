"""Questions to the scripted model, and what it may call."""

from __future__ import annotations

import itertools
import json
from typing import Any

from imagecall.middleware.embedded.scripted import Pace, scripted_app
from imagecall.middleware.local import Answer, post
from openai.types.responses import Response
from starlette.types import ASGIApp

__all__ = [
    "EDIT",
    "METRIC",
    "PAINT",
    "WEATHER",
    "ask",
    "called",
    "calls_of",
    "model",
    "painted",
    "text_of",
    "user",
]

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
EDIT: Json = {
    **PAINT,
    "parameters": {
        "type": "object",
        "properties": {
            "prompt": {"type": "string"},
            "num_last_images_to_include": {"type": "integer"},
        },
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
