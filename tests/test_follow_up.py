"""The requests after the first: what the model server is asked, and asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driving import Driven, JsonAnswer, Refusal
from exchanges import OPENING, Steps, ask, calling, exchange, outline, painted, painting, said, says, turn
from imagecall.events.actions import NextTurn
from kite import HOSTED, run
from rules import check_stream, read_events
from transcript import Event, reasoning

KITE = turn(painting("a kite"))
DONE = turn(says("Done."))
THINKING = turn(reasoning(0, "rs_a", "Hm."), says("Sure.", 1), painting("a kite", 2))
WHOLE = [*OPENING, *painted("a kite"), *said("Done.", 1), "completed"]
REFUSED = [*OPENING, *painted("a kite"), "failed"]


def kinds(asked: Any) -> list[str]:
    return [item.get("type", "message") for item in asked["input"]]


def last(driven: Driven) -> Event:
    response: Event = read_events(driven.body)[-1]["response"]
    return response


# -- what is asked ---------------------------------------------------------------------------------


def test_each_turn_is_asked_with_all_that_came_before() -> None:
    driven = exchange(ask(), THINKING, turn(painting("a dog", 0, "fc_b"), number_of=2), DONE)
    assert kinds(driven.asked[1]) == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert kinds(driven.asked[2]) == [*kinds(driven.asked[1]), "function_call", "function_call_output"]
    assert driven.asked[2]["input"][:5] == driven.asked[1]["input"]


def test_items_that_say_nothing_are_not_repeated_to_the_model() -> None:
    driven = exchange(ask(), turn(reasoning(0, "rs_a"), says("  ", 1), painting("a kite", 2)), DONE)
    assert kinds(driven.asked[1]) == ["message", "function_call", "function_call_output"]


def test_calls_come_before_all_outputs_of_their_turn_and_keep_their_call_ids() -> None:
    driven = exchange(ask(), turn(painting("a kite"), painting("a dog", 1, "fc_b")), DONE)
    assert [item.get("call_id") for item in driven.asked[1]["input"][1:]] == [
        "call_fc_a",
        "call_fc_b",
        "call_fc_a",
        "call_fc_b",
    ]


@pytest.mark.parametrize("given", [None, "", "call_fc_a"])
def test_a_call_id_that_is_none_or_was_used_in_an_earlier_turn_is_replaced(given: str | None) -> None:
    again = painting("a dog", 0, "fc_b")
    for one in (again[0], again[-1]):
        one["item"] = {**one["item"], "call_id": given}
    driven = exchange(ask(), KITE, turn(again, number_of=2), DONE)
    assert [item.get("call_id") for item in driven.asked[2]["input"][1:]] == [
        "call_fc_a",
        "call_fc_a",
        "call_1",
        "call_1",
    ]


def test_the_model_sees_its_calls_repaired_and_under_our_functions_name() -> None:
    driven = exchange(ask(), turn(calling('{"prompt": "a kite"}}', name="functions.image_generation")), DONE)
    made = driven.asked[1]["input"][1]
    assert (made["name"], json.loads(made["arguments"])) == ("image_generation", {"prompt": "a kite"})
    broken = exchange(ask(), turn(calling("{")), DONE).asked[1]["input"][1]
    assert broken["arguments"] == "{}"


def test_a_conversation_that_the_server_stores_is_asked_with_the_outputs_alone() -> None:
    driven = exchange(ask(conversation="conv_1"), THINKING, DONE)
    assert kinds(driven.asked[1]) == ["function_call_output"]


def test_the_clients_own_previous_response_still_holds() -> None:
    driven = exchange(ask(previous_response_id="resp_0"), KITE, DONE)
    assert [asked["previous_response_id"] for asked in driven.asked] == ["resp_0", "resp_0"]


# -- refusals --------------------------------------------------------------------------------------


def test_a_refused_request_is_tried_once_more_without_reasoning() -> None:
    driven = exchange(ask(), THINKING, Refusal(400), DONE)
    assert outline(driven)[-1] == "completed"
    assert "reasoning" in kinds(driven.asked[1])
    assert kinds(driven.asked[2]) == ["message", "message", "function_call", "function_call_output"]
    assert driven.delays == [0.0, 0.0]


def test_once_refused_reasoning_stays_out() -> None:
    again = turn(reasoning(0, "rs_b", "Hm."), painting("a dog", 1, "fc_b"), number_of=2)
    driven = exchange(ask(), THINKING, Refusal(400), again, DONE)
    assert "reasoning" not in kinds(driven.asked[3])


def test_a_refusal_that_nothing_can_be_left_out_for_fails_the_response() -> None:
    driven = exchange(ask(), KITE, Refusal(400))
    assert outline(driven) == REFUSED
    assert last(driven)["output"][0]["status"] == "completed"
    assert last(driven)["error"]["code"] == "server_error"


def test_a_request_that_is_refused_twice_fails_the_response() -> None:
    driven = exchange(ask(), THINKING, Refusal(400), Refusal(422))
    assert outline(driven)[-1] == "failed"
    assert len(driven.asked) == 3


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
@pytest.mark.parametrize(("retry_after", "delay"), [(None, 1.0), (0.0, 0.0), (2.5, 2.5), (900.0, 10.0)])
def test_a_busy_server_is_asked_once_more_after_a_while(
    status: int, retry_after: float | None, delay: float
) -> None:
    driven = exchange(ask(), KITE, Refusal(status, retry_after=retry_after), DONE)
    assert outline(driven) == WHOLE
    assert driven.asked[1] == driven.asked[2]
    assert driven.delays == [0.0, delay]


@pytest.mark.parametrize(("status", "code"), [(429, "rate_limit_exceeded"), (503, "server_error")])
def test_a_server_that_stays_busy_fails_the_response(status: int, code: str) -> None:
    driven = exchange(ask(), KITE, Refusal(status), Refusal(status))
    assert outline(driven) == REFUSED
    assert last(driven)["error"]["code"] == code


def test_busy_and_refused_are_counted_apart_and_anew_in_each_turn() -> None:
    more = turn(painting("a dog", 0, "fc_b"), number_of=2)
    driven = exchange(ask(), THINKING, Refusal(503), Refusal(400), more, Refusal(503), DONE)
    assert outline(driven)[-1] == "completed"
    assert driven.delays == [0.0, 1.0, 0.0, 0.0, 1.0]


def test_refusals_are_noted_and_the_beginning_of_their_words_kept_apart() -> None:
    steps = Steps(ask())
    steps.turn(KITE)
    steps.finished("ig_1")
    body = b"\xff" + b"no " * 900
    assert steps.take(steps.translator.turn_refused(400, body)) == ["keep the response", "failed", "finish"]
    assert steps.translator.notes == [
        "the model server answered a follow-up turn with status 400",
        "the model server failed: the follow-up turn was refused with status 400",
    ]
    [words] = steps.translator.words
    assert words.startswith("\ufffdno no")
    assert len(words) == 300


def test_a_follow_up_that_is_no_answer_at_all_fails_the_response() -> None:
    driven = run(ask(), [KITE, JsonAnswer(b"{}")])
    assert outline(driven) == REFUSED


# -- pictures for models that see ------------------------------------------------------------------


def asked_with(feedback: str, *turns: bytes) -> tuple[Steps, list[Any]]:
    """Run turns with pictures, one after the other; return the requests for what follows them."""
    steps = Steps(ask(), feedback=feedback)
    for body in turns:
        for line in steps.turn(body):
            if line.startswith("run "):
                steps.finished(line.removeprefix("run "))
    return steps, [one.body for one in steps.actions if isinstance(one, NextTurn)]


def picture(steps: Steps, number: int = 0) -> Event:
    done = [one["item"] for one in read_events(steps.body) if one["type"] == "response.output_item.done"]
    pictures = [item for item in done if item.get("result")]
    return {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{pictures[number]['result']}",
        "detail": "auto",
    }


def test_the_picture_follows_its_output_in_a_user_message() -> None:
    steps, [asked] = asked_with("image", turn(painting("a kite"), calling("{}", 1, "fc_b")))
    assert kinds(asked)[1:] == [
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert isinstance(asked["input"][3]["output"], str)
    text = {"type": "input_text", "text": "The picture that was just made:"}
    assert asked["input"][5] == {"type": "message", "role": "user", "content": [text, picture(steps)]}


def test_the_picture_stands_in_its_output_where_that_is_wanted() -> None:
    steps, [asked] = asked_with("image_output", turn(painting("a kite"), calling("{}", 1, "fc_b")))
    text, shown = asked["input"][3]["output"]
    assert (text["type"], json.loads(text["text"])["status"]) == ("input_text", "completed")
    assert shown == picture(steps)
    assert json.loads(asked["input"][4]["output"])["status"] == "failed"


@pytest.mark.parametrize("feedback", ["image", "image_output"])
def test_pictures_of_all_turns_are_shown(feedback: str) -> None:
    steps, asked = asked_with(feedback, KITE, turn(painting("a dog", 0, "fc_b"), number_of=2))
    words = json.dumps(asked[-1])
    for number in (0, 1):
        assert words.count(picture(steps, number)["image_url"]) == 1


@pytest.mark.parametrize("feedback", ["image", "image_output"])
@pytest.mark.parametrize("status", [400, 500])
def test_a_server_that_refuses_pictures_gets_words(feedback: str, status: int) -> None:
    steps, _ = asked_with(feedback, KITE)
    assert steps.take(steps.translator.turn_refused(status)) == ["ask again"]
    again = steps.actions[-1]
    assert isinstance(again, NextTurn)
    assert kinds(again.body) == ["message", "function_call", "function_call_output"]
    assert isinstance(again.body["input"][2]["output"], str)
    assert ";base64," not in json.dumps(again.body)
    assert steps.turn(DONE)[-2:] == ["completed", "finish"]
    assert check_stream(steps.body, tools=[HOSTED]) == []


@pytest.mark.parametrize("feedback", ["image", "image_output"])
def test_a_server_that_is_only_busy_is_shown_the_picture_again(feedback: str) -> None:
    steps, [asked] = asked_with(feedback, KITE)
    steps.take(steps.translator.turn_refused(503))
    again = steps.actions[-1]
    assert isinstance(again, NextTurn)
    assert again.body == asked


def test_a_model_that_reads_gets_no_picture_at_all() -> None:
    _, [asked] = asked_with("text", KITE)
    assert ";base64," not in json.dumps(asked)
