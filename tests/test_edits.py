"""Edits through whole exchanges: which pictures a call starts from, turn after turn."""

from __future__ import annotations

import json

import pytest
from driving import Driven, paint
from exchanges import Steps, ask, exchange, failed, outline, painted, painting, said, says, turn
from imagecall.events.actions import Run
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions
from imagecall.events.pictures import Picture
from imagecall.events.tools.base import ToolCall, ToolError, ToolOutcome
from kite import HOSTED
from rules import read_events
from transcript import Event

SENT = "data:image/png;base64,AAAA"
LOOK = {"role": "user", "content": [{"type": "input_image", "image_url": SENT}]}
KITE = turn(painting("a kite"))
DONE = turn(says("Done."))
BLUE = {"prompt": "make it blue", "num_last_images_to_include": 1}


def edited(driven: Driven) -> list[object]:
    """Name what each call started from: an id, or else the picture itself."""
    return [
        [picture.id or picture.data or picture.path for picture in call.arguments.get("images", ())]
        for call in driven.runs
    ]


def actions(driven: Driven) -> list[str]:
    output = read_events(driven.body)[-1]["response"]["output"]
    return [item["action"] for item in output if item["type"] == "image_generation_call"]


def told(driven: Driven, number: int) -> list[Event]:
    """Read what the model heard of the calls before turn `number`."""
    items = driven.asked[number - 1]["input"]
    return [json.loads(item["output"]) for item in items if item.get("type") == "function_call_output"]


def test_a_picture_that_the_user_sent_is_edited() -> None:
    driven = exchange(ask(input=[LOOK]), turn(painting(BLUE)), DONE)
    assert outline(driven) == [
        "created resp_1",
        "in_progress",
        *painted("make it blue"),
        *said("Done.", 1),
        "completed",
    ]
    assert (edited(driven), actions(driven)) == ([[SENT]], ["edit"])


@pytest.mark.parametrize(
    "item",
    [
        {"type": "image_generation_call", "id": "ig_0", "status": "completed", "result": "BBBB"},
        {"type": "image_generation_call", "id": "ig_0"},
        {"type": "image_generation_call", "id": "ig_0", "status": "completed", "result": None},
        {"type": "item_reference", "id": "ig_0"},
        {"id": "ig_0"},
    ],
)
def test_an_earlier_picture_is_edited_in_every_form_in_which_clients_send_it(item: Event) -> None:
    stored = {
        "id": "ig_0",
        "type": "image_generation_call",
        "status": "completed",
        "revised_prompt": "a kite",
    }
    known = Known({"ig_0": stored}, frozenset({"ig_0"}))
    request = ask(input=[{"role": "user", "content": "Draw."}, item, {"role": "user", "content": "Blue!"}])
    driven = exchange(request, turn(painting(BLUE)), DONE, known=known)
    data = item.get("result")
    assert driven.runs[0].arguments["images"] == (Picture("ig_0", data=data),)
    assert driven.asked[0]["input"][1]["type"] == "function_call"
    assert all("BBBB" not in json.dumps(asked) for asked in driven.asked)


def test_a_picture_of_the_same_response_is_edited_with_no_store_at_all() -> None:
    driven = exchange(ask(store=False), KITE, turn(painting(BLUE, 0, "fc_b"), number_of=2), DONE)
    assert (edited(driven), actions(driven)) == ([[], ["ig_1"]], ["generate", "edit"])
    (picture,) = driven.runs[1].arguments["images"]
    assert picture.data.decode() == read_events(driven.body)[-1]["response"]["output"][0]["result"]
    by_id = {"prompt": "make it blue", "referenced_image_ids": ["ig_1"]}
    driven = exchange(ask(), KITE, turn(painting(by_id, 0, "fc_b"), number_of=2), DONE)
    assert edited(driven) == [[], ["ig_1"]]


def test_the_function_stays_the_same_through_all_turns() -> None:
    driven = exchange(ask(), KITE, turn(painting(BLUE, 0, "fc_b")), DONE)
    first, *others = [json.dumps(asked["tools"]) for asked in driven.asked]
    assert others == [first, first]
    assert "num_last_images_to_include" not in first
    offered = exchange(ask(input=[LOOK]), DONE).asked[0]["tools"][0]
    assert "num_last_images_to_include" in offered["parameters"]["properties"]


def test_pictures_of_the_same_turn_do_not_count_whichever_is_ready_first() -> None:
    request = ask(input=[LOOK])
    both = turn(painting("a kite"), painting(BLUE, 1, "fc_b"))
    for at_once in (False, True):
        driven = exchange(request, both, DONE, at_once=at_once)
        assert edited(driven) == [[], [SENT]]


def test_pictures_of_one_turn_count_in_the_order_in_which_they_were_called_for() -> None:
    steps = Steps(ask())
    steps.turn(turn(painting("a cat"), painting("a dog", 1, "fc_b")))
    steps.finished("ig_2")
    steps.finished("ig_1")
    steps.turn(turn(painting({**BLUE, "num_last_images_to_include": 2}, 0, "fc_c")))
    last = [action.call for action in steps.actions if isinstance(action, Run)][-1]
    assert [picture.id for picture in last.arguments["images"]] == ["ig_1", "ig_2"]


