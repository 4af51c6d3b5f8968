"""Requests that continue a response the store knows, and those that run in the background."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from driving import drive
from exchanges import ask, exchange, oslo, outline, painted, painting, said, says, turn
from imagecall.events.errors import RequestError
from imagecall.events.known import Known
from imagecall.events.lowering import LoweredRequest, LoweringOptions, lower_request
from imagecall.events.pictures import Picture
from kite import HOSTED
from rules import read_events
from transcript import Event

KITE_ITEM = {
    "id": "ig_0",
    "type": "image_generation_call",
    "status": "completed",
    "revised_prompt": "a kite",
    "action": "generate",
    "background": "opaque",
    "output_format": "png",
    "quality": "auto",
    "size": "48x32",
}
BEFORE = Known(
    {"ig_0": KITE_ITEM},
    frozenset({"ig_0"}),
    reach=(Picture("ig_0"),),
    previous="resp_up2",
)
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
OWED = {"type": "function_call_output", "call_id": "call_fc_a", "output": "{}"}
DONE = turn(says("Done."))


def lowered(body: Event, known: Known | None = None, **options: Any) -> LoweredRequest:
    before = copy.deepcopy(body)
    result = lower_request(body, known or Known(), LoweringOptions(**options))
    assert body == before
    assert result is not None
    return result


def responses(body: bytes) -> list[Event]:
    return [event["response"] for event in read_events(body) if "response" in event]


# -- previous_response_id --------------------------------------------------------------------------


def test_the_server_reads_its_own_id_and_the_client_its_own_in_every_turn() -> None:
    request = ask(previous_response_id="resp_client")
    driven = exchange(request, turn(painting("a kite")), DONE, known=BEFORE)
    assert [asked["previous_response_id"] for asked in driven.asked] == ["resp_up2", "resp_up2"]
    assert {response["previous_response_id"] for response in responses(driven.body)} == {"resp_client"}
    assert outline(driven) == [
        "created resp_1",
        "in_progress",
        *painted("a kite"),
        *said("Done.", 1),
        "completed",
    ]


def test_an_id_that_was_never_seen_is_the_servers_to_judge() -> None:
    result = lowered(ask(previous_response_id="resp_x"))
    assert result.body["previous_response_id"] == "resp_x"
    assert result.echo["previous_response_id"] == "resp_x"


def test_without_the_tool_the_response_is_translated_all_the_same() -> None:
    request = {**ask(previous_response_id="resp_client", tools=[]), "instructions": "Be brief."}
    driven = exchange(request, DONE, known=BEFORE)
    assert driven.asked == [{**request, "previous_response_id": "resp_up2"}]
    assert {response["previous_response_id"] for response in responses(driven.body)} == {"resp_client"}
    assert outline(driven) == ["created resp_1", "in_progress", *said("Done."), "completed"]
    assert driven.response.upstream == ("resp_1",)


def test_without_the_tool_its_name_is_the_clients_to_use() -> None:
    own = {"type": "function", "name": "image_generation", "parameters": {}}
    request = ask(previous_response_id="resp_client", tools=[own])
    driven = drive(request, [turn(painting("a kite"))], known=BEFORE)
    assert driven.runs == []
    assert [item["type"] for item in driven.response.response["output"]] == ["function_call"]
    result = lowered(request, BEFORE)
    assert (result.name, result.offered, result.echo) == (
        None,
        False,
        {"previous_response_id": "resp_client"},
    )


def test_an_edit_begins_with_a_picture_of_the_response_that_is_continued() -> None:
    request = ask(previous_response_id="resp_client", input="Make it blue.")
    edit = painting({"prompt": "make it blue", "num_last_images_to_include": 1})
    driven = exchange(request, turn(edit), DONE, known=BEFORE)
    assert driven.runs[0].arguments["images"] == (Picture("ig_0"),)
    assert driven.asked[0]["input"] == "Make it blue."
    assert "num_last_images_to_include" in json.dumps(driven.asked[0]["tools"])


@pytest.mark.parametrize("tools", [[HOSTED], []])
def test_outputs_that_the_server_still_waits_for_are_sent_first(tools: list[Event]) -> None:
    known = Known(previous="resp_up", owed=(OWED,))
    request = ask(previous_response_id="resp_client", input=[OUTPUT], tools=tools)
    driven = exchange(request, DONE, known=known)
    assert driven.asked[0]["input"] == [OWED, OUTPUT]
    words = exchange(ask(previous_response_id="resp_client", tools=tools), DONE, known=known)
    assert words.asked[0]["input"] == [OWED, {"role": "user", "content": "Draw a kite."}]


def test_outputs_that_a_conversation_still_waits_for_are_sent_once() -> None:
    request = ask(conversation="conv_1", input=[OUTPUT])
    driven = exchange(request, turn(painting("a dog", 0, "fc_b")), DONE, known=Known(owed=(OWED,)))
    assert driven.asked[0]["input"] == [OWED, OUTPUT]
    assert [item["call_id"] for item in driven.asked[1]["input"]] == ["call_fc_b"]
    plain = lowered(ask(conversation="conv_1", input=[OUTPUT], tools=[]), Known(owed=(OWED,)))
    assert (plain.offered, plain.name, plain.body["input"]) == (False, None, [OWED, OUTPUT])


def test_what_one_response_owes_completes_the_state_of_its_last_turn() -> None:
    mixed = turn(painting("a kite"), oslo(1))
    first = exchange(ask(), mixed)
    assert first.response.upstream == ("resp_1",)
    known = Known(previous="resp_1", owed=first.response.owed)
    weather = {"type": "function_call_output", "call_id": "call_fc_o", "output": "rain"}
    second = exchange(ask(previous_response_id="resp_1", input=[weather]), DONE, known=known)
    answered = [item["call_id"] for item in second.asked[0]["input"]]
    assert answered == ["call_fc_a", "call_fc_o"]
    assert json.loads(second.asked[0]["input"][0]["output"])["image_id"] == "ig_1"


# -- the past in the same words --------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [{"prompt": "a kite"}, {"prompt": "make it blue", "num_last_images_to_include": 1}]
)
@pytest.mark.parametrize("replay", ["whole", "id", "reference"])
def test_the_next_request_shows_a_picture_in_the_words_of_the_turn_that_made_it(
    arguments: Event, replay: str
) -> None:
    user = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}
    first = exchange(ask(input=[user]), turn(painting(arguments)), DONE)
    (kept, *_), output = first.kept, responses(first.body)[-1]["output"]
    replays = {
        "whole": output[0],
        "id": {"type": "image_generation_call", "id": "ig_1"},
        "reference": {"type": "item_reference", "id": "ig_1"},
    }
    known = Known({"ig_1": kept.item}, frozenset({"ig_1"}))
    second = exchange(ask(input=[user, replays[replay]]), DONE, known=known)
    then, now = first.asked[1]["input"][1:], second.asked[0]["input"][1:]
    # The server named its call; which name it gave is not known any more.
    assert [{**item, "call_id": "call_fc_a"} for item in now] == then


# -- in the background -----------------------------------------------------------------------------


def test_a_response_in_the_background_is_asked_for_as_a_stream_and_nothing_else() -> None:
    request = {key: value for key, value in ask(background=True).items() if key != "stream"}
    result = lowered(request, background=True)
    assert result.stream
    assert result.background
    assert result.body["stream"] is True
    assert "background" not in result.body
    assert "background" not in result.later
    assert result.echo["background"] is True


def test_a_response_in_the_background_says_so_in_every_object() -> None:
    driven = exchange(
        ask(background=True),
        turn(painting("a kite")),
        turn(says("Done."), background=False),
        options=LoweringOptions(background=True),
    )
    assert {response["background"] for response in responses(driven.body)} == {True}
    assert [asked.get("background") for asked in driven.asked] == [None, None]


def test_a_continued_response_runs_in_the_background_without_the_tool_as_well() -> None:
    request = ask(background=True, previous_response_id="resp_client", tools=[])
    result = lowered(request, BEFORE, background=True)
    assert (result.background, result.body.get("background")) == (True, None)
    assert result.echo == {"background": True, "previous_response_id": "resp_client"}


def test_a_response_in_the_background_that_nobody_may_store_is_refused() -> None:
    with pytest.raises(RequestError) as raised:
        lowered(ask(background=True, store=False), background=True)
    assert (raised.value.message, raised.value.param) == (
        "A response in the background must be stored; leave out 'store' or 'background'.",
        "store",
    )


def test_only_true_means_the_background() -> None:
    for given in (False, None, "yes"):
        result = lowered(ask(background=given), background=True)
        assert (result.background, result.body["background"]) == (False, given)


# -- what may be kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(("store", "keep"), [(None, True), (True, True), (False, False)])
def test_a_response_is_kept_unless_the_client_forbids_it(store: bool | None, keep: bool) -> None:
    assert lowered(ask(store=store)).keep is keep
    assert lowered(ask()).keep
    driven = exchange(ask(store=store), turn(painting("a kite")), DONE)
    assert bool(driven.kept) is keep


@pytest.mark.parametrize("fetch", [True, False])
def test_the_tool_holds_the_pictures_that_it_can_edit(fetch: bool) -> None:
    url = {"type": "input_image", "image_url": "https://example.org/kite.png"}
    request = ask(input=[{"role": "user", "content": [url]}])
    tool = lowered(request, BEFORE, fetch=fetch, workspace=True).tool
    assert tool is not None
    assert tool.workspace
    assert tool.reach == (Picture("ig_0"), *((Picture(url=url["image_url"]),) if fetch else ()))
