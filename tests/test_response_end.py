"""What the client is told: its pictures, and the response object that stands at the end."""

from __future__ import annotations

import pytest
from client_response import UPSTREAM, WHOLE, client, ending, final, read
from imagecall.events.response import ClientResponse, Slot
from imagecall.events.response_object import NEUTRAL
from imagecall.events.turn_events import TurnEnded
from transcript import Event, event

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
    frame = response.end("completed", TurnEnded("completed", told, {"timings": {"ms": 1}}))
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
    assert read(response.error(TurnEnded("failed", {}, code="rate_limit_exceeded"))) == {
        "type": "error",
        "error": error,
        "code": "rate_limit_exceeded",
        "message": NEUTRAL,
        "param": None,
        "sequence_number": 2,
    }
    told = {"error": {"code": "x", "message": "at 10.0.0.7"}, "incomplete_details": {"reason": "x"}}
    ended = read(response.end("failed", TurnEnded("failed", told, code="rate_limit_exceeded")))["response"]
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
    assert silent.end("completed", TurnEnded("completed", {})) == b""
    assert streamed.end("completed", TurnEnded("completed", {}))
    assert silent.final == streamed.final
