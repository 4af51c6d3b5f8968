"""Turns become one response: where a model must stop."""

from __future__ import annotations

import pytest
from driving import Driven, fail, paint
from exchanges import (
    OPENING,
    ask,
    calling,
    exchange,
    failed,
    outline,
    painted,
    painting,
    said,
    says,
    told_outputs,
    turn,
)
from imagecall.events.calls import Limits
from imagecall.events.tools.base import ToolCall, ToolOutcome
from rules import read_events
from transcript import Event

DONE = turn(says("Done."))


def kite(number: int = 1) -> bytes:
    return turn(painting("a kite", 0, f"fc_{number}"), number_of=number)


def numbered(number: int) -> bytes:
    return turn(painting(f"kite {number}", 0, f"fc_{number}"), number_of=number)


def choices(driven: Driven) -> list[object]:
    return [asked.get("tool_choice") for asked in driven.asked]


def items(driven: Driven) -> list[Event]:
    output: list[Event] = read_events(driven.body)[-1]["response"]["output"]
    return output


# -- the same call again ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        '{"prompt": "a kite"}',
        '{"size": null, "prompt": "a kite", "size": null}',
        '{"prompt":"a kite"}<|call|>',
    ],
)
def test_an_equal_call_in_a_later_turn_completes_with_the_same_picture_and_no_second_run(again: str) -> None:
    first = calling('{"prompt": "a kite", "size": null}' if "size" in again else '{"prompt": "a kite"}')
    driven = exchange(ask(), turn(first), turn(calling(again, 0, "fc_b")), DONE)
    assert outline(driven) == [
        *OPENING,
        *painted("a kite"),
        *painted("a kite", 1),
        *said("Done.", 2),
        "completed",
    ]
    assert [call.id for call in driven.runs] == ["ig_1"]
    one, two, _ = items(driven)
    assert one["result"] == two["result"]
    assert (one["id"], two["id"]) == ("ig_1", "ig_2")
    assert [each["image_id"] for each in told_outputs(driven.asked[2])] == ["ig_1", "ig_2"]


def test_an_equal_call_after_a_failure_fails_the_same_way_without_a_run() -> None:
    driven = exchange(ask(), kite(1), kite(2), DONE, outcome=fail)
    expected = failed("image_generation_failed a kite")
    again = failed("image_generation_failed a kite", 1)
    assert outline(driven) == [*OPENING, *expected, *again, *said("Done.", 2), "completed"]
    assert len(driven.runs) == 1


def test_bad_arguments_that_are_repeated_stay_bad() -> None:
    driven = exchange(ask(), turn(calling("{}")), turn(calling("{}", 0, "fc_b")), DONE)
    assert [item["error"]["param"] for item in items(driven)[:2]] == ["prompt", "prompt"]
    assert choices(driven) == [None, None, None]


def test_after_two_turns_that_only_repeat_the_model_may_call_nothing_more() -> None:
    driven = exchange(ask(), kite(1), kite(2), kite(3), DONE)
    assert choices(driven) == [None, None, None, "none"]
    assert [item["type"] for item in items(driven)] == ["image_generation_call"] * 3 + ["message"]
    assert len(driven.runs) == 1


def test_a_new_picture_between_repetitions_gives_the_model_its_patience_back() -> None:
    driven = exchange(ask(), kite(1), kite(2), numbered(3), kite(4), DONE)
    assert choices(driven) == [None] * 5
    assert [call.arguments["prompt"] for call in driven.runs] == ["a kite", "kite 3"]


def test_a_turn_that_repeats_one_call_and_makes_another_is_no_repetition() -> None:
    both = turn(painting("a kite"), painting("a dog", 1, "fc_b"))
    again = turn(painting("a kite", 0, "fc_c"), painting("a cow", 1, "fc_d"))
    driven = exchange(ask(), both, again, kite(3), DONE)
    assert choices(driven) == [None, None, None, None]
    assert [call.arguments["prompt"] for call in driven.runs] == ["a kite", "a dog", "a cow"]


def test_a_call_in_a_turn_that_may_call_nothing_is_neither_shown_nor_run() -> None:
    driven = exchange(ask(), kite(1), kite(2), kite(3), turn(painting("a dog"), says("Well.", 1)))
    assert outline(driven)[-7:] == [*said("Well.", 3)[-6:], "completed"]
    assert len(driven.runs) == 1
    assert b"a dog" not in driven.body


