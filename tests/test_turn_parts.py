"""One turn of a model server: parts of all kinds, texts, refusals, reasoning, and what is unknown."""

from __future__ import annotations

import pytest
from transcript import Event, event
from turn_reading import (
    HELLO,
    closed,
    closed_body,
    deltas,
    final,
    message_item,
    opened,
    text,
    told,
)

PART = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
PLACE: Event = {"item_id": "msg_a", "content_index": 0}
TEXTS = [text("Hel", **PLACE), text("lo", **PLACE)]


def test_parts_have_an_index_each() -> None:
    item = message_item("msg_a", "Hello", "Bye")
    lines = told(opened(HELLO), *TEXTS, text("Bye", item_id="msg_a", content_index=1), closed(item))
    assert lines == [
        "0 + message",
        "0 content_part.added",
        "0 output_text.delta Hel",
        "0 output_text.delta lo",
        "0 content_part.added",
        "0 output_text.delta Bye",
        "0 output_text.done Hello",
        "0 content_part.done Hello",
        "0 output_text.done Bye",
        "0 content_part.done Bye",
        "0 - message completed Hello|Bye",
    ]


def test_a_refusal_at_the_index_of_a_text_is_a_part_of_its_own() -> None:
    refusal = event("refusal.delta", delta="No.", **PLACE)
    payloads = [opened(HELLO), *TEXTS, refusal, event("refusal.done", refusal="No.", **PLACE)]
    assert told(*payloads)[4:8] == [
        "0 content_part.added",
        "0 refusal.delta No.",
        "0 refusal.done No.",
        "0 output_text.done Hello",
    ]
    assert deltas(*payloads, name="refusal.done")[0]["content_index"] == 1
    assert deltas(*payloads, name="content_part.added")[1]["part"] == {"type": "refusal", "refusal": ""}


def test_reasoning_may_have_a_summary_and_a_text() -> None:
    item: Event = {"id": "rs", "type": "reasoning", "summary": [], "status": None}
    payloads = [
        event("output_item.added", 0, item=item),
        event("reasoning_summary_text.delta", item_id="rs", delta="Short."),
        event("reasoning_text.delta", item_id="rs", delta="Long", content_index=0),
        event(
            "content_part.done",
            item_id="rs",
            content_index=0,
            part={"type": "reasoning_text", "text": "Long."},
        ),
    ]
    lines = told(*payloads, closed(item))
    assert lines == [
        "0 + reasoning",
        "0 reasoning_summary_part.added",
        "0 reasoning_summary_text.delta Short.",
        "0 content_part.added",
        "0 reasoning_text.delta Long",
        "0 reasoning_text.delta .",
        "0 reasoning_text.done Long.",
        "0 content_part.done Long.",
        "0 reasoning_summary_text.done Short.",
        "0 reasoning_summary_part.done Short.",
        "0 - reasoning completed Long.|Short.",
    ]
    body = closed_body(*payloads, closed(item))
    assert body == {
        "id": "rs",
        "type": "reasoning",
        "status": "completed",
        "content": [{"type": "reasoning_text", "text": "Long."}],
        "summary": [{"type": "summary_text", "text": "Short."}],
    }


def test_reasoning_keeps_what_was_not_streamed_of_it() -> None:
    item = {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    assert told(closed(item)) == ["0 + reasoning", "0 - reasoning Hm."]


def test_reasoning_that_was_not_streamed_is_not_streamed_at_its_end() -> None:
    content = [{"type": "reasoning_text", "text": "Hm."}]
    assert told(closed({"id": "rs", "type": "reasoning", "summary": [], "content": content})) == [
        "0 + reasoning",
        "0 - reasoning Hm.",
    ]


@pytest.mark.parametrize("kind", [[], {}, None, 7])
def test_a_part_whose_type_is_none_is_no_part(kind: object) -> None:
    part = event("content_part.added", part={"type": kind}, **PLACE)
    item = {**HELLO, "content": [{"type": kind}]}
    assert told(opened(HELLO), part, closed(item))[1:] == ["0 - message completed"]
    assert closed_body(opened(HELLO), part, closed(item))["content"] == []


def test_parts_of_unknown_types_and_annotations_pass_as_they_are() -> None:
    strange = {"type": "output_audio", "data": "x"}
    note = event("output_text.annotation.added", annotation={"type": "url_citation"}, **PLACE)
    payloads = [
        opened(HELLO),
        *TEXTS,
        note,
        event("content_part.added", item_id="msg_a", content_index=1, part=strange),
        event("content_part.done", item_id="msg_a", content_index=1, part=strange),
    ]
    item = {**HELLO, "content": [*HELLO["content"], strange]}
    lines = told(*payloads, closed(item))
    assert lines[4:7] == ["0 output_text.annotation.added", "0 content_part.added", "0 content_part.done"]
    assert closed_body(*payloads, closed(item))["content"] == item["content"]


@pytest.mark.parametrize("blank", [[], [PART], [{**PART, "text": " \n"}], None, ["junk"]])
def test_a_blank_message_that_stands_only_in_the_final_output_is_not_told(blank: object) -> None:
    item = {**HELLO, "content": blank}
    assert told(end=final(item)) == []


def test_a_refusal_that_stands_only_in_the_final_output_is_told() -> None:
    item = {**HELLO, "content": [{"type": "refusal", "refusal": "No."}]}
    lines = told(end=final(item))
    assert lines[2:] == [
        "0 refusal.delta No.",
        "0 refusal.done No.",
        "0 content_part.done No.",
        "0 - message completed No.",
    ]


@pytest.mark.parametrize(
    "content",
    [
        {"content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"summary": [{"type": "summary_text", "text": "Hm."}]},
        {"encrypted_content": "QUJD"},
    ],
)
def test_reasoning_that_stands_only_in_the_final_output_is_told_if_it_says_anything(content: Event) -> None:
    item = {"id": "rs", "type": "reasoning", "summary": [], **content}
    assert told(end=final(item))[0] == "0 + reasoning"
    assert told(end=final({**item, **dict.fromkeys(content)})) == []
