"""The table of a call's life: every step in it, and no other."""

from __future__ import annotations

from itertools import product

import pytest
from imagecall.events.errors import LocalProtocolError
from imagecall.events.state import TRANSITIONS, CallInput, CallState, step
from imagecall.events.tools.image_generation import ImageGeneration

S, I = CallState, CallInput  # noqa: E741  short, as in the table

LIVES: dict[str, tuple[list[CallInput], CallState, str]] = {
    "a picture": (
        [I.ANNOUNCE, I.START, I.FINISH],
        S.COMPLETED,
        "added started working finished done",
    ),
    "a picture with previews": (
        [I.ANNOUNCE, I.START, I.PREVIEW, I.PREVIEW, I.FINISH],
        S.COMPLETED,
        "added started working partial partial finished done",
    ),
    "a picture that failed": ([I.ANNOUNCE, I.START, I.FAIL], S.FAILED, "added started working done"),
    "a picture that failed after a preview": (
        [I.ANNOUNCE, I.START, I.PREVIEW, I.FAIL],
        S.FAILED,
        "added started working partial done",
    ),
    "bad arguments": ([I.ANNOUNCE, I.FAIL], S.FAILED, "added started working done"),
}


@pytest.mark.parametrize(("inputs", "end", "told"), LIVES.values(), ids=LIVES)
def test_a_call_shows_the_same_steps_in_the_same_order(
    inputs: list[CallInput], end: CallState, told: str
) -> None:
    state, phases = S.NAMED, list[str]()
    for one in inputs:
        assert not state.final
        state, more = step(state, one)
        phases += more
    assert state is end
    assert state.final
    assert phases == told.split()


@pytest.mark.parametrize(
    ("state", "happened"), [pair for pair in product(CallState, CallInput) if pair not in TRANSITIONS]
)
def test_a_step_that_is_not_in_the_table_is_a_bug_here(state: CallState, happened: CallInput) -> None:
    with pytest.raises(LocalProtocolError, match=f"cannot {happened.value} when it is {state.value}"):
        step(state, happened)


def test_nothing_leaves_a_final_state_and_every_other_state_can_be_left() -> None:
    assert {state for state, _ in TRANSITIONS} == {state for state in CallState if not state.final}


def test_every_phase_but_the_items_own_two_has_a_name_on_the_wire() -> None:
    told = {phase for _, phases in TRANSITIONS.values() for phase in phases}
    assert told - {"added", "done"} == set(ImageGeneration.phases)
