"""One turn of a model server: which item each event speaks of, whatever the server calls it."""

from __future__ import annotations

import json

import pytest
from imagecall.events.sse import ServerSentEvent
from imagecall.events.turn_events import Closed, Delta, Opened
from transcript import Event, event, message
from turn_reading import (
    COMPLETED,
    CREATED,
    HELLO,
    OSLO,
    ROME,
    SAID,
    Reading,
    arguments,
    canonical,
    closed,
    opened,
    read,
    text,
)


def two_calls(first: Event, second: Event, *deltas: Event) -> list[str]:
    """Open two calls side by side, stream their arguments, and let the terminal event close them."""
    lines = read(CREATED, opened(OSLO), opened(ROME), *deltas, first, second, COMPLETED)
    return [line for line in lines if " - " in line]


# -- well-behaved servers --------------------------------------------------------------------------


def test_a_well_behaved_server_is_believed_event_by_event_and_frame_by_frame() -> None:
    reading = Reading()
    frames = [canonical(one) for one in [CREATED, *message(0, "msg_a", "Hel", "lo"), COMPLETED]]
    assert reading.take(*frames) == [
        "started resp_1",
        "0 + message",
        "0 content_part.added",
        "0 output_text.delta Hel",
        "0 output_text.delta lo",
        "0 output_text.done Hello",
        "0 content_part.done Hello",
        "0 - message completed Hello",
        "ended completed",
    ]
    for told, frame in zip(reading.events[1:-1], frames[1:-1], strict=True):
        match told:
            case Delta():
                assert told.raw is frame.raw
            case Opened() | Closed():
                assert told.source is not None
                assert told.source[1] is frame.raw


def test_the_type_in_the_json_counts_and_not_the_name_of_the_event() -> None:
    reading = Reading()
    data = json.dumps(text("Hello", item_id="msg_a", content_index=0)).encode()
    raw = b"event: response.completed\ndata: %b\n\n" % data
    reading.take(CREATED, opened(HELLO))
    assert reading.take(ServerSentEvent(b"response.completed", data, raw))[-1] == "0 output_text.delta Hello"
    assert [one.raw for one in reading.events if isinstance(one, Delta)] == [None, None]


def test_a_payload_without_a_type_is_named_by_its_event_and_written_anew() -> None:
    reading = Reading()
    reading.take(CREATED, opened(HELLO))
    data = b'{"delta":"Hello","content_index":0,"item_id":"msg_a"}'
    raw = b"event: response.output_text.delta\ndata: %b\n\n" % data
    assert reading.take(ServerSentEvent(b"response.output_text.delta", data, raw)) == SAID[:2]
    told = reading.events[-1]
    assert isinstance(told, Delta)
    assert (told.payload["type"], told.raw) == ("response.output_text.delta", None)


# -- events about an item --------------------------------------------------------------------------


def test_a_known_id_counts_more_than_an_index_that_collides() -> None:
    deltas = [
        arguments('{"city":', item_id="fc_r", output_index=0),
        arguments('{"city":"Oslo"}', item_id="fc_o", output_index=0),
        arguments('"Rome"}', item_id="fc_r", output_index=0),
    ]
    assert two_calls(COMPLETED, COMPLETED, *deltas) == [
        '0 - function_call completed {"city":"Oslo"}',
        '1 - function_call completed {"city":"Rome"}',
    ]


def test_an_id_of_another_kind_of_item_says_nothing() -> None:
    lines = read(CREATED, opened(OSLO), opened(HELLO), text("Hello", item_id="fc_o"), COMPLETED)
    assert "1 output_text.delta Hello" in lines


@pytest.mark.parametrize("rotating", [False, True])
def test_without_known_ids_the_index_decides(rotating: bool) -> None:
    def named(number: int) -> dict[str, object]:
        return {"item_id": f"x{number}"} if rotating else {}

    lines = read(
        CREATED,
        opened({**OSLO, "id": "a1" if rotating else None}, 0),
        opened({**ROME, "id": "a2" if rotating else None}, 1),
        arguments('{"city":"Oslo"}', output_index=0, **named(1)),
        arguments('{"city":"Rome"}', output_index=1, **named(2)),
        closed({**OSLO, "id": "b1" if rotating else None}, 0),
        closed({**ROME, "id": "b2" if rotating else None}, 1),
        COMPLETED,
    )
    assert [line for line in lines if " - " in line] == [
        '0 - function_call completed {"city":"Oslo"}',
        '1 - function_call completed {"city":"Rome"}',
    ]


