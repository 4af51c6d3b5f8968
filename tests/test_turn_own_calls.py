"""One turn of a model server: calls of our function are settled once, and only if they are good."""

from __future__ import annotations

import json
from typing import Any

import pytest
from imagecall.events.turn_events import CallSettled
from transcript import Event, event
from turn_reading import (
    COMPLETED,
    CREATED,
    Reading,
    arguments,
    call_item,
    closed,
    final,
    opened,
    read,
    told,
)

GOOD = '{"prompt":"a kite"}'
OURS = call_item("fc_d", "draw", GOOD)
SETTLED = '0 settled {"prompt": "a kite"}'
CUT_OFF = "0 settled The call was cut off before its arguments were complete."


def delta(words: object, item_id: str = "fc_d") -> Event:
    return arguments(words, output_index=0, item_id=item_id)


def ended(words: object, item_id: str = "fc_d", **fields: Any) -> Event:
    return event("function_call_arguments.done", 0, item_id, arguments=words, **fields)


@pytest.mark.parametrize(
    "payloads",
    [
        [opened(OURS), delta('{"prompt":'), delta('"a kite"}'), ended(GOOD), closed(OURS)],
        [opened(OURS), delta(GOOD), ended(""), closed({**OURS, "arguments": ""})],
        [opened(OURS), delta(GOOD), closed({**OURS, "arguments": None})],
        [opened(OURS), delta(GOOD)],
        [opened(OURS), ended(GOOD + "<|call|>")],
        [opened(OURS), ended(json.dumps(GOOD))],
        [opened(OURS), closed({**OURS, "arguments": {"prompt": "a kite"}})],
        [opened(OURS), delta("{"), ended("{"), closed(OURS)],
        [opened(OURS), closed({**OURS, "arguments": "{"}), final(OURS)],
        [opened(OURS), final(OURS)],
        [event("output_item.added", 0, item=OURS)],
        [opened(OURS), ended(GOOD), ended('{"prompt":"another"}'), closed({**OURS, "arguments": "{}"})],
        [closed(OURS), closed(OURS), final(OURS)],
        [closed(OURS, 0), closed({**OURS, "id": "fc_x", "call_id": None}, 0)],
        [final(OURS)],
    ],
)
def test_our_call_is_settled_once_by_the_first_source_that_holds_an_object(payloads: list[Event]) -> None:
    assert told(*payloads) == ["0 + function_call draw (ours)", SETTLED]


def test_our_call_is_settled_as_soon_as_its_arguments_have_ended() -> None:
    reading = Reading()
    assert reading.take(CREATED, opened(OURS), delta(GOOD))[2:] == []
    assert reading.take(ended(GOOD)) == [SETTLED]
    assert reading.take(closed(OURS), delta("{}")) == []


@pytest.mark.parametrize("words", ["", "  ", None, "{}"])
def test_a_call_without_arguments_has_none(words: object) -> None:
    item = {**OURS, "arguments": words}
    assert told(opened(OURS), ended(words), closed(item))[1:] == ["0 settled {}"]
    assert told(closed(item))[1:] == ["0 settled {}"]
    assert told(final(item))[1:] == ["0 settled {}"]


@pytest.mark.parametrize("words", ["{", "a kite", "[]", '{"prompt":"a ki', 7, "null"])
def test_arguments_that_are_no_object_are_a_problem_when_the_turn_is_over(words: object) -> None:
    problem = "0 settled The arguments are not a JSON object."
    reading = Reading()
    waiting = reading.take(
        CREATED, opened(OURS), delta(words), ended(words), closed({**OURS, "arguments": words})
    )
    assert waiting[1:] == ["0 + function_call draw (ours)"]
    assert reading.take(COMPLETED) == [problem, "ended completed"]
    assert told(closed({**OURS, "arguments": words}))[1:] == [problem]


LONG = '{"prompt":"' + "x" * 90 + '"}'


@pytest.mark.parametrize(
    "payloads",
    [
        [opened(OURS), delta(LONG[:50]), delta(LONG[50:]), closed({**OURS, "arguments": ""})],
        [opened(OURS), delta(LONG)],
        [opened(OURS), ended(LONG)],
        [closed({**OURS, "arguments": LONG})],
        [event("output_item.added", 0, item={**OURS, "arguments": LONG})],
        [final({**OURS, "arguments": LONG})],
    ],
)
def test_arguments_that_are_too_long_are_a_problem_wherever_they_stand(payloads: list[Event]) -> None:
    problem = "0 settled The arguments are longer than the 102 characters that max_arguments allows."
    assert told(*payloads, max_arguments=102)[1:] == [problem]
    assert told(*payloads, max_arguments=103)[1:] == ['0 settled {"prompt": "' + "x" * 90 + '"}']


def test_arguments_that_are_too_long_are_not_kept() -> None:
    reading = Reading(max_arguments=100)
    reading.take(CREATED, opened(OURS), *[delta("x" * 60) for _ in range(9)])
    assert [item.arguments for item in reading.turn.items] == [["x" * 60]]


@pytest.mark.parametrize("end", ["incomplete", "failed", "cancelled"])
@pytest.mark.parametrize("payloads", [[], [delta('{"prompt":"a ki')], [delta(GOOD)]])
def test_a_call_that_was_not_settled_when_the_response_broke_off_is_not_run(
    end: str, payloads: list[Event]
) -> None:
    for output in ([], [OURS]):
        terminal = event(end, response={"status": end, "output": output})
        assert told(opened(OURS), *payloads, end=terminal)[1:] == [CUT_OFF]
    assert read(CREATED, opened(OURS), *payloads)[2:] == [CUT_OFF, "ended failed"]


@pytest.mark.parametrize("end", ["incomplete", "failed"])
def test_a_call_that_only_a_broken_response_tells_of_is_not_even_begun(end: str) -> None:
    assert told(end=final(OURS, status=end)) == []


def test_a_call_that_was_settled_before_the_break_stays_settled() -> None:
    assert told(opened(OURS), closed(OURS), end=final(status="incomplete"))[1:] == [SETTLED]


def test_two_of_our_calls_are_settled_each_on_its_own() -> None:
    second = call_item("fc_e", "draw", '{"prompt":"a dog"}')
    lines = told(opened(OURS), opened(second), delta("{}", "fc_e"), closed(second), closed(OURS))
    assert lines == [
        "0 + function_call draw (ours)",
        "1 + function_call draw (ours)",
        '1 settled {"prompt": "a dog"}',
        SETTLED,
    ]


def test_what_is_settled_is_what_the_model_wrote() -> None:
    reading = Reading()
    reading.take(CREATED, closed({**OURS, "arguments": '{"prompt":"A\u2028B","n":[1,{"a":null}]}'}))
    call = reading.events[-1]
    assert isinstance(call, CallSettled)
    assert call.arguments == {"prompt": "A\u2028B", "n": [1, {"a": None}]}
