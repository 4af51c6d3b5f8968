"""Turns become one response: what the client sees of pictures, texts and its own calls."""

from __future__ import annotations

import pytest
from driving import fail, paint
from exchanges import (
    OPENING,
    WEATHER,
    Steps,
    ask,
    exchange,
    failed,
    final,
    oslo,
    outline,
    painted,
    painting,
    said,
    says,
    told_outputs,
    turn,
)
from imagecall.events.calls import AS_TEXT
from imagecall.events.errors import LocalProtocolError
from imagecall.events.tools.base import ToolCall, ToolOutcome
from kite import HOSTED
from rules import check_stream, read_events
from transcript import encode, event, number

KITE = painting("a kite")
DONE = turn(says("Done."))


# -- one picture and more --------------------------------------------------------------------------


def test_one_call_becomes_one_picture_and_a_second_turn() -> None:
    driven = exchange(ask(), turn(KITE), DONE)
    assert outline(driven) == [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]
    assert [call.id for call in driven.runs] == ["ig_1"]
    assert told_outputs(driven.asked[1])[-1]["image_id"] == "ig_1"


def test_a_picture_that_is_made_at_once_looks_the_same() -> None:
    driven = exchange(ask(), turn(KITE), DONE, at_once=True)
    assert outline(driven) == [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]


