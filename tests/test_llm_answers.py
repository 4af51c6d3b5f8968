"""What the real language model does, shown by its chat template how to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from imagecall.events.tools.feedback import feedback
from imagecall.events.tools.image_generation import Declaration, ImageGeneration
from imagecall.middleware.embedded.llm import LanguageModel, available
from imagecall.middleware.embedded.told_choice import ToldChoice
from imagecall.middleware.local import lifespan, post
from imagecall.middleware.proxy import ProxyApp
from parts import require

pytestmark = pytest.mark.llm

Json = dict[str, Any]

FUNCTION = ImageGeneration(Declaration()).function("image_generation")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": False}
SHOWN = {"id": "ig_1", "status": "completed", "size": "1024x1024", "output_format": "png"}
REFUSED = {"id": "ig_1", "status": "failed", "error": {"code": "moderation_blocked", "message": "No."}}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model_url() -> AsyncIterator[str]:
    """The language model's server, started once."""
    require(available() is None, str(available()))
    async with LanguageModel() as url:
        yield url


async def answer_of(url: str, request: Json) -> list[Json]:
    async with lifespan(app := ToldChoice(ProxyApp(url))):
        body = {"model": "smollm2", "tools": [FUNCTION], "stream": False, **request}
        answer = await post(app, "/v1/responses", json.dumps(body).encode())
    assert answer.status == 200, answer.body
    output: list[Json] = json.loads(answer.body)["output"]
    return output


def calls(output: list[Json]) -> list[Json]:
    return [json.loads(item["arguments"]) for item in output if item["type"] == "function_call"]


def texts(output: list[Json]) -> list[str]:
    return [item["content"][0]["text"] for item in output if item["type"] == "message"]


def told(output: list[Json], item: Json) -> list[Json]:
    """Play the middleware: the turn's items, then an output for each call."""
    made = [call for call in output if call["type"] == "function_call"]
    return [
        *output,
        *({"type": "function_call_output", "call_id": c["call_id"], "output": feedback(item)} for c in made),
    ]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("Draw a red cat", ["red cat"]),
        ("Generate an image of a mountain at sunset", ["mountain"]),
        ("I want a picture of a lighthouse at night", ["lighthouse"]),
        ("Draw a lion and a mouse", ["lion", "mouse"]),
    ],
)
async def test_the_model_calls_the_function(model_url: str, asked: str, wanted: list[str]) -> None:
    made = calls(await answer_of(model_url, {"input": asked}))
    # No exact words: processors round differently, and two words may be equally likely.
    assert len(made) == len(wanted)
    for call, words in zip(made, wanted, strict=True):
        assert words in call["prompt"].lower()


async def test_a_conversation_goes_from_picture_to_sentence_to_the_next_picture(model_url: str) -> None:
    history = [user("Draw a red cat")]
    history += told(await answer_of(model_url, {"input": history}), SHOWN)
    said = await answer_of(model_url, {"input": history})
    assert calls(said) == []
    assert texts(said)[0].strip()
    history += [*said, user("Now draw a blue one")]
    [call] = calls(await answer_of(model_url, {"input": history}))
    assert "blue" in call["prompt"].lower()


async def test_a_question_is_answered_in_words(model_url: str) -> None:
    output = await answer_of(model_url, {"input": "What is 2+2?"})
    assert calls(output) == []
    assert texts(output)[0].strip()


async def test_the_model_says_that_a_picture_failed(model_url: str) -> None:
    history = [user("Draw a red cat")]
    history += told(await answer_of(model_url, {"input": history}), REFUSED)
    output = await answer_of(model_url, {"input": history})
    assert calls(output) == []
    assert "Sorry" in texts(output)[0]


@pytest.mark.parametrize("asked", ["a red cat", "Hello"])
async def test_a_required_call_is_made_whatever_was_said(model_url: str, asked: str) -> None:
    assert len(calls(await answer_of(model_url, {"input": asked, "tool_choice": "required"}))) == 1


async def test_a_forbidden_call_does_not_come_out_as_text(model_url: str) -> None:
    output = await answer_of(model_url, {"input": "Draw a red cat", "tool_choice": "none"})
    assert calls(output) == []
    assert "{" not in texts(output)[0]


async def test_the_function_is_found_among_the_clients_own(model_url: str) -> None:
    output = await answer_of(model_url, {"input": "Draw a red cat", "tools": [WEATHER, FUNCTION]})
    assert [item["name"] for item in output] == ["image_generation"]


async def test_other_origins_may_not_read_its_answers(model_url: str) -> None:
    async with (
        aiohttp.ClientSession(headers={"origin": "https://example.com"}) as session,
        session.get(f"{model_url}/v1/models") as answer,
    ):
        assert not answer.headers.get("access-control-allow-origin")
