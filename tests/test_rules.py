"""The checks check: valid streams pass, and a breach of the framing is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from item_rules import EVENT_TYPES
from openai.types.responses import ResponseStreamEvent
from rules import check_response, read_events
from sample_stream import (
    CALL,
    IMAGE,
    MESSAGE,
    TOOLS,
    USAGE,
    check,
    done_item,
    drop,
    fail_image,
    get,
    response,
    stream,
    twice,
    valid,
)
from transcript import Event, added, encode, event, picture


def test_the_known_event_types_are_those_of_the_sdk_without_queued() -> None:
    union, *_ = get_args(ResponseStreamEvent)
    published = {get_args(model.model_fields["type"].annotation)[0] for model in get_args(union)}
    assert published - {"response.queued"} == EVENT_TYPES


def test_a_valid_stream_breaks_no_rule() -> None:
    body = encode(valid())
    assert check(body) == []


def test_a_failed_picture_is_valid_with_an_empty_result_and_no_completed_event() -> None:
    events = valid()
    fail_image(events)
    assert check(encode(events)) == []


def test_comments_and_one_sentinel_at_the_end_are_valid() -> None:
    frames = encode(valid()).split(b"\n\n")
    frames[3:3] = [b": keepalive"]
    assert check(b"\n\n".join([*frames[:-1], b"data: [DONE]", b""])) == []


def test_pictures_of_the_model_server_need_only_say_their_format() -> None:
    events = valid()
    for item in (get(events, "output_item.done", 1)["item"], events[-1]["response"]["output"][1]):
        for key in ("revised_prompt", "action", "background", "quality", "size"):
            item.pop(key, None)
    assert check(encode(events), native_images=True) == []


def test_a_refusal_and_a_reasoning_text_are_parts_like_any_other() -> None:
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "a"}],
    }
    refusing = {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}
    first: Event = {"index": 0, "item_id": "rs_1", "content_index": 0}
    second: Event = {"index": 1, "item_id": "msg_1", "content_index": 0}
    events = stream(
        [
            added(0, thought, summary=[]),
            event("content_part.added", **first, part={"type": "reasoning_text", "text": ""}),
            event("reasoning_text.delta", **first, delta="a"),
            event("reasoning_text.done", **first, text="a"),
            event("content_part.done", **first, part={"type": "reasoning_text", "text": "a"}),
            event("output_item.done", 0, item=thought),
        ],
        [
            added(1, refusing, content=[]),
            event("content_part.added", **second, part={"type": "refusal", "refusal": ""}),
            event("refusal.delta", **second, delta="No."),
            event("refusal.done", **second, refusal="No."),
            event("content_part.done", **second, part={"type": "refusal", "refusal": "No."}),
            event("output_item.done", 1, item=refusing),
        ],
    )
    assert check(encode(events)) == []


def test_a_call_announced_with_all_its_arguments_needs_no_delta() -> None:
    events = valid()
    get(events, "output_item.added", 3)["item"]["arguments"] = CALL["arguments"]
    drop(events, "function_call_arguments.delta")
    drop(events, "function_call_arguments.delta")
    assert check(encode(events)) == []


def test_items_of_other_hosted_tools_pass() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    events = stream(
        [
            added(0, search),
            event("web_search_call.searching", 0, "ws_1"),
            event("web_search_call.completed", 0, "ws_1"),
            event("output_item.done", 0, item=search),
        ]
    )
    assert check(encode(events)) == []


FRAMES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an id field": (lambda b: b.replace(b"event: ", b"id: 1\nevent: ", 1), "has the fields"),
    "a retry field": (lambda b: b"retry: 1\n\n" + b, "has the fields"),
    "data alone": (lambda b: b.replace(b"event: response.created\n", b"", 1), "has the fields"),
    "no data": (lambda b: b"event: ping\n\n" + b, "has the fields"),
    "no space after the colon": (lambda b: b.replace(b"event: ", b"event:", 1), "has the fields"),
    "CRLF": (lambda b: b.replace(b"\n", b"\r\n"), "does not end with a whole frame"),
    "a byte order mark": (lambda b: b"\xef\xbb\xbf" + b, "has the fields"),
    "another name": (lambda b: b.replace(b"event: response.created", b"event: ping", 1), "of another type"),
    "broken JSON": (lambda b: b.replace(b'"resp_1"', b'"resp_1', 1), "is not JSON"),
    "broken UTF-8": (lambda b: b.replace(b"resp_1", b"resp_\xff", 1), "is not JSON"),
    "an array": (lambda b: b"event: a\ndata: []\n\n" + b, "of another type"),
    "a key twice": (lambda b: b.replace(b'"id"', b'"id":1,"id"', 1), "a key stands twice"),
    "a cut frame": (lambda b: b[:-1], "does not end with a whole frame"),
    "an unknown type": (lambda b: b'event: ping\ndata: {"type":"ping"}\n\n' + b, "No SDK knows"),
    "something behind [DONE]": (lambda b: b"data: [DONE]\n\n" + b, "Something follows [DONE]"),
    "nothing": (lambda b: b"", "There is no event"),
}


@pytest.mark.parametrize("breach", FRAMES)
def test_a_breach_of_the_framing_is_named(breach: str) -> None:
    mutate, sentence = FRAMES[breach]
    body = mutate(encode(valid()))
    assert any(sentence in found for found in check(body))
    with pytest.raises((ValueError, IndexError)):
        read_events(body)[0]


def test_a_client_that_wants_json_text_gets_no_message_made_up() -> None:
    body = encode(stream(picture(0, IMAGE)))
    assert any("no message follows" in found for found in check(body))
    assert check(body, json_text=True) == []


def test_a_clients_function_of_our_name_is_no_leak() -> None:
    events = valid()
    done_item(events, 3, name="image_generation")
    get(events, "output_item.added", 3)["item"]["name"] = "image_generation"
    assert any("the internal call leaks" in found for found in check(encode(events)))
    assert check(encode(events), client_functions={"image_generation"}) == []
    assert check(encode(events), internal_names=()) == []


def test_previews_are_not_counted_for_a_caller_who_does_not_know_the_tools() -> None:
    events = valid()
    twice(events, "image_generation_call.partial_image")
    get(events, "image_generation_call.partial_image", 1)["partial_image_index"] = 1
    assert check(encode(events), tools=None) == []


def test_a_response_for_those_who_want_no_stream_keeps_the_same_rules() -> None:
    final = response("completed", output=[IMAGE, MESSAGE], usage=USAGE)
    assert check_response(final, tools=TOOLS, tool_choice="auto") == []
    assert check_response({**final, "usage": {}}) == ["usage is not complete: {}."]
    assert check_response({**final, "status": "queued"}) == ["The status of a finished response is 'queued'."]
    assert check_response([]) == ["The response is not a JSON object."]
