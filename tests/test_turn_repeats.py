"""One turn of a model server: items that are told twice, late, or only in the final response."""

from __future__ import annotations

import pytest
from transcript import Event, event
from turn_reading import (
    COMPLETED,
    CREATED,
    HELLO,
    OSLO,
    ROME,
    SAID,
    Reading,
    closed,
    final,
    message_item,
    opened,
    read,
    text,
)

# -- announcements and ends that come twice --------------------------------------------------------


def test_an_item_that_is_announced_twice_is_one() -> None:
    lines = read(
        CREATED,
        opened(OSLO),
        opened(OSLO),
        closed(OSLO),
        opened(OSLO),
        closed(OSLO),
        COMPLETED,
    )
    assert [line for line in lines if " + " in line or " - " in line] == [
        "0 + function_call weather",
        '0 - function_call completed {"city":"Oslo"}',
    ]


@pytest.mark.parametrize(
    "again",
    [
        [opened(HELLO), text("Hel", item_id="msg_a"), text("lo", item_id="msg_a"), closed(HELLO)],
        [opened(HELLO), event("output_text.done", 0, "msg_a", text="Hello"), closed(HELLO)],
        [opened(HELLO), closed(message_item("msg_a", ""))],
        [opened(HELLO)],
        [closed(HELLO)],
    ],
)
def test_a_message_that_is_told_again_is_not_shown_again(again: list[Event]) -> None:
    lines = read(CREATED, opened(HELLO), closed(HELLO), *again, COMPLETED)
    assert lines == ["started resp_1", "0 + message", *SAID, "ended completed"]


@pytest.mark.parametrize(
    "again",
    [
        [text("Bye", item_id="msg_a"), closed(message_item("msg_a", "Bye"))],
        [text("B", item_id="msg_a"), text("ye", item_id="msg_a")],
        [closed(message_item("msg_a", "Bye"))],
    ],
)
def test_a_new_message_under_an_old_id_is_shown(again: list[Event]) -> None:
    lines = read(CREATED, opened(HELLO), closed(HELLO), opened(HELLO), *again, COMPLETED)
    assert lines[:7] == ["started resp_1", "0 + message", *SAID]
    assert lines[7] == "1 + message"
    assert lines[-2:] == ["1 - message completed Bye", "ended completed"]


def test_a_call_under_an_old_id_with_another_call_id_is_another_call() -> None:
    again = {**ROME, "id": OSLO["id"]}
    lines = read(CREATED, opened(OSLO), closed(OSLO), opened(again), closed(again), COMPLETED)
    assert [line for line in lines if " - " in line] == [
        '0 - function_call completed {"city":"Oslo"}',
        '1 - function_call completed {"city":"Rome"}',
    ]


@pytest.mark.parametrize(
    ("first", "second", "calls"),
    [
        ((OSLO, 0), (ROME, 1), 2),
        ((OSLO, None), (ROME, None), 2),
        ((OSLO, 0), ({**OSLO, "id": "fc_x"}, 0), 1),
        ((OSLO, 0), ({**OSLO, "id": "fc_x", "call_id": None}, 0), 1),
        ((OSLO, 0), ({**OSLO, "id": "fc_x", "call_id": "call_x"}, 0), 2),
        ((OSLO, None), ({**OSLO, "id": "fc_x", "call_id": "call_x"}, None), 2),
        ((OSLO, 0), ({**ROME, "call_id": None}, 0), 2),
        (({**OSLO, "id": None, "call_id": None}, None), ({**OSLO, "id": None, "call_id": None}, None), 1),
        (({**OSLO, "call_id": None}, None), ({**OSLO, "id": "fc_x", "call_id": None}, None), 2),
    ],
)
def test_ends_are_the_same_only_if_nothing_tells_them_apart(
    first: tuple[Event, int | None], second: tuple[Event, int | None], calls: int
) -> None:
    lines = read(CREATED, closed(*first), closed(*second), COMPLETED)
    assert len([line for line in lines if " - function_call" in line]) == calls


@pytest.mark.parametrize(
    ("end", "matched"),
    [
        ((OSLO, None), True),
        (({**OSLO, "id": "x"}, None), True),
        (({**ROME, "id": "x"}, 0), True),
        (({**ROME, "id": None}, None), True),
        (({**OSLO, "id": "x", "call_id": None}, None), True),
        ((ROME, None), False),
        ((ROME, 1), False),
        ((HELLO, 0), False),
    ],
)
def test_an_end_is_that_of_the_open_item_unless_its_marks_are_all_others(
    end: tuple[Event, int | None], matched: bool
) -> None:
    reading = Reading()
    reading.take(CREATED, opened(OSLO, 0))
    lines = reading.take(closed(*end))
    assert lines[-1].startswith("0 - " if matched else "1 - ")


# -- the final response ----------------------------------------------------------------------------


def test_an_item_that_stands_only_in_the_final_output_is_told_there() -> None:
    lines = read(CREATED, opened(HELLO), closed(HELLO), final(HELLO, OSLO))
    assert lines[7:] == [
        "1 + function_call weather",
        '1 function_call_arguments.delta {"city":"Oslo"}',
        '1 function_call_arguments.done {"city":"Oslo"}',
        '1 - function_call completed {"city":"Oslo"}',
        "ended completed",
    ]


@pytest.mark.parametrize(
    "output",
    [
        [message_item("other", "Hello"), OSLO],
        [{**OSLO, "id": "other", "call_id": "other"}, HELLO],
        [{**OSLO, "id": None}, message_item(None, "Hello"), message_item("blank", "")],
        [HELLO, {**OSLO, "name": "functions.weather", "call_id": None, "id": "other"}],
        [{"type": "reasoning", "id": "rs", "summary": []}, HELLO, OSLO, {"type": 7}, "junk", None],
    ],
)
def test_items_with_other_ids_in_the_final_output_are_no_new_ones(output: list[object]) -> None:
    end = event("completed", response={"status": "completed", "output": output})
    lines = read(CREATED, opened(HELLO), text("Hello"), opened(OSLO), closed(OSLO), end)
    assert [line for line in lines if " + " in line] == ["0 + message", "1 + function_call weather"]
    assert len([line for line in lines if " - " in line]) == 2


def test_an_open_item_takes_its_end_from_the_final_output() -> None:
    lines = read(CREATED, opened(HELLO), opened(OSLO), final(HELLO, OSLO))
    assert lines[3:] == [
        *SAID,
        '1 function_call_arguments.delta {"city":"Oslo"}',
        '1 function_call_arguments.done {"city":"Oslo"}',
        '1 - function_call completed {"city":"Oslo"}',
        "ended completed",
    ]


def test_announcements_and_ends_without_an_item_are_dropped_with_one_note_each() -> None:
    reading = Reading()
    junk: list[Event] = [{"item": None}, {}, {"item": {"id": "a"}}, {"item": {"type": 7}}]
    for name in ("response.output_item.added", "response.output_item.done"):
        assert reading.take(*({"type": name, **one} for one in junk)) == []
    assert reading.turn.notes == [
        "dropped a response.output_item.added without an item",
        "dropped a response.output_item.done without an item",
    ]


def test_open_items_find_their_own_end_in_whatever_order_the_final_output_has_them() -> None:
    other = message_item("msg_b", "Bye")
    lines = read(CREATED, opened(HELLO), opened(other), final(other, HELLO))
    assert [line for line in lines if " - " in line] == [
        "1 - message completed Bye",
        "0 - message completed Hello",
    ]
