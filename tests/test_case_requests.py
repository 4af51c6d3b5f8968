"""Whole exchanges once more: what is declared, forced, repeated or big in the client's request."""

from __future__ import annotations

import base64
import copy
import io
import json
import random
import tracemalloc
from typing import Any

import pytest
from case_files import read_request, read_turns
from driving import NOW, drive
from imagecall.events.actions import KeepPicture, NextTurn, Run, Send
from imagecall.events.errors import RequestError
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions, lower_request
from imagecall.events.tools.base import ToolOutcome, ToolProgress
from imagecall.events.translator import Translator
from kite import KITE, SAID, answers, kite_stream, painted, pair, run, run_case, stream, usage
from PIL import Image
from rules import check_stream, read_events
from transcript import call, message, picture

NO_MORE = "not run"


def lower(request: dict[str, Any]) -> dict[str, Any]:
    lowered = lower_request(request, Known(), LoweringOptions())
    assert lowered is not None
    return lowered.body


# -- declarations ----------------------------------------------------------------------------------


def test_other_tools_travel_on_as_they_are_in_their_places() -> None:
    request = read_request("other_hosted_tools")
    body = lower(request)
    first, *rest = body["tools"]
    assert (first["type"], first["name"]) == ("function", "image_generation")
    assert rest == request["tools"][1:]
    assert {**body, "tools": None} == {**request, "tools": None}


def test_a_request_without_the_tool_is_none_of_ours() -> None:
    request = read_request("other_hosted_tools")
    assert lower_request({**request, "tools": request["tools"][1:]}, Known(), LoweringOptions()) is None


def test_a_clients_function_of_our_name_stays_the_clients() -> None:
    request = read_request("name_taken_by_the_client")
    driven = run(request, read_turns("name_taken_by_the_client")[:1], internal="image_generation_2")
    assert [tool["name"] for tool in driven.asked[0]["tools"]] == ["image_generation", "image_generation_2"]
    assert driven.asked[0]["tools"][0] == request["tools"][0]
    own = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "image_generation",
        "arguments": '{"prompt":"a red kite over a harbour"}',
        "status": "completed",
    }
    asked = call(0, own, '{"prompt":"a', " red kite ov", "er a harbour", '"}')
    assert answers(driven) == stream(asked, spent=usage(120, 18), tools=request["tools"])
    assert (driven.runs, len(driven.asked)) == ([], 1)


def test_our_function_under_another_name_is_ours_all_the_same() -> None:
    request = read_request("name_taken_by_the_client")
    driven = run(request, read_turns("name_taken_by_the_client", "ours"), internal="image_generation_2")
    drawn = picture(0, painted(size="1024x1024"))
    said = message(1, "msg_1", *SAID)
    assert answers(driven) == stream(drawn, said, spent=usage(310, 30), tools=request["tools"])
    assert pair(driven.asked[1])[0]["name"] == "image_generation_2"


def test_two_declarations_that_differ_are_refused_by_name() -> None:
    request = read_request("name_taken_by_the_client")
    request["tools"][2]["size"] = "512x512"
    with pytest.raises(RequestError) as refused:
        lower(request)
    assert (refused.value.param, refused.value.status) == ("tools[2]", 400)


def test_the_same_request_twice_gives_the_same_upstream_requests_and_is_left_as_it_was() -> None:
    request, turns = read_request("request_sent_twice"), read_turns("request_sent_twice")
    before = copy.deepcopy(request)
    first, second = (run(request, turns) for _ in range(2))
    assert json.dumps(first.asked) == json.dumps(second.asked)
    assert first.body == second.body
    assert request == before


def test_the_declaration_wins_over_the_model() -> None:
    driven = run_case("declaration_against_model")
    request = read_request("declaration_against_model")
    pinned = {"size": "512x512", "quality": "low", "output_format": "webp"}
    assert [dict(one.arguments) for one in driven.runs] == [
        {"prompt": KITE, **pinned, "partial_images": 0, "extra": {}}
    ]
    assert answers(driven) == stream(
        picture(0, painted(**pinned)),
        message(1, "msg_1", *SAID),
        spent=usage(310, 30),
        tools=request["tools"],
    )
    assert not pinned.keys() & driven.asked[0]["tools"][0]["parameters"]["properties"].keys()


def test_a_choice_of_the_tool_that_is_not_declared_is_refused_in_openais_words() -> None:
    with pytest.raises(RequestError) as refused:
        lower(read_request("choice_without_the_tool"))
    assert refused.value.message == "Tool choice 'image_generation' not found in 'tools' parameter."
    assert (refused.value.param, refused.value.status) == ("tool_choice", 400)


def test_text_passes_byte_for_byte_but_for_the_tools_told_back() -> None:
    driven = run_case("no_picture_wanted")
    (turn,) = read_turns("no_picture_wanted")
    sent, got = turn.split(b"\n\n"), driven.body.split(b"\n\n")
    assert got[2:-2] == sent[2:-2]
    assert answers(driven) == stream(message(0, "msg_1", "Hel", "lo."), spent=usage(190, 12))
    assert (driven.runs, len(driven.asked)) == ([], 1)


def test_a_picture_and_a_clients_call_of_one_turn_come_back_as_one_turn_with_nothing_unanswered() -> None:
    request = read_request("picture_and_client_call", "turn2")
    user, _, called, answered = request["input"]
    body = lower(request)
    asked, theirs, told, output = body["input"][1:]
    assert body["input"][0] == user
    assert (theirs, output) == (called, answered)
    assert asked == {
        "type": "function_call",
        "call_id": told["call_id"],
        "name": "image_generation",
        "arguments": '{"prompt":"Draw a kite and tell me the weather in Oslo."}',
    }
    assert (told["type"], json.loads(told["output"])["status"]) == ("function_call_output", "completed")
    assert request["input"][1]["result"] not in json.dumps(body)