# -- turns -----------------------------------------------------------------------------------------


def test_after_the_last_turn_one_more_may_only_answer() -> None:
    driven = exchange(ask(), *map(numbered, range(1, 4)), DONE, limits=Limits(max_turns=3))
    assert choices(driven) == [None, None, None, "none"]
    assert [item["type"] for item in items(driven)] == ["image_generation_call"] * 3 + ["message"]


def test_a_model_that_calls_even_then_ends_the_response() -> None:
    turns = [numbered(number) for number in range(1, 10)]
    driven = exchange(ask(), *turns)
    assert choices(driven) == [None] * 8 + ["none"]
    assert len(driven.runs) == 8
    assert outline(driven)[-6:] == [*said("", 8), "completed"]


# -- pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "limits"),
    [
        (ask(max_tool_calls=1), None),
        (ask(max_tool_calls=5), Limits(max_images=1)),
        (ask(), Limits(max_images=1)),
    ],
)
def test_calls_beyond_the_limit_are_neither_shown_nor_run_and_the_model_is_told(
    request_: Event, limits: Limits | None
) -> None:
    two = turn(painting("a kite"), painting("a dog", 1, "fc_b"), says("Wait.", 2))
    driven = exchange(request_, two, DONE, limits=limits)
    assert outline(driven)[:5] == [*OPENING, *painted("a kite")[:3]]
    assert [item["type"] for item in items(driven)] == ["image_generation_call", "message", "message"]
    assert len(driven.runs) == 1
    made, refused = told_outputs(driven.asked[1])
    assert (made["status"], refused["status"]) == ("completed", "not run")
    assert [item["type"] for item in driven.asked[1]["input"][1:]] == [
        "function_call",
        "function_call",
        "message",
        "function_call_output",
        "function_call_output",
    ]


def test_a_model_that_runs_wild_gets_ten_pictures() -> None:
    turns = [
        turn(painting(f"kite {number}"), painting(f"dog {number}", 1, "fc_b"), number_of=number)
        for number in range(1, 7)
    ]
    driven = exchange(ask(), *turns, DONE)
    assert len(driven.runs) == 10
    assert [each["status"] for each in told_outputs(driven.asked[6])][-2:] == ["not run", "not run"]


def test_a_limit_of_no_calls_runs_none_and_then_the_model_must_answer() -> None:
    driven = exchange(ask(max_tool_calls=0), kite(1), kite(2), DONE)
    assert outline(driven) == [*OPENING, *said("Done."), "completed"]
    assert driven.runs == []
    assert choices(driven) == [None, None, "none"]


def test_the_limit_counts_failures_and_repetitions_too() -> None:
    def second(call: ToolCall) -> ToolOutcome:
        return paint(call) if call.id == "ig_2" else fail(call)

    turns = [kite(1), numbered(2), numbered(3)]
    driven = exchange(ask(max_tool_calls=2), *turns, DONE, outcome=second)
    assert [item.get("status") for item in items(driven)] == ["failed", "completed", "completed"]
    assert [each["status"] for each in told_outputs(driven.asked[3])] == ["failed", "completed", "not run"]
    repeated = exchange(ask(max_tool_calls=1), kite(1), kite(2), DONE)
    assert [item["type"] for item in items(repeated)] == ["image_generation_call", "message"]
    assert [each["status"] for each in told_outputs(repeated.asked[2])] == ["completed", "not run"]


def test_a_prompt_beyond_its_limit_fails_the_call() -> None:
    driven = exchange(ask(), kite(1), DONE, limits=Limits(max_prompt=3))
    assert items(driven)[0]["error"]["param"] == "prompt"


# -- choices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["required", {"type": "image_generation"}])
def test_a_forced_choice_is_forced_once(choice: object) -> None:
    driven = exchange(ask(tool_choice=choice), kite(1), DONE)
    assert choices(driven) == ["required", "auto"]


def test_a_client_that_wants_no_call_gets_none() -> None:
    driven = exchange(ask(tool_choice="none"), turn(painting("a kite"), says("No.", 1)))
    assert outline(driven) == [*OPENING, *said("No."), "completed"]
    assert driven.runs == []
