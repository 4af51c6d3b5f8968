"""One turn of a model server: whose a function call is, and the calls of the client."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.turn_events import Delta, Opened
from transcript import Event, event
from turn_reading import (
    COMPLETED,
    CREATED,
    Reading,
    arguments,
    begun,
    call_item,
    canonical,
    closed,
    final,
    opened,
    told,
)

GOOD = '{"prompt":"a kite"}'
OURS = call_item("fc_d", "draw", GOOD)
THEIRS = call_item("fc_o", "weather", '{"city":"Oslo"}')
SETTLED = '0 settled {"prompt": "a kite"}'


def delta(words: object, item_id: str = "fc_d") -> Event:
    return arguments(words, output_index=0, item_id=item_id)


def ended(words: object, item_id: str = "fc_d", **fields: Any) -> Event:
    return event("function_call_arguments.done", 0, item_id, arguments=words, **fields)


# -- whose call it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["draw", "functions.draw", "draw<|channel|>commentary", " draw"])
def test_a_call_of_our_function_is_ours_whatever_sticks_to_its_name(name: str) -> None:
    item = {**OURS, "name": name}
    assert told(opened(item), closed(item)) == [f"0 + function_call {name} (ours)", SETTLED]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("paint", {}),
        ("functions.draw", {"declared": ["functions.draw"]}),
        ("draw", {"name": None}),
        ("draw", {"name": "draw_2", "declared": ["draw"]}),
    ],
)
def test_any_other_call_is_the_clients(name: str, options: dict[str, Any]) -> None:
    item = {**OURS, "name": name}
    assert told(opened(item), closed(item), **options) == [
        f"0 + function_call {name}",
        f"0 function_call_arguments.delta {GOOD}",
        f"0 function_call_arguments.done {GOOD}",
        f"0 - function_call completed {GOOD}",
    ]


@pytest.mark.parametrize(
    "payloads",
    [
        [opened({**OURS, "name": None}), delta(GOOD), ended(GOOD, name="draw"), closed(OURS)],
        [opened({**OURS, "name": ""}), delta(GOOD), ended(GOOD), closed(OURS)],
        [opened({**OURS, "name": None}), delta(GOOD), final(OURS)],
        [delta(GOOD), ended(GOOD, name="functions.draw")],
        [delta(GOOD), closed(OURS)],
        [delta(GOOD), final(OURS)],
        [closed(OURS)],
        [closed({**OURS, "name": None}), final(OURS)],
    ],
)
def test_a_call_is_held_back_until_its_name_is_known(payloads: list[Event]) -> None:
    lines = told(*payloads)
    assert lines[0].startswith("0 + function_call")
    assert lines[0].endswith("(ours)")
    assert lines[1:] == [SETTLED]


def test_what_was_held_of_a_clients_call_comes_when_its_name_does() -> None:
    lines = told(
        opened({**THEIRS, "name": None}),
        delta('{"city":', "fc_o"),
        delta('"Oslo"}', "fc_o"),
        ended(THEIRS["arguments"], "fc_o", name="weather"),
        closed({**THEIRS, "name": None}),
    )
    assert lines == [
        "0 + function_call weather",
        '0 function_call_arguments.delta {"city":',
        '0 function_call_arguments.delta "Oslo"}',
        '0 function_call_arguments.done {"city":"Oslo"}',
        '0 - function_call completed {"city":"Oslo"}',
    ]


@pytest.mark.parametrize("ends", [[], [closed({**THEIRS, "name": None})], [ended("{}", "fc_o")]])
def test_a_call_without_a_name_is_dropped_with_a_note(ends: list[Event]) -> None:
    reading = Reading()
    reading.take(CREATED, opened({**THEIRS, "name": None}), delta("{}", "fc_o"), *ends, *ends)
    assert reading.take(COMPLETED, closed(THEIRS)) == ["ended completed"]
    assert reading.turn.notes == ["dropped a call that has no name"]
    assert list(reading.turn.items) == []


def test_a_clients_call_that_nobody_announced_waits_for_the_call_id_it_is_answered_by() -> None:
    reading = Reading()
    held = reading.take(
        CREATED, delta('{"city":', "fc_o"), ended(THEIRS["arguments"], "fc_o", name="weather")
    )
    assert held == ["started resp_1"]
    assert reading.take(closed({**THEIRS, "name": ""})) == [
        "0 + function_call weather",
        '0 function_call_arguments.delta {"city":',
        '0 function_call_arguments.delta "Oslo"}',
        '0 function_call_arguments.done {"city":"Oslo"}',
        '0 - function_call completed {"city":"Oslo"}',
    ]
    opening = next(one for one in reading.events if isinstance(one, Opened))
    assert (opening.body["call_id"], opening.body["id"]) == ("call_fc_o", "fc_o")


# -- the client's calls ----------------------------------------------------------------------------

WEATHER = [
    "0 + function_call weather",
    '0 function_call_arguments.delta {"city":"Oslo"}',
    '0 function_call_arguments.done {"city":"Oslo"}',
    '0 - function_call completed {"city":"Oslo"}',
]
WORDS = THEIRS["arguments"]


@pytest.mark.parametrize(
    "payloads",
    [
        [opened(THEIRS), delta(WORDS, "fc_o"), ended(WORDS, "fc_o"), closed(THEIRS)],
        [opened(THEIRS), delta(WORDS, "fc_o"), ended(None, "fc_o"), closed(THEIRS)],
        [opened(THEIRS), delta(WORDS, "fc_o"), ended("", "fc_o"), closed({**THEIRS, "arguments": None})],
        [opened(THEIRS), delta(WORDS, "fc_o"), closed({**THEIRS, "arguments": ""})],
        [opened(THEIRS), delta(WORDS, "fc_o"), final({**THEIRS, "status": None})],
        [opened(THEIRS), delta(WORDS, "fc_o")],
        [opened(THEIRS), ended(WORDS, "fc_o"), ended(WORDS, "fc_o"), closed(THEIRS)],
        [opened(THEIRS), closed(THEIRS)],
        [opened(THEIRS), closed({**THEIRS, "arguments": {"city": "Oslo"}})],
        [event("output_item.added", 0, item=THEIRS)],
        [event("output_item.added", 0, item=THEIRS), ended(WORDS, "fc_o"), closed(THEIRS)],
        [event("output_item.added", 0, item={**THEIRS, "status": None}), closed(THEIRS)],
        [closed(THEIRS)],
        [final(THEIRS)],
    ],
)
def test_the_arguments_of_a_clients_call_come_once_and_whole(payloads: list[Event]) -> None:
    assert told(*payloads) == WEATHER


def test_an_announced_call_is_in_progress_and_without_arguments() -> None:
    reading = Reading()
    reading.take(CREATED, event("output_item.added", 0, item=THEIRS))
    opening = reading.events[-1]
    assert isinstance(opening, Opened)
    assert opening.body == begun(THEIRS)
    assert reading.lines(reading.turn.receive(canonical(COMPLETED)))[-2] == WEATHER[-1]


def test_what_is_missing_of_streamed_arguments_is_caught_up_with() -> None:
    assert told(opened(THEIRS), delta('{"city"', "fc_o"), closed(THEIRS)) == [
        WEATHER[0],
        '0 function_call_arguments.delta {"city"',
        '0 function_call_arguments.delta :"Oslo"}',
        *WEATHER[2:],
    ]


def test_streamed_arguments_stay_as_they_were_read_if_they_are_good() -> None:
    spaced = '{"city": "Oslo"}'
    ends = [ended(spaced, "fc_o"), closed({**THEIRS, "arguments": spaced})]
    assert told(opened(THEIRS), delta(WORDS, "fc_o"), *ends) == WEATHER
    assert told(opened(THEIRS), delta("{", "fc_o"), delta("{", "fc_o"), *ends)[-1].endswith(spaced)


def test_deltas_that_come_after_the_arguments_end_or_are_no_text_are_dropped() -> None:
    late = [delta("more", "fc_o"), delta(None, "fc_o")]
    assert told(opened(THEIRS), delta(7, "fc_o"), ended(WORDS, "fc_o"), *late, closed(THEIRS)) == WEATHER


def test_the_servers_own_frame_ends_the_arguments_if_it_says_them_all() -> None:
    reading = Reading()
    reading.take(CREATED, opened(THEIRS))
    frame = canonical(ended(WORDS, "fc_o"))
    reading.take(frame)
    told_end = reading.events[-1]
    assert isinstance(told_end, Delta)
    assert told_end.raw is frame.raw


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_clients_call_that_is_cut_off_closes_incomplete_and_has_no_end_of_arguments(status: str) -> None:
    cut = {**THEIRS, "arguments": '{"ci', "status": "in_progress"}
    for payloads in ([opened(THEIRS), delta('{"ci', "fc_o")], [opened(THEIRS)], []):
        lines = told(*payloads, end=final(cut, status=status))
        assert lines == [
            "0 + function_call weather",
            '0 function_call_arguments.delta {"ci',
            '0 - function_call incomplete {"ci',
        ]
    whole = told(opened(THEIRS), delta(WORDS, "fc_o"), end=final(status=status))
    assert whole == [*WEATHER[:3], '0 - function_call incomplete {"city":"Oslo"}']
