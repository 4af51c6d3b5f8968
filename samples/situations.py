"""What is asked of every model server: six situations, each a client's request and the answer it must give.

The model behind the servers has 135 million parameters. Where a situation is beyond it, the request
carries an earlier conversation, in the client's own language, that shows how it is done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["SITUATIONS", "Situation"]

Item = dict[str, Any]

IMAGE = {"type": "image_generation", "size": "256x256"}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather of a city.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
"""A PNG of one pixel. What earlier pictures show is nothing to a text model."""


@dataclass(frozen=True, slots=True)
class Situation:
    """One request and what must come of it.

    Attributes:
        name: what it shows; part of the recording's folder name.
        request: the client's request, without its model.
        output: the types of the response's output items. Any other answer is no recording of this situation.
    """

    name: str
    request: dict[str, Any]
    output: tuple[str, ...]


def _user(text: str) -> Item:
    return {"role": "user", "content": text}


def _said(number: int, text: str) -> Item:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _picture(number: int, prompt: str) -> Item:
    return {
        "type": "image_generation_call",
        "id": f"ig_{number}",
        "status": "completed",
        "revised_prompt": prompt,
        "result": DOT,
    }


def _weather(number: int, city: str) -> Item:
    arguments = json.dumps({"city": city})
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": "get_weather",
        "arguments": arguments,
    }


def _weather_output(number: int) -> Item:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": "clear"}


def _announced(number: int, prompt: str) -> list[Item]:
    """Make a turn in which the model speaks before it calls."""
    return [
        _user(f"Draw {prompt}"),
        _said(number, f"Sure, one moment: {prompt}."),
        _picture(number, prompt),
        _said(number + 1, "Here it is!"),
    ]


def _both(number: int, prompt: str, city: str) -> list[Item]:
    """Make a turn with a call of the client's own function beside the picture."""
    return [
        _user(f"Draw {prompt} and tell me the weather in {city}"),
        _picture(number, prompt),
        _weather(number, city),
        _weather_output(number),
        _said(number, "Here it is, and the sky is clear."),
    ]


def _request(asked: Iterable[Item], *, own: Iterable[Item] = (), stream: bool = True) -> dict[str, Any]:
    return {
        "input": list(asked),
        "tools": [IMAGE, *own],
        "stream": stream,
        "temperature": 0,
        "max_output_tokens": 200,
    }


CAT = _user("Draw a red cat")

SITUATIONS = (
    Situation("text-only", _request([_user("What is the capital of France?")]), ("message",)),
    Situation("one-picture", _request([CAT]), ("image_generation_call", "message")),
    Situation("not-streamed", _request([CAT], stream=False), ("image_generation_call", "message")),
    Situation(
        "parallel-pictures",
        _request([_user("Draw a red cat and a blue fish")]),
        ("image_generation_call", "image_generation_call", "message"),
    ),
    Situation(
        "text-before",
        _request([*_announced(1, "a black dog"), *_announced(3, "a house by the sea"), CAT]),
        ("message", "image_generation_call", "message"),
    ),
    Situation(
        "mixed-calls",
        _request(
            [
                *_both(1, "a black dog", "Rome"),
                *_both(2, "a house by the sea", "Oslo"),
                _user("Draw a red cat and tell me the weather in Paris"),
            ],
            own=[WEATHER],
        ),
        ("image_generation_call", "function_call"),
    ),
)
