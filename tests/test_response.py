"""What the client is told: how its response begins, its numbers, its ids, the server's own bytes."""

from __future__ import annotations

import pytest
from client_response import UPSTREAM, WHOLE, client, ending, read, source
from transcript import Event, encode, event

# -- how a response begins -------------------------------------------------------------------------


def test_a_response_begins_with_two_events_of_the_same_whole_object() -> None:
    response = client(begin=False)
    before = response.started
    frames = response.begin(UPSTREAM)
    assert (before, response.started) == (False, True)
    assert [read(frame) for frame in frames] == [
        {"type": "response.created", "response": WHOLE, "sequence_number": 0},
        {"type": "response.in_progress", "response": WHOLE, "sequence_number": 1},
    ]


def test_an_empty_object_is_filled_from_the_request() -> None:
    created, _ = client(begin=False, model="asked", temperature=0.5).begin({})
    assert read(created)["response"] == {
        **WHOLE,
        "id": "resp_1",
        "created_at": 1_800_000_000,
        "model": "asked",
        "temperature": 0.5,
    }


def test_what_the_server_says_counts_more_than_the_request_but_null_says_nothing() -> None:
    told = {"model": "real", "temperature": None, "metadata": None, "extra": None, "truncation": "auto"}
    created, _ = client(begin=False, model="asked", temperature=0.5).begin({**UPSTREAM, **told})
    response = read(created)["response"]
    assert {key: response[key] for key in told} == {
        "model": "real",
        "temperature": 0.5,
        "metadata": {},
        "extra": None,
        "truncation": "auto",
    }


@pytest.mark.parametrize("field", ["id", "created_at"])
@pytest.mark.parametrize("value", ["", None, [], {}])
def test_an_id_or_time_that_is_none_is_made_up(field: str, value: object) -> None:
    created, _ = client(begin=False).begin({**UPSTREAM, field: value})
    made_up = {"id": "resp_1", "created_at": 1_800_000_000}
    assert read(created)["response"][field] == made_up[field]


def test_a_response_whose_first_word_is_its_last_begins_like_any_other() -> None:
    told = {
        "status": "completed",
        "output": [{"type": "message"}],
        "usage": {"input_tokens": 1},
        "completed_at": 1_790_000_001,
        "error": {"code": "x"},
        "incomplete_details": {"reason": "y"},
        "tools": [],
        "tool_choice": "required",
        "previous_response_id": "resp_0",
    }
    created, _ = client(begin=False).begin({**UPSTREAM, **told})
    assert read(created)["response"] == WHOLE


# -- numbers and ids -------------------------------------------------------------------------------


def test_items_are_numbered_from_zero_and_events_all_in_one() -> None:
    response = client()
    first, opened = response.open({"type": "message", "id": "msg_a"})
    assert read(opened) == event(
        "output_item.added", 0, item={"type": "message", "id": "msg_a"}, sequence_number=2
    )
    second, opened = response.open({"type": "reasoning", "id": "rs_a"})
    assert (read(opened)["output_index"], read(opened)["sequence_number"]) == (1, 3)
    told = read(response.event(first, {"type": "response.output_text.delta", "delta": "x"}))
    assert told == event("output_text.delta", 0, "msg_a", delta="x", sequence_number=4)
    closed = read(response.close(second, {"type": "reasoning", "id": "rs_a"}))
    assert closed == event("output_item.done", 1, item={"type": "reasoning", "id": "rs_a"}, sequence_number=5)


