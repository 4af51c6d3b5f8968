"""Whole exchanges with model servers as they are: what the client gets, and what the server is asked.

Each case's input reproduces what some server was reported to send. `kite.run` holds every stream
against all rules and the official SDK's accumulator.
"""

from __future__ import annotations

import json

from accumulator import check_types
from case_files import read_request, read_turns
from driving import NOW, JsonAnswer, bytewise, drive
from kite import (
    HOSTED,
    KITE,
    SAID,
    answers,
    kite_stream,
    painted,
    pair,
    response,
    run_case,
    stream,
    usage,
)
from rules import check_response, read_events
from transcript import call, event, message, number, picture, reasoning

# -- two turns, one response -----------------------------------------------------------------------


def test_two_turns_reach_the_client_as_one_response() -> None:
    driven = run_case("one_response_from_two_turns")
    assert answers(driven) == kite_stream()
    assert [dict(one.arguments) for one in driven.runs] == [
        {"prompt": KITE, "partial_images": 0, "extra": {}}
    ]


def test_the_model_is_asked_again_with_its_call_and_the_result_in_words() -> None:
    driven = run_case("one_response_from_two_turns")
    first, second = driven.asked
    made, output = pair(second)
    assert second == {
        "model": "local-model",
        "input": [{"role": "user", "content": "Draw a red kite over a harbour."}, made, output],
        "tools": first["tools"],
        "stream": True,
    }
    assert made == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "image_generation",
        "arguments": '{"prompt":"a red kite over a harbour"}',
    }
    told = json.loads(output["output"])
    assert (told["status"], told["image_id"], told["size"], told["output_format"]) == (
        "completed",
        "ig_1",
        "48x32",
        "png",
    )
    assert len(output["output"]) < 1000


def test_a_picture_is_announced_at_once_and_done_only_when_it_is_made() -> None:
    whole = run_case("done_before_the_picture")
    assert answers(whole) == kite_stream()
    first, *_ = whole.sends
    assert [one["type"].removeprefix("response.") for one in read_events(first)] == [
        "created",
        "in_progress",
        "output_item.added",
        "image_generation_call.in_progress",
        "image_generation_call.generating",
    ]


def test_a_server_that_never_fills_its_final_output_costs_nothing() -> None:
    driven = run_case("empty_final_output")
    said = message(1, "msg_1", "Rea", "dy.")
    assert answers(driven) == stream(picture(0, painted()), said, spent=usage(130, 13))


def test_a_client_that_wants_no_stream_gets_the_response_that_the_stream_ends_with() -> None:
    case = "empty_final_output"
    bodies = []
    for turn in read_turns(case):
        told = read_events(turn)
        done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
        bodies.append(JsonAnswer(json.dumps({**told[-1]["response"], "output": done}).encode()))
    driven = drive(read_request(case, "nonstream"), bodies)
    assert driven.finish is not None
    final = json.loads(driven.finish.response or b"null")
    assert final == answers(run_case(case))[-1]["response"]
    assert check_response(final, tools=[HOSTED], tool_choice="auto") == []
    assert [asked["stream"] for asked in driven.asked] == [False, False]


def test_a_cut_inside_the_arguments_paints_nothing_and_closes_what_is_open() -> None:
    driven = run_case("cut_inside_the_arguments")
    told = answers(driven)
    refused = told[12]["item"]["error"]
    words = told[-1]["response"]["error"]["message"]
    broken = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "failed",
        "result": "",
        "error": {**refused, "param": None},
        **{
            key: told[12]["item"][key] for key in ("action", "background", "output_format", "quality", "size")
        },
    }
    error = {"type": "server_error", "code": "server_error", "message": words, "param": None}
    items = [message(0, "msg_0", "One m", "oment."), picture(1, broken)]
    expected = stream(*items, spent=usage(0, 0))[:-1]
    output = [events[-1]["item"] for events in items]
    expected += [
        {"type": "error", "code": "server_error", "message": words, "param": None, "error": error},
        event(
            "failed",
            response=response("failed", output=output, error={"code": "server_error", "message": words}),
        ),
    ]
    assert told == number(expected)
    assert (driven.runs, len(driven.asked)) == ([], 1)


