"""Names and arguments as models write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.arguments import parse_arguments, plain_name
from imagecall.events.wire import dumps, is_deep, loads

KITE = {"prompt": "a red kite"}


@pytest.mark.parametrize(
    "name",
    [
        "draw",
        "functions.draw",
        "function.draw",
        "tools.draw",
        "draw<|channel|>commentary",
        "functions.draw<|channel|>json",
        " draw ",
        "draw <|constrain|>json",
    ],
)
def test_what_sticks_to_a_name_is_stripped(name: str) -> None:
    assert plain_name(name) == "draw"


@pytest.mark.parametrize(
    "name", ["functions", "my.draw", "drawfunctions.", "draw|", "functions.functions.draw"]
)
def test_a_name_that_only_looks_like_it_stays_another_name(name: str) -> None:
    assert plain_name(name) != "draw"
    assert plain_name(name)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"prompt": "a red kite"}, KITE),
        ('{"prompt":"a red kite"}', KITE),
        (' \n{"prompt": "a red kite"}\n', KITE),
        ('{"prompt":"a red kite"}<|call|>', KITE),
        ('{"prompt":"a red kite"}}', KITE),
        ('{"prompt":"a red kite"}{"prompt":"a blue one"}', KITE),
        ('{"prompt":"a red kite"} Here it is!', KITE),
        (json.dumps('{"prompt":"a red kite"}'), KITE),
        (json.dumps('\n{"prompt":"a red kite"} ok'), KITE),
        ('{"prompt":"two\nlines"}', {"prompt": "two\nlines"}),
        ('{"prompt":"\\ud83d"}', {"prompt": "\ud83d"}),
        ('{"n":123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ("", {}),
        (" \n\t", {}),
        ("{}", {}),
    ],
)
def test_arguments_are_read_as_far_as_they_are_an_object(given_: object, expected: dict[str, Any]) -> None:
    assert parse_arguments(given_) == expected


@pytest.mark.parametrize(
    "given_",
    [
        None,
        7,
        [],
        "{",
        '{"prompt":"a red ki',
        '{"prompt":"a red kite"',
        "prompt: a red kite",
        "```json\n{}\n```",
        "null",
        "[]",
        '["a"]',
        "7",
        '"a red kite"',
        '"{"',
        '""',
        '"\\"{}\\""',
        '{"n":' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' + "[" * 100_000,
    ],
)
def test_what_is_no_object_has_no_arguments(given_: object) -> None:
    assert parse_arguments(given_) is None


@given(cut=st.integers(1, 58))
def test_no_beginning_of_an_object_is_taken_for_the_whole(cut: int) -> None:
    text = json.dumps({"prompt": 'a sign that says "{}" and \\', "size": "auto"})
    assert parse_arguments(text[:cut]) is None


def nested(levels: int) -> str:
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def test_arguments_as_deep_as_can_be_written_again_are_read() -> None:
    value = parse_arguments(nested(200))
    assert value == loads(nested(200))
    assert json.loads(dumps({"response": {"output": [{"item": value}]}}))


@pytest.mark.parametrize("levels", [201, 900, 1_020, 5_000])
def test_what_could_not_be_written_again_is_not_read(levels: int) -> None:
    assert parse_arguments(nested(levels)) is None
    with pytest.raises(ValueError, match="nested too deeply"):
        loads(nested(levels))


def test_depth_is_that_of_the_deepest_container() -> None:
    wide: Any = {"a": [{}] * 1000, "b": 1}
    assert not is_deep(wide)
    for _ in range(197):
        wide = {"x": 1, "y": wide}
    assert not is_deep(wide)
    assert is_deep([wide])
    assert not is_deep("[" * 1000)


# -- JSON that orjson refuses ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":"\\ud800"}', {"a": "\ud800"}),
        ('{"a":NaN}', None),
    ],
)
def test_what_orjson_refuses_is_read_all_the_same(text: str, value: object) -> None:
    read = loads(text.encode())
    assert value is None or read == value
    assert b"a" in dumps(read)


def test_what_orjson_cannot_write_is_written_in_ascii_on_one_line() -> None:
    assert dumps({"a": "\ud800", "b": "\u2028"}) == b'{"a":"\\ud800","b":"\\u2028"}'
    assert dumps({"n": 1 << 80}) == b'{"n":1208925819614629174706176}'


def test_text_beyond_ascii_is_written_as_it_is() -> None:
    assert dumps({"a": "\u2028\u00e9"}) == '{"a":"\u2028\u00e9"}'.encode()


@pytest.mark.parametrize("text", ["", "{", "nonsense", b"\xff\xfe\xfa", "[" * 100_000])
def test_what_is_no_json_is_an_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)