@pytest.mark.parametrize(
    ("kind", "made_up"),
    [
        ("message", "msg_ig_1"),
        ("reasoning", "rs_ig_1"),
        ("function_call", "fc_ig_1"),
        ("web_search_call", "item_ig_1"),
    ],
)
@pytest.mark.parametrize("given", [None, "", 7])
def test_an_item_without_an_id_gets_one_and_keeps_it(kind: str, made_up: str, given: object) -> None:
    response = client()
    slot, opened = response.open({"type": kind, "id": given})
    told = [
        read(opened)["item"]["id"],
        read(response.event(slot, {"type": "response.output_text.delta", "item_id": "x"}))["item_id"],
        read(response.close(slot, {"type": kind, "id": "another"}))["item"]["id"],
        ending(response)["output"][0]["id"],
    ]
    assert told == [made_up] * 4


def test_an_id_that_was_used_before_is_replaced() -> None:
    response = client()
    slots = [response.open({"type": "message", "id": "msg_a"})[0] for _ in range(3)]
    assert [slot.id for slot in slots] == ["msg_a", "msg_ig_1", "msg_ig_2"]


def test_calls_keep_their_call_ids_and_each_is_told_from_the_others() -> None:
    response = client()
    given = ["call_a", None, "", "call_a", 7]
    slots = [response.open({"type": "function_call", "call_id": call_id})[0] for call_id in given]
    assert [slot.call_id for slot in slots] == ["call_a", "call_1", "call_2", "call_3", "call_4"]
    output, _ = response.open({"type": "function_call_output", "call_id": "call_a"})
    assert output.call_id == "call_a"
    message, _ = response.open({"type": "message"})
    assert message.call_id is None
    done = read(response.close(slots[1], {"type": "function_call", "call_id": "later", "name": "f"}))
    assert done["item"] == {"type": "function_call", "call_id": "call_1", "name": "f", "id": "fc_ig_2"}


# -- the server's own bytes ------------------------------------------------------------------------

ITEM = {"type": "function_call", "id": "fc_a", "call_id": "call_a", "name": "f", "arguments": ""}
ADDED = event("output_item.added", 0, item=ITEM, sequence_number=2)
DELTA = event("function_call_arguments.delta", 0, "fc_a", delta="{}", sequence_number=3)
DONE = event("output_item.done", 0, item=ITEM, sequence_number=4)


def test_frames_that_say_what_the_client_must_read_are_handed_on_as_the_same_objects() -> None:
    response = client()
    added, delta, done = source({**ADDED}), source({**DELTA}), source({**DONE})
    slot, opened = response.open(ITEM, added)
    assert opened is added[1]
    assert response.event(slot, *delta) is delta[1]
    assert response.close(slot, ITEM, done) is done[1]
    loose = event("audio.delta", delta="x", sequence_number=5)
    raw = encode([loose])
    assert response.loose(loose, raw) is raw
    assert ending(response)["output"] == [ITEM]


@pytest.mark.parametrize("wrong", [{"sequence_number": 9}, {"sequence_number": None}, {"output_index": 1}])
def test_frames_with_other_numbers_are_numbered_anew(wrong: Event) -> None:
    response = client()
    added, delta, done = ({**one, **wrong} for one in (ADDED, DELTA, DONE))
    slot, opened = response.open(ITEM, source(added))
    told = [opened, response.event(slot, *source(delta)), response.close(slot, ITEM, source(done))]
    assert [read(frame) for frame in told] == [ADDED, DELTA, DONE]


def test_frames_with_other_ids_are_told_with_the_first_ones() -> None:
    response = client()
    slot, _ = response.open(ITEM)
    assert read(response.event(slot, *source({**DELTA, "item_id": "fc_b"}))) == DELTA
    for changed in ({**ITEM, "id": "fc_b"}, {**ITEM, "call_id": "call_b"}):
        done = read(response.close(slot, changed, source({**DONE, "item": changed})))
        assert done["item"] == ITEM


def test_a_loose_event_with_another_number_is_numbered_anew() -> None:
    payload = event("audio.delta", delta="x", sequence_number=7)
    assert read(client().loose(payload, encode([payload]))) == {**payload, "sequence_number": 2}
    assert read(client().loose({"type": "response.audio.done"}, None))["sequence_number"] == 2
