"""Exchanges in which something fails: a picture, one of two, the follow-up turn."""

from __future__ import annotations

import json

from case_files import read_request, read_turns
from driving import JsonAnswer, Refusal, fail, paint
from imagecall.events.tools.base import ToolCall, ToolError, ToolOutcome
from kite import KITE, SAID, answers, painted, pair, response, run, run_case, stream, usage
from transcript import Event, event, message, number, picture

CASE = "one_response_from_two_turns"
BLOCKED = ToolError(
    "prompt refused by the safety check",
    code="moderation_blocked",
    type="image_generation_user_error",
    details={"moderation_details": {"categories": ["violence"], "moderation_stage": "input"}},
)


def ends_failed(*items: list[Event], spent: Event) -> list[Event]:
    """Make a stream that fails after a picture: no error frame, everything made so far."""
    told = stream(*items, spent=spent)
    final = told[-1]["response"]
    told[-1] = event("failed", response={**final, "status": "failed"})
    return number(told)


def test_a_refused_picture_ends_failed_with_the_backends_reason_and_the_response_goes_on() -> None:
    driven = run_case(CASE, outcome=lambda call: ToolOutcome(error=BLOCKED))
    error = {
        "type": "image_generation_user_error",
        "code": "moderation_blocked",
        "message": "prompt refused by the safety check",
        "param": None,
        "moderation_details": {"categories": ["violence"], "moderation_stage": "input"},
    }
    item = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "failed",
        "result": "",
        "error": error,
        "revised_prompt": KITE,
        "action": "generate",
        "background": "auto",
        "output_format": "png",
        "quality": "auto",
        "size": "auto",
    }
    said = message(1, "msg_1", *SAID)
    assert answers(driven) == stream(picture(0, item), said, spent=usage(310, 30))
    assert len(driven.runs) == 1
    output = json.loads(pair(driven.asked[1])[1]["output"])
    assert output["status"] == "failed"
    assert "prompt refused by the safety check" in json.dumps(output)


def test_one_of_two_pictures_fails_alone() -> None:
    first, second = read_turns(CASE)
    frames = first.split(b"\n\n")
    twin = [
        frame.replace(b"fc_1", b"fc_2").replace(b"call_1", b"call_2").replace(b"harbour", b"hill")
        for frame in frames
    ]
    twin = [frame.replace(b'"output_index":0', b'"output_index":1') for frame in twin]
    both = b"\n\n".join([*frames[:9], *twin[2:9], *frames[9:]])

    def outcome(call: ToolCall) -> ToolOutcome:
        return fail(call) if call.arguments["prompt"] == KITE else paint(call)

    driven = run(read_request(CASE), [both, second], outcome=outcome)
    final = answers(driven)[-1]["response"]
    assert [(item["type"], item["status"]) for item in final["output"]] == [
        ("image_generation_call", "failed"),
        ("image_generation_call", "completed"),
        ("message", "completed"),
    ]
    assert [item.get("call_id") for item in driven.asked[1]["input"][1:]] == [
        "call_1",
        "call_2",
        "call_1",
        "call_2",
    ]


def test_a_follow_up_that_is_refused_with_400_is_asked_once_more_without_the_reasoning() -> None:
    case = "content_before_its_announcement"
    turn1, turn2 = read_turns(case)
    driven = run(read_request(case), [turn1, Refusal(400), turn2])
    types = [[item.get("type") for item in asked["input"][1:]] for asked in driven.asked[1:]]
    pairs = ["message", "function_call", "function_call_output"]
    assert types == [["reasoning", *pairs], pairs]
    assert answers(driven) == answers(run_case(case))


def test_a_follow_up_that_is_refused_for_good_fails_the_response_with_the_picture_in_it() -> None:
    (turn1, _) = read_turns(CASE)
    driven = run(read_request(CASE), [turn1, Refusal(503, retry_after=3.0), Refusal(503)])
    told = answers(driven)
    words = told[-1]["response"]["error"]["message"]
    expected = ends_failed(picture(0, painted()), spent=usage(120, 18))
    expected[-1]["response"]["error"] = {"code": "server_error", "message": words}
    assert told == expected
    assert "503" not in words
    assert driven.delays == [0.0, 3.0]
    assert driven.finish is not None
    assert not driven.finish.failed


def test_a_follow_up_that_answers_in_json_goes_on_like_a_stream() -> None:
    turn1, turn2 = read_turns(CASE)
    final = json.loads(turn2.split(b"\n\n")[-2].partition(b"data: ")[2])["response"]
    driven = run(read_request(CASE), [turn1, JsonAnswer(json.dumps(final).encode())])
    said = message(1, "msg_1", "".join(SAID))
    assert answers(driven) == stream(picture(0, painted()), said, spent=usage(310, 30))


def test_an_incomplete_turn_lets_its_picture_finish_and_stays_incomplete() -> None:
    first, _ = read_turns(CASE)
    cut = first.replace(b"response.completed", b"response.incomplete").replace(
        b'"status":"completed","error":null,"incomplete_details":null',
        b'"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}',
    )
    driven = run(read_request(CASE), [cut])
    told = stream(picture(0, painted()), spent=usage(120, 18))
    details = {"reason": "max_output_tokens"}
    output = told[-1]["response"]["output"]
    whole = response("incomplete", output=output, usage=usage(120, 18), incomplete_details=details)
    assert answers(driven) == number([*told[:-1], event("incomplete", response=whole)])
