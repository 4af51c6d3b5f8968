"""The whole thing: a real language model on llama.cpp, the middleware, the scene, and a real SDK."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from imagecall.middleware.demo import demo_app
from imagecall.middleware.embedded.llm import available
from parts import require
from rules import check_stream
from serving import serve

pytestmark = pytest.mark.llm

TOOL: Any = {"type": "image_generation", "size": "256x256", "partial_images": 1}
IMAGE = "response.image_generation_call."


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    require(available() is None, str(available()))
    with serve(demo_app("llm")) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client:
        yield client


def stream(client: openai.OpenAI, given: Any) -> tuple[list[str], Any]:
    """Stream one response through the SDK's accumulator; return its event types and its end."""
    with client.responses.stream(model="local", input=given, tools=[TOOL]) as events:
        return [event.type for event in events], events.get_final_response()


def pictures(response: Any) -> list[Any]:
    return [item for item in response.output if item.type == "image_generation_call"]


def test_asked_to_draw_the_model_draws_and_says_so(client: openai.OpenAI) -> None:
    types, response = stream(client, "Draw a red cat")
    (picture,) = pictures(response)
    assert picture.status == "completed"
    assert base64.b64decode(picture.result).startswith(b"\x89PNG")
    assert "red cat" in picture.revised_prompt.lower()
    assert picture.size == "256x256"
    assert response.output_text.strip()
    told = [name.removeprefix(IMAGE) for name in types if name.startswith(IMAGE)]
    assert told == ["in_progress", "generating", "partial_image", "completed"]


def test_asked_a_question_the_model_only_answers(client: openai.OpenAI) -> None:
    types, response = stream(client, "What is 2+2?")
    assert pictures(response) == []
    assert response.output_text.strip()
    assert not [name for name in types if name.startswith(IMAGE)]


def test_a_second_turn_draws_again(client: openai.OpenAI) -> None:
    _, first = stream(client, "Draw a red cat")
    history = [{"role": "user", "content": "Draw a red cat"}]
    history += [item.model_dump(exclude_none=True) for item in first.output]
    _, second = stream(client, [*history, {"role": "user", "content": "Now draw a blue one"}])
    (picture,) = pictures(second)
    assert picture.status == "completed"
    assert "blue" in picture.revised_prompt.lower()
    assert picture.id != pictures(first)[0].id


def test_the_raw_stream_keeps_every_rule(client: openai.OpenAI) -> None:
    choice: Any = {"type": "image_generation"}
    with client.responses.with_streaming_response.create(
        model="local", input="Draw a red cat", tools=[TOOL], tool_choice=choice, stream=True
    ) as answer:
        body = answer.read()
    assert check_stream(body, tools=[TOOL], tool_choice=choice) == []


def test_without_a_stream_the_picture_comes_in_one_object(client: openai.OpenAI) -> None:
    response = client.responses.create(model="local", input="Draw a red cat", tools=[TOOL])
    assert response.status == "completed"
    assert len(pictures(response)) == 1
