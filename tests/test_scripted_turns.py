"""What the scripted model calls and says to what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_model import EDIT, METRIC, PAINT, WEATHER, called, calls_of, painted, text_of, user


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


@pytest.mark.parametrize(
    ("asked", "prompt"),
    [
        ("Make it blue", "Make it blue"),
        ("Now turn the cat into a tiger, please.", "turn the cat into a tiger"),
        ("Please colour them red and tell me why", "colour them red"),
        ("paint it black", "paint it black"),
        ("And add a balloon!", "add a balloon"),
    ],
)
async def test_it_changes_a_picture_where_one_is_there_to_change(asked: str, prompt: str) -> None:
    history = [user("Draw a red cat"), *painted("a red cat"), user(asked)]
    edit = {"prompt": prompt, "num_last_images_to_include": 1}
    assert await calls_of(history, EDIT) == [("image_generation", edit)]
    history += called("image_generation", '{"status":"completed"}', 2, **edit)
    assert await text_of(history, EDIT) == f"Done: {prompt}."


async def test_it_does_not_change_what_it_cannot_change() -> None:
    history = [user("Draw a red cat"), *painted("a red cat"), user("Make it blue")]
    assert await calls_of(history, PAINT) == []


async def test_a_change_is_no_kind_of_picture() -> None:
    edit = called("image_generation", "{}", 2, prompt="Make it blue", num_last_images_to_include=1)
    history = [user("Draw a red cat"), *painted("a red cat"), user("Make it blue"), *edit]
    history.append(user("Now draw a green one"))
    assert await calls_of(history, EDIT) == [("image_generation", {"prompt": "a green cat"})]


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
    allowed = {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "get_weather"}],
    }
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
