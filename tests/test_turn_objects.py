"""One turn of a model server that answers with an object instead of a stream."""

from __future__ import annotations

from typing import Any

import pytest
from turn_reading import HELLO, Reading, call_item, message_item

SAID = ["0 + message", "0 content_part.added", "0 output_text.delta Hello", "0 output_text.done Hello"]
OURS = call_item("fc_d", "draw", '{"prompt":"a kite"}')
OSLO = call_item("fc_o", "weather", "{}")


def answer(*output: Any, status: str = "completed") -> list[str]:
    reading = Reading()
    return reading.lines(reading.turn.receive_response({"id": "r", "status": status, "output": [*output]}))


def test_an_object_is_told_item_by_item_like_a_stream() -> None:
    assert answer(message_item("blank", ""), HELLO, OURS, "junk", OSLO) == [
        "started r",
        *SAID,
        "0 content_part.done Hello",
        "0 - message completed Hello",
        "1 + function_call draw (ours)",
        '1 settled {"prompt": "a kite"}',
        "2 + function_call weather",
        "2 function_call_arguments.delta {}",
        "2 function_call_arguments.done {}",
        "2 - function_call completed {}",
        "ended completed",
    ]


def test_equal_items_of_an_object_are_all_told() -> None:
    twice = message_item(None, "Hello")
    call = call_item(None, "weather", "{}", call_id=None)
    lines = answer(twice, twice, call, call)
    assert [line for line in lines if " - " in line] == [
        "0 - message completed Hello",
        "1 - message completed Hello",
        "2 - function_call completed {}",
        "3 - function_call completed {}",
    ]


def test_an_incomplete_object_counts_as_far_as_it_goes() -> None:
    cut = {**HELLO, "status": "incomplete"}
    assert answer(OURS, cut, status="incomplete")[1:] == [
        "0 + function_call draw (ours)",
        '0 settled {"prompt": "a kite"}',
        *(line.replace("0", "1", 1) for line in SAID),
        "1 content_part.done Hello",
        "1 - message incomplete Hello",
        "ended incomplete",
    ]
    broken = {**OURS, "arguments": '{"prompt":"a ki'}
    assert answer(broken, status="incomplete")[2:] == [
        "0 settled The call was cut off before its arguments were complete.",
        "ended incomplete",
    ]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_failed_object_runs_nothing(status: str) -> None:
    lines = answer(HELLO, OURS, status=status)
    assert lines[0] == "started r"
    assert lines[1:5] == SAID
    assert lines[-2:] == ["0 - message completed Hello", "ended failed"]