def test_a_wrong_selector_is_told_to_the_model_and_the_client_sees_a_failed_edit() -> None:
    driven = exchange(
        ask(),
        turn(painting(BLUE)),
        turn(painting("a blue kite", 0, "fc_b"), number_of=2),
        DONE,
    )
    assert outline(driven)[2:7] == [*failed("invalid_arguments make it blue"), "1 + image_generation_call"]
    assert (edited(driven), actions(driven)) == ([[]], ["edit", "generate"])
    assert told(driven, 2)[0]["error"] == {
        "code": "invalid_arguments",
        "message": "There is no picture to change; leave out num_last_images_to_include to draw a new one.",
        "param": "num_last_images_to_include",
    }


def test_a_selector_that_was_wrong_is_right_once_there_is_a_picture() -> None:
    both = turn(painting(BLUE), painting("a kite", 1, "fc_b"))
    driven = exchange(ask(), both, turn(painting(BLUE, 0, "fc_c")), DONE)
    assert edited(driven) == [[], ["ig_2"]]
    assert actions(driven) == ["edit", "generate", "edit"]


def test_a_failed_picture_cannot_be_edited() -> None:
    def outcome(call: ToolCall) -> ToolOutcome:
        made = paint(call)
        return made if call.id != "ig_1" else ToolOutcome(error=ToolError("No paint."))

    driven = exchange(ask(), KITE, turn(painting(BLUE, 0, "fc_b")), DONE, outcome=outcome)
    assert edited(driven) == [[]]
    assert told(driven, 3)[1]["error"]["code"] == "invalid_arguments"


# -- equal calls -----------------------------------------------------------------------------------


def test_the_same_words_over_the_same_picture_are_the_same_call_however_it_is_named() -> None:
    known = Known(reach=(Picture("ig_0"),), previous="resp_0")
    by_id = {"prompt": "Make it  BLUE", "referenced_image_ids": ["ig_0"]}
    driven = exchange(
        ask(previous_response_id="resp_0"),
        turn(painting(BLUE)),
        turn(painting(by_id, 0, "fc_b")),
        DONE,
        known=known,
    )
    assert edited(driven) == [["ig_0"]]
    first, second, *_ = read_events(driven.body)[-1]["response"]["output"]
    assert first["result"] == second["result"]


def test_the_same_words_over_a_newer_picture_are_another_call() -> None:
    driven = exchange(ask(input=[LOOK]), turn(painting(BLUE)), turn(painting(BLUE, 0, "fc_b")), DONE)
    assert edited(driven) == [[SENT], ["ig_1"]]


def test_the_same_words_with_and_without_a_picture_are_two_calls() -> None:
    driven = exchange(
        ask(input=[LOOK]), turn(painting(BLUE)), turn(painting("make it blue", 0, "fc_b")), DONE
    )
    assert edited(driven) == [[SENT], []]


def test_pictures_without_a_name_are_told_apart() -> None:
    other = {"role": "user", "content": [{"type": "input_image", "image_url": SENT + "BBBB"}]}
    two = {**BLUE, "num_last_images_to_include": 2}
    driven = exchange(
        ask(input=[LOOK, other]), turn(painting(BLUE), painting(two, 1, "fc_b")), turn(says("Done."))
    )
    assert edited(driven) == [[SENT + "BBBB"], [SENT, SENT + "BBBB"]]


def test_files_are_told_apart_by_their_paths() -> None:
    def over(path: str, item_id: str) -> bytes:
        return turn(painting({"prompt": "blue", "referenced_image_paths": [path]}, 0, item_id))

    driven = exchange(
        ask(),
        over("a.png", "fc_a"),
        over("b.png", "fc_b"),
        over("a.png", "fc_c"),
        DONE,
        options=LoweringOptions(workspace=True),
    )
    assert edited(driven) == [["a.png"], ["b.png"]]


def test_an_equal_edit_under_a_mask_is_the_same_call() -> None:
    tools = [{**HOSTED, "input_image_mask": {"image_url": SENT}}]
    known = Known(reach=(Picture("ig_0"),), previous="resp_0")
    by_id = {"prompt": "make it blue", "referenced_image_ids": ["ig_0"]}
    turns = [turn(painting(by_id, 0, item_id)) for item_id in ("fc_a", "fc_b")]
    driven = exchange(ask(previous_response_id="resp_0", tools=tools), *turns, DONE, known=known)
    assert [call.arguments["mask"] for call in driven.runs] == [Picture(data=SENT)]


# -- what the client declares ----------------------------------------------------------------------


def test_a_client_that_wants_edits_only_has_the_last_picture_edited() -> None:
    tools = [{**HOSTED, "action": "edit"}]
    driven = exchange(ask(input=[LOOK], tools=tools), turn(painting("make it blue")), DONE)
    assert (edited(driven), actions(driven)) == ([[SENT]], ["edit"])


def test_an_edit_of_nothing_is_told_to_the_model_which_tells_the_user() -> None:
    tools = [{**HOSTED, "action": "edit"}]
    driven = exchange(ask(tools=tools), turn(painting("make it blue")), DONE)
    assert driven.runs == []
    assert told(driven, 2)[0]["error"]["code"] == "no_image_to_edit"
    assert told(driven, 2)[0]["note"].startswith("No picture was made. Do not repeat the same call;")


def test_a_client_that_wants_new_pictures_only_gets_them() -> None:
    tools = [{**HOSTED, "action": "generate"}]
    driven = exchange(ask(input=[LOOK], tools=tools), turn(painting(BLUE)), DONE)
    assert (edited(driven), actions(driven)) == ([[]], ["generate"])


def test_a_bare_selector_is_known_to_strict_arguments() -> None:
    steps = Steps(ask(input=[LOOK]), strict_arguments=True)
    assert steps.turn(turn(painting(BLUE)))[-1] == "run ig_1"