# -- choices and repetitions -----------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["", "required"])
def test_a_forced_choice_is_forced_once(variant: str) -> None:
    request = read_request("forced_choice", variant)
    driven = run(request, read_turns("forced_choice"))
    assert answers(driven) == kite_stream(tool_choice=request["tool_choice"])
    assert [asked["tool_choice"] for asked in driven.asked] == ["required", "auto"]
    assert driven.asked[0]["tools"] == driven.asked[1]["tools"]


def test_calls_beyond_max_tool_calls_are_not_shown_and_the_model_is_told() -> None:
    driven = run_case("same_call_again")
    said = message(1, "msg_1", *SAID)
    assert answers(driven) == stream(picture(0, painted()), said, spent=usage(550, 66), max_tool_calls=1)
    assert len(driven.runs) == 1
    assert len(driven.asked) == 4
    for position in (3, 5):
        _, output = pair(driven.asked[-1], position)
        assert json.loads(output["output"])["status"] == NO_MORE


def test_the_same_call_again_shows_the_same_picture_without_painting_it_again() -> None:
    request = read_request("same_call_again")
    del request["max_tool_calls"]
    driven = run(request, read_turns("same_call_again"))
    drawn = [picture(index, {**painted(), "id": f"ig_{index + 1}"}) for index in range(3)]
    assert answers(driven) == stream(*drawn, message(3, "msg_1", *SAID), spent=usage(550, 66))
    assert [one.id for one in driven.runs] == ["ig_1"]


def test_a_model_that_repeats_itself_is_told_to_call_nothing_and_then_not_heard() -> None:
    request = read_request("same_call_again")
    del request["max_tool_calls"]
    driven = run(request, [], rest=read_turns("same_call_again")[0])
    assert [asked.get("tool_choice") for asked in driven.asked] == [None, None, None, "none"]
    drawn = [picture(index, {**painted(), "id": f"ig_{index + 1}"}) for index in range(3)]
    assert answers(driven) == stream(*drawn, message(3, "msg_ig_1"), spent=usage(480, 72))
    assert len(driven.runs) == 1


def test_a_model_that_always_wants_another_picture_gets_eight_turns_and_a_last_word() -> None:
    request = read_request("same_call_again")
    del request["max_tool_calls"]
    turn = read_turns("same_call_again")[0]
    driven = run(request, [turn.replace(b"harbour", b"harbour %d" % count) for count in range(9)])
    assert [asked.get("tool_choice") for asked in driven.asked] == [*[None] * 8, "none"]
    assert [one.arguments["prompt"] for one in driven.runs] == [f"{KITE} {count}" for count in range(8)]
    assert answers(driven)[-1]["response"]["status"] == "completed"


# -- size ------------------------------------------------------------------------------------------


def noise(side: int, seed: int) -> bytes:
    """Make a picture that does not compress, in base64."""
    pixels = random.Random(seed).randbytes(side * side * 4)
    file = io.BytesIO()
    Image.frombytes("RGBA", (side, side), pixels).save(file, "png", compress_level=0)
    return base64.b64encode(file.getvalue())


def test_eight_megabytes_pass_in_one_frame_and_are_never_copied_four_times() -> None:
    side = 1220
    facts = {"size": f"{side}x{side}", "output_format": "png", "background": "transparent"}
    final, early = noise(side, 0), noise(side, 1)
    request = read_request("eight_megabyte_picture")
    driven = run(
        request,
        read_turns("eight_megabyte_picture"),
        outcome=lambda call: ToolOutcome(final, facts),
        partials=lambda call: [ToolProgress(early, facts)],
    )
    told = read_events(driven.body)
    assert [one["partial_image_b64"] for one in told if "partial_image_b64" in one] == [early.decode()]
    assert told[-1]["response"]["output"][0]["result"] == final.decode()
    assert all(frames.endswith(b"\n\n") for frames in driven.sends)
    assert max(len(json.dumps(asked)) for asked in driven.asked) < 5000


def test_a_picture_on_its_way_costs_less_than_three_times_its_size() -> None:
    request, turns = read_request("eight_megabyte_picture"), read_turns("eight_megabyte_picture")
    lowered = lower_request(request, Known(), LoweringOptions())
    assert lowered is not None
    translator = Translator(lowered, new_id=lambda prefix: f"{prefix}_1", now=lambda: NOW)
    (_, started) = translator.receive(turns[0])
    assert isinstance(started, Run)
    assert translator.turn_ended() == []
    data = noise(1220, 0)
    tracemalloc.start()
    try:
        done = translator.tool_finished(started.call.id, ToolOutcome(data))
        assert [type(action) for action in done] == [KeepPicture, Send, Send, NextTurn]
        del done
        translator.receive(turns[1])
        translator.turn_ended()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(data)


def test_megabytes_of_text_pass_as_they_came() -> None:
    request = read_request("no_picture_wanted")
    long = b"x" * 3_000_000
    turn = read_turns("no_picture_wanted")[0].replace(b"Hel", long)
    driven = drive(request, [turn])
    assert check_stream(driven.body) == []
    assert driven.body.split(b"\n\n")[2:-2] == turn.split(b"\n\n")[2:-2]
