"""What the client is told: numbers, ids, the server's own bytes, the response object."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from imagecall.events.response import NEUTRAL, ClientResponse, Slot
from imagecall.events.sse import payload_of
from transcript import Event, encode, event

HOSTED = {"type": "image_generation"}
ECHO = {"tools": [HOSTED], "tool_choice": "auto", "previous_response_id": None}
WHOLE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_790_000_000,
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "m",
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [HOSTED],
    "top_p": None,
    "usage": None,
}
UPSTREAM = {"id": "resp_1", "created_at": 1_790_000_000, "model": "m"}


def client(*, stream: bool = True, begin: bool = True, **defaults: Any) -> ClientResponse:
    """Make a response whose `created` and `in_progress` (numbers 0 and 1) are out."""
    ids: Counter[str] = Counter()

    def new_id(prefix: str) -> str:
        ids[prefix] += 1
        return f"{prefix}_{ids[prefix]}"

    made = ClientResponse(
        echo=ECHO, defaults=defaults, new_id=new_id, now=lambda: 1_800_000_000.7, stream=stream
    )
    if begin:
        made.begin(UPSTREAM)
    return made


def read(frame: bytes) -> Event:
    payload: Event = json.loads(payload_of(frame))
    assert frame == b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), payload_of(frame))
    return payload


def source(payload: Event) -> tuple[Event, bytes]:
    return payload, encode([payload])


def final(response: ClientResponse) -> Event:
    whole: Event = json.loads(response.final or b"")
    return whole


def ending(response: ClientResponse, status: str = "completed", **told: Any) -> Event:
    whole: Event = read(response.end(status, told, {}, "server_error"))["response"]
    return whole


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
    given = ["call_a", None, "", "call_a"]
    slots = [response.open({"type": "function_call", "call_id": call_id})[0] for call_id in given]
    assert [slot.call_id for slot in slots] == ["call_a", "call_1", "call_2", "call_3"]
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


# -- pictures --------------------------------------------------------------------------------------


def test_base64_is_moved_into_its_frames_and_into_the_final_object() -> None:
    response = client()
    slot, _ = response.open({"id": "ig_1", "type": "image_generation_call", "status": "in_progress"})
    partial = {"type": "response.image_generation_call.partial_image", "partial_image_index": 0}
    assert read(response.event(slot, partial, data=b"QUJD")) == event(
        "image_generation_call.partial_image",
        0,
        "ig_1",
        partial_image_index=0,
        partial_image_b64="QUJD",
        sequence_number=3,
    )
    item = {"id": "ig_1", "type": "image_generation_call", "status": "completed"}
    done = read(response.close(slot, item, data=b"QUJDRA=="))
    assert done == event("output_item.done", 0, item={**item, "result": "QUJDRA=="}, sequence_number=4)
    assert ending(response)["output"] == [{**item, "result": "QUJDRA=="}]


def message(response: ClientResponse, kind: str) -> Slot:
    return response.open({"type": kind})[0]


@pytest.mark.parametrize(
    ("kinds", "lacking"),
    [
        ([], False),
        (["message"], False),
        (["picture"], True),
        (["message", "picture"], True),
        (["picture", "reasoning"], True),
        (["picture", "web_search_call"], True),
        (["picture", "message"], False),
        (["picture", "message", "picture"], True),
        (["picture", "picture", "reasoning", "message"], False),
        (["picture", "function_call"], False),
        (["picture", "custom_tool_call"], False),
        (["picture", "mcp_approval_request", "reasoning"], False),
    ],
)
def test_something_must_follow_the_last_picture(kinds: list[str], *, lacking: bool) -> None:
    response = client()
    for kind in kinds:
        message(response, kind)
    assert response.lacks_message("picture") is lacking


def test_an_empty_message_has_all_events_of_a_message_but_deltas() -> None:
    response = client()
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    body = {"type": "message", "status": "in_progress", "role": "assistant", "content": []}
    done = {**body, "status": "completed", "content": [part]}
    place: Event = {"index": 0, "item_id": "msg_ig_1", "content_index": 0}
    expected = [
        event("output_item.added", 0, item={**body, "id": "msg_ig_1"}),
        event("content_part.added", **place, part=part),
        event("output_text.done", **place, text="", logprobs=[]),
        event("content_part.done", **place, part=part),
        event("output_item.done", 0, item={**done, "id": "msg_ig_1"}),
    ]
    numbered = [{**one, "sequence_number": number} for number, one in enumerate(expected, 2)]
    assert [read(frame) for frame in response.empty_message()] == numbered
    assert not response.lacks_message("message")


# -- how a response ends ---------------------------------------------------------------------------


def test_the_end_has_the_last_servers_fields_and_the_clients_own() -> None:
    response = client()
    told = {
        "id": "resp_2",
        "created_at": 5,
        "object": "thing",
        "status": "in_progress",
        "model": "m2",
        "temperature": None,
        "tools": [{"type": "function"}],
        "tool_choice": "required",
        "previous_response_id": "resp_1",
        "output": [{"type": "message"}],
        "completed_at": 9,
    }
    frame = response.end("completed", told, {"timings": {"ms": 1}}, "x")
    expected = {**WHOLE, "status": "completed", "model": "m2", "completed_at": 9}
    assert read(frame) == event("completed", response=expected, timings={"ms": 1}, sequence_number=2)
    assert final(response) == expected


def test_the_output_is_every_item_as_it_was_done_in_the_order_of_the_indexes() -> None:
    response = client()
    slots = [response.open({"type": kind})[0] for kind in ("a", "b", "c", "d")]
    for number in (2, 0, 3):
        response.close(slots[number], {"type": slots[number].type, "status": "completed"})
    assert [item["type"] for item in ending(response)["output"]] == ["a", "c", "d"]
    assert final(response)["output"][0] == {"type": "a", "status": "completed", "id": "item_ig_1"}


@pytest.mark.parametrize("nulled", [False, True])
def test_a_null_at_the_end_takes_nothing_back(nulled: bool) -> None:
    response = client(begin=False)
    response.begin({**UPSTREAM, "service_tier": "default"})
    nulls: Event = {"model": None, "service_tier": None, "new": None}
    ended = ending(response, **(nulls if nulled else {}))
    assert (ended["model"], ended["service_tier"]) == ("m", "default")
    assert ("new" in ended) is nulled


def test_usage_is_summed_over_the_turns_and_made_whole() -> None:
    response = client()
    assert ending(response)["usage"] is None
    response.spent({"input_tokens": 10, "output_tokens": 2})
    response.spent(None)
    response.spent({})
    response.spent("much")
    response.spent({"input_tokens": 20, "output_tokens": 3, "total_tokens": 23})
    assert ending(response)["usage"] == {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 35,
    }


def test_what_backends_spent_stands_beside_what_the_server_says_of_other_tools() -> None:
    response = client()
    response.tool_spent(None)
    response.tool_spent({})
    assert "tool_usage" not in ending(response)
    for _ in range(2):
        response.tool_spent({"input_tokens": 4, "output_tokens": 100, "total_tokens": 104})
    pictures = {
        "input_tokens": 8,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 200,
        "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "total_tokens": 208,
    }
    assert ending(response)["tool_usage"] == {"image_gen": pictures}
    assert ending(response, tool_usage=None)["tool_usage"] == {"image_gen": pictures}
    told = {"web_search": {"num_requests": 1}, "image_gen": {"input_tokens": 0}}
    assert ending(response, tool_usage=told)["tool_usage"] == {
        "web_search": {"num_requests": 1},
        "image_gen": pictures,
    }


def test_a_failure_is_told_in_neutral_words_flat_and_nested() -> None:
    response = client()
    error = {"type": "server_error", "code": "rate_limit_exceeded", "message": NEUTRAL, "param": None}
    assert read(response.error("rate_limit_exceeded")) == {
        "type": "error",
        "error": error,
        "code": "rate_limit_exceeded",
        "message": NEUTRAL,
        "param": None,
        "sequence_number": 2,
    }
    told = {"error": {"code": "x", "message": "at 10.0.0.7"}, "incomplete_details": {"reason": "x"}}
    ended = read(response.end("failed", told, {}, "rate_limit_exceeded"))["response"]
    assert ended["error"] == {"code": "rate_limit_exceeded", "message": NEUTRAL}
    assert ended["incomplete_details"] is None


def test_details_and_errors_fit_the_status() -> None:
    details = {"reason": "content_filter"}
    told = {"incomplete_details": details, "error": {"code": "x", "message": "y"}}
    ended = ending(client(), "incomplete", **told)
    assert (ended["incomplete_details"], ended["error"]) == (details, None)
    ended = ending(client(), "completed", **told)
    assert (ended["incomplete_details"], ended["error"]) == (None, None)
    assert ending(client(), "incomplete")["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_client_that_wants_no_stream_costs_no_frames_and_gets_the_same_object() -> None:
    streamed, silent = client(), client(stream=False, begin=False)
    assert silent.begin(UPSTREAM) == [b"", b""]
    for response in (streamed, silent):
        slot, _ = response.open({"type": "message"})
        response.close(slot, {"type": "message", "content": []})
        response.spent({"input_tokens": 1})
    assert silent.end("completed", {}, {}, "") == b""
    assert streamed.end("completed", {}, {}, "")
    assert silent.final == streamed.final
