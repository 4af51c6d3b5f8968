"""What the official SDK makes of good and of bad streams."""

from __future__ import annotations

from collections.abc import Callable

import openai
import pytest
from accumulator import accumulate, accumulate_events, check_types
from sample_stream import MESSAGE, check, done_item, drop, failed_stream, response, say, stream, twice, valid
from transcript import Event, encode, event

Mutation = Callable[[list[Event]], object]


def test_a_valid_stream_gives_its_final_response_in_the_real_accumulator() -> None:
    final = accumulate(encode(valid()))
    assert [item.type for item in final.output] == [
        "reasoning",
        "image_generation_call",
        "message",
        "function_call",
    ]
    assert final.output_text == "Here."


def test_a_failed_stream_is_valid_and_its_events_are_accumulated_up_to_the_error() -> None:
    body = encode(failed_stream())
    assert check(body) == []
    assert [one.type for one in accumulate_events(body)][-1] == "response.output_item.done"
    with pytest.raises(openai.APIError, match="broke off"):
        accumulate(body)


def test_an_incomplete_stream_is_valid_and_all_its_events_are_accumulated() -> None:
    details = {"reason": "max_output_tokens"}
    end = event("incomplete", response=response("incomplete", output=[MESSAGE], incomplete_details=details))
    body = encode(stream(say(0), end=end))
    assert check(body) == []
    assert accumulate_events(body)[-1].type == "response.incomplete"
    with pytest.raises(RuntimeError, match="Didn't receive"):
        accumulate(body)


def leave_unfinished(events: list[Event]) -> None:
    drop(events, "output_item.done", 2)
    events[-1]["response"]["output"].pop(2)


ACCUMULATOR: dict[str, tuple[Mutation, str]] = {
    "no created": (lambda e: drop(e, "created"), "Expected to have received `response.created`"),
    "a taken index": (lambda e: twice(e, "output_item.added", 2), "Duplicate response output index"),
    "content before its item": (
        lambda e: drop(e, "output_item.added", 2),
        "before receiving its output item",
    ),
    "another response id": (
        lambda e: e[-1]["response"].update(id="resp_2"),
        "Lifecycle response identity changed",
    ),
    "an id that changes": (lambda e: done_item(e, 2, id="msg_2"), "Completed output item identity changed"),
    "an unfinished item": (
        leave_unfinished,
        "unfinished output items",
    ),
    "no terminal event": (lambda e: drop(e, "completed"), "Didn't receive a `response.completed`"),
}


@pytest.mark.parametrize("breach", ACCUMULATOR)
def test_the_real_accumulator_raises_at_a_bad_stream(breach: str) -> None:
    mutate, sentence = ACCUMULATOR[breach]
    events = valid()
    mutate(events)
    with pytest.raises(RuntimeError, match=sentence):
        accumulate(encode(events))


def test_the_real_accumulator_takes_text_deltas_without_logprobs() -> None:
    events = valid()
    for one in events:
        one.pop("logprobs", None)
    assert accumulate(encode(events)).output_text == "Here."
    assert [sentence.partition(":")[0] for sentence in check_types(encode(events))] == [
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
    ]


def test_errors_that_are_no_error_frames_are_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="before"):
        accumulate_events(encode(valid()[2:]))


def test_a_valid_stream_has_the_published_types() -> None:
    assert check_types(encode(valid())) == []
