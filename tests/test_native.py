"""Pictures that a model server makes itself: clients see one order of steps, whatever is left out."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.turn_events import Closed, Delta
from transcript import Event, event
from turn_reading import CREATED, Reading, canonical, closed, told

KITE = {"id": "ig_x", "type": "image_generation_call", "status": "completed", "result": "iVBORw0KGgoA"}
STEPS = [
    "0 + image_generation_call",
    "0 image_generation_call.in_progress",
    "0 image_generation_call.generating",
]
PREVIEW = "0 image_generation_call.partial_image"
DONE = ["0 image_generation_call.completed", "0 - image_generation_call completed iVBORw0KGgoA"]


def step(name: str, **fields: Any) -> Event:
    return event(f"image_generation_call.{name}", 0, "ig_x", **fields)


def preview(index: object, data: object = "AAAA") -> Event:
    return step("partial_image", partial_image_index=index, partial_image_b64=data)


BEGUN = event(
    "output_item.added", 0, item={"id": "ig_x", "type": "image_generation_call", "status": "in_progress"}
)


@pytest.mark.parametrize(
    ("payloads", "previews"),
    [
        ([BEGUN, step("in_progress"), step("generating"), preview(0), step("completed"), closed(KITE)], 1),
        ([BEGUN, preview(0), step("generating"), step("in_progress"), preview(1), closed(KITE)], 2),
        ([BEGUN, step("generating"), step("generating"), step("completed"), preview(0), closed(KITE)], 1),
        ([step("in_progress"), preview(0, 7), closed({**KITE, "status": "generating"})], 0),
        ([step("completed"), closed(KITE)], 0),
        ([closed(KITE)], 0),
    ],
)
def test_each_step_comes_once_and_in_order(payloads: list[Event], previews: int) -> None:
    assert told(*payloads) == [*STEPS, *[PREVIEW] * previews, *DONE]


def test_previews_are_numbered_from_zero() -> None:
    reading = Reading()
    reading.take(CREATED, BEGUN, preview(0), preview(0), preview(None))
    shown = [one.payload for one in reading.events if isinstance(one, Delta)][2:]
    assert [one["partial_image_index"] for one in shown] == [0, 1, 2]


def test_the_frames_of_a_server_that_tells_all_are_handed_on() -> None:
    reading = Reading()
    whole = {**KITE, "output_format": "png"}
    steps = (step("in_progress"), step("generating"), preview(0), step("completed"))
    frames = [canonical(one) for one in steps]
    reading.take(CREATED, canonical(BEGUN), *frames, canonical(closed(whole, 0)))
    *deltas, end = reading.events[2:]
    assert [one.raw for one in deltas if isinstance(one, Delta)] == [frame.raw for frame in frames]
    assert isinstance(end, Closed)
    assert end.source is not None


def test_a_picture_that_was_completed_and_is_none_has_failed() -> None:
    lines = told(BEGUN, step("completed"), closed({**KITE, "result": None, "error": {"code": "blocked"}}))
    assert lines == [*STEPS, "0 - image_generation_call failed"]
    reading = Reading()
    reading.take(CREATED, closed({**KITE, "result": "", "error": {"code": "blocked"}}))
    end = reading.events[-1]
    assert isinstance(end, Closed)
    assert end.body["error"] == {
        "type": "image_generation_error",
        "code": "blocked",
        "message": "The picture was not finished.",
        "param": None,
    }


@pytest.mark.parametrize(
    ("result", "told_format", "shown"),
    [
        ("iVBORw0KGgoA", None, "png"),
        ("/9j/4AAQ", None, "jpeg"),
        ("UklGRiQA", None, "webp"),
        ("AAAA", None, "png"),
        ("/9j/4AAQ", "gif", "gif"),
    ],
)
def test_a_picture_always_has_a_format(result: str, told_format: str | None, shown: str) -> None:
    reading = Reading()
    reading.take(CREATED, closed({**KITE, "result": result, "output_format": told_format}))
    end = reading.events[-1]
    assert isinstance(end, Closed)
    assert end.body["output_format"] == shown
