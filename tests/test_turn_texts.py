"""One turn of a model server: the texts of its items, made whole from whatever is streamed of them."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.turn_events import Delta
from transcript import Event, event
from turn_reading import (
    CREATED,
    HELLO,
    Reading,
    begun,
    canonical,
    closed_body,
    deltas,
    text,
    told,
)

OPENED = event("output_item.added", 0, item=begun(HELLO))
DONE = event("output_item.done", 0, item=HELLO)
PART = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
PLACE: Event = {"item_id": "msg_a", "content_index": 0}
PART_ADDED = event("content_part.added", part=PART, **PLACE)
PART_DONE = event("content_part.done", part={**PART, "text": "Hello"}, **PLACE)
TEXT_DONE = event("output_text.done", text="Hello", logprobs=[], **PLACE)
TEXTS = [text("Hel", **PLACE), text("lo", **PLACE)]
FINAL = event("completed", response={"status": "completed", "output": [HELLO]})

WHOLE = [
    "0 + message",
    "0 content_part.added",
    "0 output_text.delta Hel",
    "0 output_text.delta lo",
    "0 output_text.done Hello",
    "0 content_part.done Hello",
    "0 - message completed Hello",
]
AT_ONCE = [*WHOLE[:2], "0 output_text.delta Hello", *WHOLE[4:]]


# -- what servers leave out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payloads",
    [
        [OPENED, PART_ADDED, *TEXTS, TEXT_DONE, PART_DONE, DONE],
        [OPENED, *TEXTS, TEXT_DONE, PART_DONE, DONE],
        [OPENED, PART_ADDED, *TEXTS, PART_DONE, DONE],
        [OPENED, PART_ADDED, *TEXTS, TEXT_DONE, DONE],
        [OPENED, PART_ADDED, *TEXTS, DONE],
        [OPENED, *TEXTS],
        [*TEXTS],
        [*TEXTS, DONE],
        [OPENED, *TEXTS, TEXT_DONE],
        [OPENED, *TEXTS, PART_DONE],
        [OPENED, *TEXTS, FINAL],
    ],
)
def test_a_streamed_text_is_framed_by_all_its_events(payloads: list[Event]) -> None:
    assert told(*payloads) == WHOLE


@pytest.mark.parametrize(
    "payloads",
    [
        [OPENED, PART_ADDED, TEXT_DONE, PART_DONE, DONE],
        [OPENED, PART_ADDED, PART_DONE, DONE],
        [OPENED, TEXT_DONE],
        [OPENED, PART_DONE],
        [OPENED, DONE],
        [DONE],
        [OPENED, FINAL],
        [FINAL],
        [event("output_item.added", 0, item=HELLO)],
        [event("output_item.added", 0, item=HELLO), *TEXTS[:0], TEXT_DONE, DONE],
        [OPENED, event("content_part.added", part={**PART, "text": "Hello"}, **PLACE)],
    ],
)
def test_a_text_that_comes_all_at_once_is_streamed_in_one_piece(payloads: list[Event]) -> None:
    assert told(*payloads) == AT_ONCE


@pytest.mark.parametrize(
    "payloads",
    [
        [OPENED, TEXTS[0], TEXT_DONE, DONE],
        [OPENED, TEXTS[0], PART_DONE, DONE],
        [OPENED, TEXTS[0], DONE],
        [OPENED, TEXTS[0], FINAL],
    ],
)
def test_what_was_not_streamed_of_a_text_is_caught_up_with(payloads: list[Event]) -> None:
    assert told(*payloads) == WHOLE


def test_texts_without_an_index_belong_to_the_open_part() -> None:
    bare = [{key: value for key, value in one.items() if key != "content_index"} for one in TEXTS]
    assert told(OPENED, *bare, DONE) == WHOLE
    assert [one["content_index"] for one in deltas(OPENED, *bare, DONE, name="output_text.delta")] == [0, 0]


@pytest.mark.parametrize("index", [None, -1, True, "0", [0]])
def test_an_index_that_is_none_is_put_right(index: object) -> None:
    payloads = [{**one, "content_index": index} for one in (PART_ADDED, *TEXTS, TEXT_DONE, PART_DONE)]
    assert told(OPENED, *payloads, DONE) == WHOLE
    for name in ("content_part.added", "output_text.delta", "output_text.done", "content_part.done"):
        assert {one["content_index"] for one in deltas(OPENED, *payloads, name=name)} == {0}


def test_a_new_part_without_an_index_follows_the_closed_one() -> None:
    bare: Event = {"item_id": "msg_a"}
    part = event("content_part.added", part=PART, **bare)
    lines = told(OPENED, part, text("a", **bare), part, text("b", **bare), DONE)
    assert lines[-1] == "0 - message completed a|b"
    again = told(OPENED, text("a", **bare), event("content_part.done", part=PART, **bare), text("b", **bare))
    assert again[-1] == "0 - message completed a|b"
    assert [line for line in again if "part" in line] == [
        "0 content_part.added",
        "0 content_part.done a",
        "0 content_part.added",
        "0 content_part.done b",
    ]


def test_made_up_events_have_all_keys_that_the_sdks_demand() -> None:
    assert deltas(OPENED, TEXTS[0], DONE, name="content_part.added") == [
        {"type": "response.content_part.added", "content_index": 0, "part": PART}
    ]
    assert deltas(OPENED, TEXTS[0], DONE, name="output_text.delta")[1] == {
        "type": "response.output_text.delta",
        "content_index": 0,
        "delta": "lo",
        "logprobs": [],
    }
    assert deltas(OPENED, TEXTS[0], DONE, name="output_text.done") == [
        {"type": "response.output_text.done", "content_index": 0, "text": "Hello", "logprobs": []}
    ]
    assert deltas(OPENED, TEXTS[0], DONE, name="content_part.done")[0]["part"] == {**PART, "text": "Hello"}
    bare = event("output_text.done", text="Hello", **PLACE)
    assert deltas(OPENED, bare, name="output_text.done")[0]["logprobs"] == []


def test_a_message_gets_its_role_and_its_status_and_its_content() -> None:
    bare = {"id": "msg_a", "type": "message"}
    body = closed_body(
        event("output_item.added", 0, item=bare), *TEXTS, event("output_item.done", 0, item=bare)
    )
    assert body == {
        "id": "msg_a",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{**PART, "text": "Hello"}],
    }


# -- what servers contradict -----------------------------------------------------------------------


@pytest.mark.parametrize("word", ["Hel", "Goodbye", "", None, 7, "HELLO and more"])
def test_what_was_streamed_counts_more_than_what_is_told_in_the_end(word: Any) -> None:
    part = {**PART, "text": word}
    item = {**HELLO, "content": [part]}
    ends = [
        event("output_text.done", text=word, **PLACE),
        event("content_part.done", part=part, **PLACE),
        event("output_item.done", 0, item=item),
    ]
    assert told(OPENED, *TEXTS, *ends) == WHOLE
    assert told(OPENED, *TEXTS, ends[2]) == WHOLE


@pytest.mark.parametrize("content", [None, [], "Hello", ["junk"]])
def test_a_final_item_without_the_text_gets_it(content: object) -> None:
    item = {**HELLO, "content": content}
    body = closed_body(OPENED, *TEXTS, event("output_item.done", 0, item=item))
    assert body["content"][-1] == {**PART, "text": "Hello"}


@pytest.mark.parametrize("annotations", [{}, {"annotations": None}])
def test_a_final_text_has_a_list_of_annotations(annotations: Event) -> None:
    item = {**HELLO, "content": [{"type": "output_text", "text": "Hello", **annotations}]}
    body = closed_body(OPENED, *TEXTS, event("output_item.done", 0, item=item))
    assert body["content"] == [{"type": "output_text", "text": "Hello", "annotations": []}]
    assert closed_body(OPENED, *TEXTS, DONE) == HELLO


def test_a_text_that_has_ended_gets_nothing_more() -> None:
    early = event("output_text.done", text="Hel", **PLACE)
    late = [early, TEXTS[1], PART_DONE, PART_DONE, early, PART_ADDED, TEXTS[0], DONE]
    assert told(OPENED, TEXTS[0], *late) == [
        "0 + message",
        "0 content_part.added",
        "0 output_text.delta Hel",
        "0 output_text.done Hel",
        "0 content_part.done Hel",
        "0 - message completed Hel",
    ]


def test_a_delta_that_is_no_text_and_a_part_that_is_none_are_dropped() -> None:
    reading = Reading()
    reading.take(CREATED, OPENED)
    assert reading.take(text(None, **PLACE), text(7, **PLACE)) == ["0 content_part.added"]
    for name in ("content_part.added", "content_part.done", "reasoning_summary_part.added"):
        assert reading.take(event(name, part=None, **PLACE), event(name, **PLACE)) == []
        assert reading.turn.notes[-1] == f"dropped a response.{name} without a part"


@pytest.mark.parametrize("given", [None, 7])
def test_a_part_is_announced_once_and_without_text(given: object) -> None:
    odd = event("content_part.added", part={**PART, "text": given}, **PLACE)
    assert told(OPENED, odd, PART_ADDED, *TEXTS, DONE) == WHOLE
    assert deltas(OPENED, odd, name="content_part.added")[0]["part"] == PART


def test_a_frame_that_contradicts_the_stream_is_not_handed_on() -> None:
    reading = Reading()
    reading.take(CREATED, OPENED, TEXTS[0])
    wrong = [
        event("output_text.done", text="Goodbye", logprobs=[], **PLACE),
        event("content_part.done", part={**PART, "text": "Goodbye"}, **PLACE),
    ]
    reading.take(*map(canonical, wrong))
    ends = [one for one in reading.events[-2:] if isinstance(one, Delta)]
    assert [(one.payload.get("text"), one.raw) for one in ends] == [("Hel", None), (None, None)]
    assert ends[1].payload["part"]["text"] == "Hel"


def test_a_frame_without_what_sdks_demand_is_not_handed_on() -> None:
    reading = Reading()
    bare = event("output_text.done", text="Hel", **PLACE)
    reading.take(CREATED, OPENED, TEXTS[0], canonical(bare))
    end = reading.events[-1]
    assert isinstance(end, Delta)
    assert (end.payload, end.raw) == ({**bare, "logprobs": []}, None)
