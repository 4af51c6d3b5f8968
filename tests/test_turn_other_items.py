"""One turn of a model server: calls of other kinds, and pictures that the server makes itself."""

from __future__ import annotations

import pytest
from imagecall.events.turn_events import Closed, Delta, Opened
from transcript import Event, event
from turn_reading import (
    COMPLETED,
    CREATED,
    Reading,
    canonical,
    closed,
    final,
    told,
)

# -- calls of other kinds --------------------------------------------------------------------------

SQL = {"id": "ct", "type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"}


def custom(kind: str, **fields: str) -> Event:
    return event(f"custom_tool_call_input.{kind}", 0, "ct", **fields)


@pytest.mark.parametrize(
    "payloads",
    [
        [event("output_item.added", 0, item=SQL), custom("delta", delta="SELECT 1"), closed(SQL)],
        [custom("delta", delta="SELECT 1"), custom("done", input="SELECT 1"), closed(SQL)],
        [event("output_item.added", 0, item={**SQL, "input": ""}), custom("delta", delta="SELECT 1")],
        [event("output_item.added", 0, item=SQL)],
        [closed(SQL)],
        [final(SQL)],
    ],
)
def test_the_input_of_a_custom_tool_comes_once_and_whole(payloads: list[Event]) -> None:
    lines = told(*payloads)
    assert lines[0].startswith("0 + custom_tool_call")
    assert lines[1:3] == [
        "0 custom_tool_call_input.delta SELECT 1",
        "0 custom_tool_call_input.done SELECT 1",
    ]
    assert lines[3].split(maxsplit=2)[2].removeprefix("custom_tool_call ").endswith("SELECT 1")
    assert len(lines) == 4


def test_the_frames_of_a_custom_tool_that_are_whole_are_handed_on() -> None:
    reading = Reading()
    started = event("output_item.added", 0, item={**SQL, "input": "", "status": "in_progress"})
    frames = [canonical(one) for one in (started, custom("delta", delta="SELECT 1"))]
    frames += [canonical(one) for one in (custom("done", input="SELECT 1"), closed(SQL, 0))]
    reading.take(CREATED, *frames)
    told_start, *deltas, told_end = reading.events[1:]
    assert isinstance(told_start, Opened)
    assert isinstance(told_end, Closed)
    assert told_start.source is not None
    assert told_end.source is not None
    raws = [told_start.source[1], *(one.raw for one in deltas if isinstance(one, Delta)), told_end.source[1]]
    assert all(one is frame.raw for one, frame in zip(raws, frames, strict=True))


def test_a_custom_tool_call_that_nobody_announced_is_announced_with_all_that_clients_demand() -> None:
    reading = Reading()
    reading.take(CREATED, closed(SQL))
    opening = reading.events[1]
    assert isinstance(opening, Opened)
    assert opening.body == {**SQL, "input": "", "status": "in_progress"}


def test_an_input_that_only_its_end_tells_is_kept() -> None:
    reading = Reading()
    started = event("output_item.added", 0, item={**SQL, "input": ""})
    reading.take(CREATED, started, custom("done", input="SELECT 1"), COMPLETED)
    end = next(one for one in reading.events if isinstance(one, Closed))
    assert end.body["input"] == "SELECT 1"


def test_code_that_is_cut_off_stands_in_its_item_and_has_no_end() -> None:
    item = {"id": "ci", "type": "code_interpreter_call", "status": "in_progress", "code": None}
    payloads = [
        event("output_item.added", 0, item=item),
        event("code_interpreter_call.in_progress", 0, "ci"),
        event("code_interpreter_call_code.delta", 0, "ci", delta="print("),
    ]
    assert told(*payloads, end=final(status="incomplete"))[1:] == [
        "0 code_interpreter_call.in_progress",
        "0 code_interpreter_call_code.delta print(",
        "0 - code_interpreter_call failed print(",
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"status": None}, {"status": "in_progress"}),
        ({"status": "searching"}, {"status": "searching"}),
        ({}, {}),
    ],
)
def test_only_a_status_of_null_is_put_right(given: Event, shown: Event) -> None:
    reading = Reading()
    started: Event = {"id": "ws", "type": "web_search_call", "action": {}}
    reading.take(CREATED, event("output_item.added", 0, item={**started, **given}))
    opening = reading.events[-1]
    assert isinstance(opening, Opened)
    assert opening.body == {**started, **shown}


def test_other_hosted_items_pass_with_their_events() -> None:
    item = {"id": "ws", "type": "web_search_call", "status": "completed", "action": {}}
    payloads = [
        event("output_item.added", 0, item={**item, "status": None, "action": None}),
        event("web_search_call.searching", 0, "ws"),
        closed(item),
    ]
    assert told(*payloads) == [
        "0 + web_search_call",
        "0 web_search_call.searching",
        "0 - web_search_call completed",
    ]


# -- pictures that the server makes itself ---------------------------------------------------------

PICTURE = {"id": "ig_x", "type": "image_generation_call", "status": "completed", "result": "QUJD"}
PHASES = ["0 image_generation_call.in_progress", "0 image_generation_call.generating"]


def native(phase: str) -> Event:
    return event(f"image_generation_call.{phase}", 0, "ig_x")


@pytest.mark.parametrize(
    "payloads",
    [
        [native("in_progress"), native("generating"), native("completed"), closed(PICTURE)],
        [native("in_progress"), native("generating"), closed({**PICTURE, "status": "generating"})],
        [native("in_progress"), closed(PICTURE)],
        [closed(PICTURE)],
        [final(PICTURE)],
    ],
)
def test_a_native_picture_goes_through_all_its_steps(payloads: list[Event]) -> None:
    lines = told(event("output_item.added", 0, item={**PICTURE, "result": None, "prompt": "x"}), *payloads)
    assert lines == [
        "0 + image_generation_call",
        *PHASES,
        "0 image_generation_call.completed",
        "0 - image_generation_call completed QUJD",
    ]


def test_a_native_picture_is_announced_bare_and_keeps_its_previews() -> None:
    reading = Reading()
    started = event("output_item.added", 0, item={**PICTURE, "result": None, "prompt": "x"})
    preview = {**native("partial_image"), "partial_image_b64": "QUJD"}
    lines = reading.take(CREATED, started, preview, closed(PICTURE))
    assert lines[2:] == [
        *PHASES,
        "0 image_generation_call.partial_image",
        "0 image_generation_call.completed",
        "0 - image_generation_call completed QUJD",
    ]
    opening = reading.events[1]
    assert isinstance(opening, Opened)
    assert opening.body == {"id": "ig_x", "type": "image_generation_call", "status": "in_progress"}


@pytest.mark.parametrize("result", [None, "", 7])
def test_a_native_picture_without_a_result_has_failed(result: object) -> None:
    reading = Reading()
    error = {"type": "t", "code": "moderation_blocked", "message": "m", "param": None}
    assert reading.take(CREATED, closed({**PICTURE, "result": result, "error": error}))[2:] == [
        *PHASES,
        "0 - image_generation_call failed",
    ]
    end = reading.events[-1]
    assert isinstance(end, Closed)
    assert end.body == {**PICTURE, "status": "failed", "result": "", "error": error}
    cut = Reading()
    cut.take(CREATED, event("output_item.added", 0, item={**PICTURE, "result": None}), final(status="failed"))
    end = cut.events[-2]
    assert isinstance(end, Closed)
    assert end.body["error"].keys() == error.keys()
