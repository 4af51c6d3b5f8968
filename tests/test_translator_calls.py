"""Turns become one response: what is made of a call's arguments, and its previews."""

from __future__ import annotations

import json

import pytest
from driving import preview
from exchanges import (
    OPENING,
    Steps,
    ask,
    calling,
    exchange,
    failed,
    final,
    outline,
    painted,
    painting,
    said,
    says,
    told_outputs,
    turn,
)
from imagecall.events.calls import Limits
from imagecall.events.tools.base import ToolCall
from kite import HOSTED
from rules import read_events

KITE = painting("a kite")
DONE = turn(says("Done."))


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        '{"prompt": "a kite"}<|call|>',
        '{"prompt": "a kite"}}',
        json.dumps('{"prompt": "a kite"}'),
        '{"prompt": "a kite", "unknown": 1, "size": null}',
    ],
)
def test_arguments_are_read_as_they_were_meant(words: str) -> None:
    driven = exchange(ask(), turn(calling(words)), DONE)
    assert outline(driven) == [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]
    assert dict(driven.runs[0].arguments) == {"prompt": "a kite", "partial_images": 0, "extra": {}}
    assert json.loads(driven.asked[1]["input"][1]["arguments"])["prompt"] == "a kite"


@pytest.mark.parametrize(
    ("words", "param"),
    [
        ("", "prompt"),
        ("{}", "prompt"),
        ('{"prompt": " "}', "prompt"),
        ('{"prompt": 7}', "prompt"),
        ("{", None),
        ("a kite", None),
        ('["a kite"]', None),
        ('{"prompt": "' + "x" * 300 + '"}', None),
    ],
)
def test_arguments_that_cannot_be_run_fail_the_call_and_tell_the_model_why(
    words: str, param: str | None
) -> None:
    driven = exchange(ask(), turn(calling(words)), DONE, limits=Limits(max_arguments=200))
    assert outline(driven) == [*OPENING, *failed("invalid_arguments"), *said("Done.", 1), "completed"]
    error = final(driven)["output"][0]["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "image_generation_user_error",
        "invalid_arguments",
        param,
    )
    assert driven.runs == []
    assert told_outputs(driven.asked[1])[-1]["error"]["message"] == error["message"]
    json.loads(driven.asked[1]["input"][1]["arguments"])


def test_unknown_arguments_are_refused_where_that_is_wanted() -> None:
    steps = Steps(ask(), strict_arguments=True)
    lines = steps.turn(turn(painting({"prompt": "a kite", "n": 2})))
    assert lines == [*OPENING, *failed("invalid_arguments a kite"), "ask again"]
    assert read_events(steps.body)[-1]["item"]["error"]["param"] == "n"


# -- previews --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "shown"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_previews_are_shown_as_many_as_asked_for_at_most(asked: int | None, shown: int) -> None:
    request = ask(tools=[{**HOSTED, "partial_images": asked}])
    driven = exchange(request, turn(KITE), DONE, partials=lambda call: preview(call, 4))
    whole = painted("a kite")
    previews = [f"0 partial_image {number}" for number in range(shown)]
    assert outline(driven)[2 : 7 + shown] == [*whole[:3], *previews, *whole[3:]]
    assert driven.runs[0].arguments["partial_images"] == shown


def test_previews_of_a_call_that_has_ended_or_never_was_are_dropped() -> None:
    steps = Steps(ask(tools=[{**HOSTED, "partial_images": 3}]))
    steps.turn(turn(KITE, painting("a dog", 1, "fc_b")))
    call = ToolCall("ig_1", {"prompt": "a kite"})
    one, two = preview(call, 2)
    assert steps.take(steps.translator.tool_progress("ig_1", one)) == ["0 partial_image 0"]
    assert steps.take(steps.translator.tool_progress("ig_2", one)) == ["1 partial_image 0"]
    steps.finished("ig_1")
    assert steps.take(steps.translator.tool_progress("ig_1", two)) == []
    assert steps.take(steps.translator.tool_progress("ig_9", two)) == []
    assert steps.finished("ig_1") == []