def test_text_before_the_call_is_shown_before_the_picture() -> None:
    driven = exchange(ask(), turn(says("Sure."), painting("a kite", 1)), DONE)
    assert outline(driven) == [
        *OPENING,
        *said("Sure."),
        *painted("a kite", 1),
        *said("Done.", 2),
        "completed",
    ]
    assert [item["type"] for item in driven.asked[1]["input"][1:]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


def test_two_pictures_run_side_by_side_and_may_end_in_any_order() -> None:
    steps = Steps(ask())
    assert steps.turn(turn(KITE, painting("a dog", 1, "fc_b"))) == [
        *OPENING,
        "0 + image_generation_call",
        "0 in_progress",
        "0 generating",
        "run ig_1",
        "1 + image_generation_call",
        "1 in_progress",
        "1 generating",
        "run ig_2",
    ]
    assert steps.finished("ig_2") == ["keep ig_2", "1 completed", "1 - image_generation_call completed a dog"]
    assert steps.finished("ig_1") == [
        "keep ig_1",
        "0 completed",
        "0 - image_generation_call completed a kite",
        "ask again",
    ]
    assert steps.turn(DONE) == ["keep the response", *said("Done.", 2), "completed", "finish"]
    assert check_stream(steps.body, tools=[HOSTED], tool_choice="auto") == []
    response = read_events(steps.body)[-1]["response"]
    assert [item["type"] for item in response["output"]] == [
        "image_generation_call",
        "image_generation_call",
        "message",
    ]


def test_a_picture_may_be_ready_while_the_turn_still_speaks() -> None:
    steps = Steps(ask())
    body = turn(KITE, says("And a word.", 1))
    middle = body.index(b"event: response.output_text.done")
    steps.take(steps.translator.receive(body[:middle]))
    assert steps.finished("ig_1") == [
        "keep ig_1",
        "0 completed",
        "0 - image_generation_call completed a kite",
    ]
    lines = steps.turn(body[middle:])
    assert lines[-2:] == ["1 - message completed And a word.", "ask again"]
    steps.turn(DONE)
    assert check_stream(steps.body, tools=[HOSTED], tool_choice="auto") == []


def test_a_failed_picture_is_told_to_the_model_and_the_response_completes() -> None:
    driven = exchange(ask(), turn(KITE), DONE, outcome=fail)
    assert outline(driven) == [
        *OPENING,
        *failed("image_generation_failed a kite"),
        *said("Done.", 1),
        "completed",
    ]
    assert final(driven)["output"][0]["result"] == ""
    assert told_outputs(driven.asked[1])[-1]["error"]["message"] == "The image server is out of paint."


def test_one_of_two_pictures_may_fail() -> None:
    def half(call: ToolCall) -> ToolOutcome:
        return fail(call) if call.id == "ig_1" else paint(call)

    driven = exchange(ask(), turn(KITE, painting("a dog", 1, "fc_b")), DONE, outcome=half)
    assert [line for line in outline(driven) if " - " in line] == [
        "0 - image_generation_call failed image_generation_failed a kite",
        "1 - image_generation_call completed a dog",
        "2 - message completed Done.",
    ]
    assert [one["status"] for one in told_outputs(driven.asked[1])] == ["failed", "completed"]


def test_equal_calls_of_one_turn_are_two_pictures() -> None:
    driven = exchange(ask(), turn(KITE, painting("a kite", 1, "fc_b")), DONE)
    assert len(driven.runs) == 2


# -- whose call it is ------------------------------------------------------------------------------


def test_a_call_of_the_clients_function_ends_the_response() -> None:
    request = ask(tools=[HOSTED, WEATHER])
    lines = outline(exchange(request, turn(KITE, oslo(1))))
    assert [line for line in lines if line.startswith("1")] == [
        "1 + function_call",
        '1 function_call_arguments.delta {"cit',
        '1 function_call_arguments.delta y": "Oslo"}',
        '1 function_call_arguments.done {"city": "Oslo"}',
        '1 - function_call completed {"city": "Oslo"}',
    ]
    assert [line for line in lines if line.startswith("0")] == painted("a kite")
    assert lines[-1] == "completed"


def test_a_function_that_nobody_declared_is_the_clients_business() -> None:
    driven = exchange(ask(), turn(oslo(name="draw_red_cat")))
    assert outline(driven)[-2:] == ['0 - function_call completed {"city": "Oslo"}', "completed"]


def test_a_client_function_of_our_name_keeps_it() -> None:
    function = {**WEATHER, "name": "image_generation"}
    request = ask(tools=[function, HOSTED])
    mine = painting("a kite", name="image_generation_2")
    driven = exchange(request, turn(mine), DONE, internal="image_generation_2")
    assert outline(driven) == [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]
    theirs = exchange(request, turn(oslo(name="image_generation")), internal="image_generation_2")
    assert outline(theirs)[2] == "0 + function_call"
    assert theirs.runs == []


def test_without_a_tool_there_is_nothing_to_translate() -> None:
    picture = {"type": "image_generation_call", "id": "ig_0", "result": "QUJD", "status": "completed"}
    with pytest.raises(LocalProtocolError):
        Steps({"model": "m", "input": [picture]})


WRITTEN = '{"name": "image_generation", "arguments": {"prompt": "a kite"}}'


@pytest.mark.parametrize(
    ("text", "noted"),
    [(WRITTEN, 1), (WRITTEN.replace("arguments", "parameters"), 0), (WRITTEN.replace("image_", "x_"), 0)],
)
def test_a_call_that_is_written_as_text_stays_text_and_is_noted(text: str, noted: int) -> None:
    assert outline(exchange(ask(), turn(says(text)))) == [*OPENING, *said(text), "completed"]
    steps = Steps(ask())
    steps.turn(turn(says(text), oslo(1)))
    assert steps.translator.notes == [AS_TEXT] * noted


# -- calls that are told late or oddly -------------------------------------------------------------


def test_a_call_that_stands_only_in_the_final_output_is_run() -> None:
    item = KITE[-1]["item"]
    driven = exchange(ask(), turn(output=[item]), DONE)
    assert outline(driven) == [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]


def test_a_call_is_announced_when_its_name_is_known() -> None:
    nameless = [{**one} for one in KITE]
    nameless[0]["item"] = {**nameless[0]["item"], "name": None}
    driven = exchange(ask(), turn(nameless), DONE)
    assert outline(driven) == [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]
    steps = Steps(ask())
    body = turn(nameless)
    lines = steps.take(
        steps.translator.receive(body[: body.index(b"event: response.function_call_arguments.done")])
    )
    assert lines == OPENING


# -- the message after the last picture ------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "made_up"),
    [
        (turn(), said("", 1)),
        (turn(says("Done.")), said("Done.", 1)),
        (turn(oslo()), None),
    ],
)
def test_a_message_or_a_call_of_the_client_follows_the_last_picture(
    last: bytes, made_up: list[str] | None
) -> None:
    driven = exchange(ask(tools=[HOSTED, WEATHER]), turn(KITE), last)
    lines = [line for line in outline(driven) if line.startswith("1 ")]
    assert lines == made_up or (
        made_up is None and lines[-1] == '1 - function_call completed {"city": "Oslo"}'
    )


def test_the_empty_message_is_marked_as_ours() -> None:
    item = final(exchange(ask(), turn(KITE), turn()))["output"][1]
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    assert item == {
        "id": "msg_ig_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def test_a_client_that_wants_json_gets_no_empty_message() -> None:
    request = ask(text={"format": {"type": "json_object"}})
    steps = Steps(request)
    steps.turn(turn(KITE))
    steps.finished("ig_1")
    assert steps.turn(turn()) == ["keep the response", "completed", "finish"]


def test_no_picture_needs_no_message() -> None:
    assert outline(exchange(ask(), turn())) == [*OPENING, "completed"]


def test_reasoning_after_the_picture_is_no_message() -> None:
    item = {"id": "rs_a", "type": "reasoning", "summary": []}
    thought = [event(f"output_item.{step}", 0, item=item) for step in ("added", "done")]
    last = encode(number([*thought, event("completed", response={})]))
    lines = outline(exchange(ask(), turn(KITE), last))
    assert lines[7:] == ["1 + reasoning", "1 - reasoning None", *said("", 2), "completed"]