@pytest.mark.parametrize("key", ["call_id", "item_id"])
def test_without_ids_and_indexes_the_call_id_decides(key: str) -> None:
    deltas = [arguments('{"city":"Oslo"}', **{key: "call_fc_o"}), arguments("{}", **{key: "call_fc_r"})]
    assert two_calls(COMPLETED, COMPLETED, *deltas) == [
        '0 - function_call completed {"city":"Oslo"}',
        "1 - function_call completed {}",
    ]


def test_without_any_mark_the_last_opened_item_is_meant() -> None:
    assert two_calls(COMPLETED, COMPLETED, arguments('{"city":"Rome"}'))[1] == (
        '1 - function_call completed {"city":"Rome"}'
    )
    lines = read(
        CREATED,
        opened(HELLO),
        text("Hello", item_id="other", output_index=7),
        closed(HELLO),
        COMPLETED,
    )
    assert lines == ["started resp_1", "0 + message", *SAID, "ended completed"]


def test_items_may_stay_open_together_and_close_late_in_any_order() -> None:
    lines = read(
        CREATED,
        opened(HELLO),
        text("Hello", item_id="msg_a"),
        opened(OSLO),
        arguments('{"city":"Oslo"}', item_id="fc_o"),
        closed(OSLO),
        closed(HELLO),
        COMPLETED,
    )
    assert lines == [
        "started resp_1",
        "0 + message",
        "0 content_part.added",
        "0 output_text.delta Hello",
        "1 + function_call weather",
        '1 function_call_arguments.delta {"city":"Oslo"}',
        '1 function_call_arguments.done {"city":"Oslo"}',
        '1 - function_call completed {"city":"Oslo"}',
        "0 output_text.done Hello",
        "0 content_part.done Hello",
        "0 - message completed Hello",
        "ended completed",
    ]


def test_events_about_a_closed_item_are_dropped() -> None:
    lines = read(
        CREATED,
        opened(HELLO),
        closed(HELLO),
        text("more", item_id="msg_a"),
        closed(HELLO),
        COMPLETED,
    )
    assert lines == ["started resp_1", "0 + message", *SAID, "ended completed"]


# -- items that nobody announced -------------------------------------------------------------------


def test_content_announces_its_item_and_something_else_ends_it() -> None:
    lines = read(
        event("reasoning_text.delta", 0, "rs", delta="Hm.", content_index=0),
        text("Hel", item_id="m", output_index=1),
        text("lo", item_id="m", output_index=1),
        opened(OSLO, 2),
        closed(OSLO, 2),
        COMPLETED,
    )
    assert lines[:10] == [
        "started",
        "0 + reasoning",
        "0 content_part.added",
        "0 reasoning_text.delta Hm.",
        "0 reasoning_text.done Hm.",
        "0 content_part.done Hm.",
        "0 - reasoning completed Hm.",
        "1 + message",
        "1 content_part.added",
        "1 output_text.delta Hel",
    ]
    assert lines[10:15] == [
        "1 output_text.delta lo",
        "1 output_text.done Hello",
        "1 content_part.done Hello",
        "1 - message completed Hello",
        "2 + function_call weather",
    ]


@pytest.mark.parametrize(
    ("first", "second", "messages"),
    [
        ({"item_id": "a", "output_index": 0}, {"item_id": "b", "output_index": 1}, 2),
        ({"item_id": "a", "output_index": 0}, {"item_id": "b", "output_index": 0}, 1),
        ({"item_id": "a", "output_index": 0}, {"item_id": "a", "output_index": 1}, 1),
        ({"item_id": "a"}, {"item_id": "b"}, 1),
        ({}, {}, 1),
    ],
)
def test_content_under_another_id_and_index_is_another_item(
    first: Event, second: Event, messages: int
) -> None:
    lines = read(CREATED, text("a", **first), text("b", **second), COMPLETED)
    assert len([line for line in lines if " + message" in line]) == messages


def test_an_item_that_nobody_announced_keeps_its_id() -> None:
    reading = Reading()
    reading.take(CREATED, text("Hello", item_id="msg_a"))
    opening = reading.events[1]
    assert isinstance(opening, Opened)
    assert opening.body == {
        "type": "message",
        "id": "msg_a",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }


def test_an_announcement_after_its_content_is_no_second_item() -> None:
    lines = read(CREATED, text("Hello", item_id="msg_a"), opened(HELLO), closed(HELLO), COMPLETED)
    assert lines == ["started resp_1", "0 + message", *SAID, "ended completed"]
