"""The checks of streams that a client left: their whole frames count, and no end is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from rules import check_beginning, check_stream
from sample_stream import TOOLS, get, valid
from transcript import Event, encode

_FACTS: dict[str, Any] = {"tools": TOOLS, "tool_choice": "auto", "client_functions": {"get_weather"}}


def test_a_valid_stream_may_be_left_anywhere() -> None:
    body = encode(valid())
    assert check_stream(body, **_FACTS) == []
    for place in (*range(0, len(body), 7), len(body)):
        assert check_beginning(body[:place], **_FACTS) == [], body[:place][-80:]


def test_a_frame_in_whose_midst_the_client_left_does_not_count() -> None:
    body = encode(valid()[:5])
    assert check_beginning(body + b"event: nonsense\ndata: {", **_FACTS) == []
    assert check_beginning(b"event: nonsense", **_FACTS) == []
    assert check_beginning(b"", **_FACTS) == []


def test_comments_before_the_first_event_are_no_breach() -> None:
    assert check_beginning(b": keepalive\n\n", **_FACTS) == []


def _renumbered(events: list[Event]) -> None:
    events[3]["sequence_number"] = 7


def _without_opening(events: list[Event]) -> None:
    del events[0]
    for number, event in enumerate(events):
        event["sequence_number"] = number


def _opened_twice(events: list[Event]) -> None:
    events[2:2] = [events[1] | {"sequence_number": 2}]
    for number, event in enumerate(events):
        event["sequence_number"] = number


def _changed_index(events: list[Event]) -> None:
    get(events, "output_item.added", 1)["output_index"] = 5


def _another_text(events: list[Event]) -> None:
    get(events, "output_item.done", 1)["item"]["result"] = "nothing"


def _leaked_function(events: list[Event]) -> None:
    for event in events[:-1]:
        for place in (event, event.get("item", {})):
            if place.get("name") == "get_weather":
                place["name"] = "image_generation"


def _other_tools(events: list[Event]) -> None:
    events[0]["response"]["tools"] = []


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (_renumbered, "sequence_number does not run"),
        (_without_opening, "The stream opens with"),
        (_opened_twice, "response.in_progress is sent 2 times"),
        (_changed_index, "has the output_index 5"),
        (_another_text, "is not the bare base64 of a picture"),
        (_leaked_function, "the internal call leaks"),
        (_other_tools, "tools are not the client's own"),
    ],
)
def test_what_is_wrong_before_the_client_left_is_named(spoil: Any, complaint: str) -> None:
    events = valid()
    spoil(events)
    wrong = check_beginning(encode(events[:-1]), **_FACTS)
    assert any(complaint in sentence for sentence in wrong), wrong


def test_a_stream_that_was_heard_to_its_terminal_event_is_judged_as_a_whole() -> None:
    events = valid()
    events[-1]["response"]["output"] = []
    assert check_beginning(encode(events), **_FACTS) == check_stream(encode(events), **_FACTS) != []