def test_a_client_call_beside_the_picture_ends_the_response() -> None:
    driven = run_case("picture_and_client_call")
    weather = {
        "id": "fc_W",
        "type": "function_call",
        "call_id": "call_W",
        "name": "get_weather",
        "arguments": '{"prompt":"Oslo"}',
        "status": "completed",
    }
    drawn = picture(0, painted())
    asked = call(1, weather, '{"pro', 'mpt":', '"Oslo', '"}')
    tools = read_request("picture_and_client_call")["tools"]
    assert answers(driven) == stream(drawn[:3], asked, drawn[3:], spent=usage(70, 40), tools=tools)
    assert len(driven.asked) == 1
    early = run_case("picture_and_client_call", at_once=True, split=bytewise)
    assert answers(early) == stream(drawn, asked, spent=usage(70, 40), tools=tools)


# -- what servers leave out or get wrong -----------------------------------------------------------


def test_item_and_call_ids_that_change_lead_to_one_picture_and_one_pair() -> None:
    driven = run_case("ids_that_change")
    assert answers(driven) == kite_stream()
    assert len(driven.runs) == 1
    assert pair(driven.asked[1])[0]["call_id"] == "call_x"
    assert len(driven.asked[1]["input"]) == 3


def test_missing_indexes_ids_and_numbers_are_made_up() -> None:
    driven = run_case("no_index_no_id_no_number")
    expected = kite_stream(spent=usage(201, 19), created_at=int(NOW))
    for opening in expected[:2]:
        opening["response"].update(temperature=None, top_p=None)
    assert answers(driven) == expected
    assert check_types(driven.body) == []
    assert pair(driven.asked[1])[0]["call_id"] == "call_1"


def test_content_of_items_never_announced_announces_them_one_index_each() -> None:
    driven = run_case("content_before_its_announcement")
    thought = reasoning(0, "rs_a1", "I should ", "draw a kite.", status="completed")
    said = message(1, "msg_q", "Sure, drawing. ")
    expected = [thought, said, picture(2, painted()), message(3, "msg_1", *SAID)]
    assert answers(driven) == stream(*expected, spent=usage(280, 43))
    assert [item["type"] for item in driven.asked[1]["input"][1:]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]


def test_heartbeats_sent_as_events_are_swallowed() -> None:
    driven = run_case("heartbeat_events")
    assert answers(driven) == kite_stream(spent=usage(240, 21))


# -- arguments -------------------------------------------------------------------------------------


def test_arguments_that_come_only_in_done_are_used_once() -> None:
    driven = run_case("arguments_only_when_done")
    assert answers(driven) == kite_stream(spent=usage(240, 21))
    assert [one.arguments["prompt"] for one in driven.runs] == [KITE]


def test_a_call_written_as_text_is_text() -> None:
    driven = run_case("call_written_as_text")
    first = '\n\n<tool_call>\n{"name": "image_generation", "arg'
    second = 'uments": {"prompt": "a red kite"}}\n</tool_call>'
    assert answers(driven) == stream(message(0, "msg_0", first, second), spent=usage(60, 30))
    assert (driven.runs, len(driven.asked)) == ([], 1)


def test_a_harmony_token_at_the_name_does_not_hide_our_call() -> None:
    driven = run_case("harmony_token_in_the_name")
    assert answers(driven) == kite_stream(spent=usage(250, 32))
    assert pair(driven.asked[1])[0]["name"] == "image_generation"
    assert b"channel" not in driven.body


def test_text_behind_the_arguments_is_cut_off_and_the_model_sees_the_repaired_call() -> None:
    driven = run_case("text_behind_the_arguments")
    assert answers(driven) == kite_stream(spent=usage(250, 32))
    assert json.loads(pair(driven.asked[1])[0]["arguments"]) == {"prompt": KITE}


def test_empty_arguments_fail_the_call_and_tell_the_model_what_is_missing() -> None:
    driven = run_case("empty_arguments")
    words = answers(driven)[5]["item"]["error"]["message"]
    failed = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "failed",
        "result": "",
        "error": {
            "type": "image_generation_user_error",
            "code": "invalid_arguments",
            "message": words,
            "param": "prompt",
        },
        "action": "generate",
        "background": "auto",
        "output_format": "png",
        "quality": "auto",
        "size": "auto",
    }
    said = message(1, "msg_1", "I could not dra", "w it: no prompt.")
    assert answers(driven) == stream(picture(0, failed), said, spent=usage(160, 17))
    assert driven.runs == []
    made, output = pair(driven.asked[1])
    assert made["arguments"] == "{}"
    assert json.loads(output["output"])["status"] == "failed"
    assert "prompt" in words
    assert words in output["output"]
