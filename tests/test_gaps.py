"""Servers leave things out: whatever fields and events are missing, the client still gets it all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from case_files import read_request, read_turns
from driving import JsonAnswer
from hypothesis import example, given
from hypothesis import strategies as st
from kite import KITE, SAID, run
from rules import read_events

FIELDS = (
    "output_index",
    "item_id",
    "content_index",
    "sequence_number",
    "logprobs",
    "status",
    "role",
    "annotations",
)
STEPS = (
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
)


def leave_out(turn: bytes, fields: frozenset[str], steps: frozenset[str]) -> bytes:
    """Write a turn again, as a server would that knows less; the final event stays."""
    frames = []
    for event in read_events(turn):
        if event["type"] in steps:
            continue
        for part in (event, event.get("item") or {}, event.get("part") or {}):
            for name in fields & part.keys():
                del part[name]
        frames.append(b"data: %s\n\n" % json.dumps(event).encode())
    return b"".join(frames)


@given(fields=st.frozensets(st.sampled_from(FIELDS)), steps=st.frozensets(st.sampled_from(STEPS)))
@example(fields=frozenset(FIELDS), steps=frozenset(STEPS))
@example(fields=frozenset({"role"}), steps=frozenset())
def test_what_a_server_leaves_out_is_made_up(fields: frozenset[str], steps: frozenset[str]) -> None:
    turns = [leave_out(turn, fields, steps) for turn in read_turns("one_response_from_two_turns")]
    driven = run(read_request("one_response_from_two_turns"), turns)
    final: dict[str, Any] = read_events(driven.body)[-1]["response"]
    assert [one.arguments["prompt"] for one in driven.runs] == [KITE]
    assert [item["type"] for item in final["output"]] == ["image_generation_call", "message"]
    assert final["output"][1]["content"][0]["text"] == "".join(SAID)


@given(fields=st.frozensets(st.sampled_from(FIELDS)), steps=st.frozensets(st.sampled_from(STEPS)))
@example(fields=frozenset(), steps=frozenset({"response.output_item.added"}))
def test_a_client_call_beside_the_picture_survives_any_gap(
    fields: frozenset[str], steps: frozenset[str]
) -> None:
    turn = leave_out(read_turns("picture_and_client_call")[0], fields, steps)
    driven = run(read_request("picture_and_client_call"), [turn])
    final = read_events(driven.body)[-1]["response"]
    assert [one.arguments["prompt"] for one in driven.runs] == [KITE]
    assert sorted(item["type"] for item in final["output"]) == ["function_call", "image_generation_call"]
    called = next(item for item in final["output"] if item["type"] == "function_call")
    assert (called["call_id"], called["name"], called["arguments"]) == (
        "call_W",
        "get_weather",
        '{"prompt":"Oslo"}',
    )


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


CUSTOM = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "call_id": "call_c",
    "name": "write_sql",
    "input": "SELECT 1",
    "status": "completed",
}
FINAL: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "completed_at": 2,
    "output": [],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}


def test_a_stream_that_was_answered_in_json_opens_with_nothing_spent_and_nothing_completed() -> None:
    message = read_events(read_turns("no_picture_wanted")[0])[-1]["response"]["output"]
    answer = JsonAnswer(json.dumps({**FINAL, "output": message}).encode())
    opening, following, *_ = read_events(run(read_request("no_picture_wanted"), [answer]).body)
    for response in (opening["response"], following["response"]):
        assert response["usage"] is None
        assert response.get("completed_at") is None


@pytest.mark.parametrize("told", ["when done", "in the end"])
def test_a_call_of_another_kind_that_is_told_late_is_announced_with_its_call_id(told: str) -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": CUSTOM}
    started = {"type": "response.created", "response": {**FINAL, "status": "in_progress"}}
    end = {"type": "response.completed", "response": {**FINAL, "output": [CUSTOM]}}
    events = [started, done, end] if told == "when done" else [started, end]
    driven = run(read_request("no_picture_wanted"), [sse(*events)])
    assert read_events(driven.body)[-1]["response"]["output"] == [CUSTOM]


def test_a_text_gets_nothing_more_after_its_end() -> None:
    events = read_events(read_turns("no_picture_wanted")[0])
    ends = [one["type"] for one in events].index("response.output_text.done")
    events[ends - 1], events[ends] = {**events[ends], "text": "Hel"}, events[ends - 1]
    run(read_request("no_picture_wanted"), [sse(*events)])


@pytest.mark.parametrize("content", [{}, {"content": None}])
def test_a_message_that_is_announced_without_content_starts_with_none(content: dict[str, None]) -> None:
    events = read_events(read_turns("no_picture_wanted")[0])
    del events[2]["item"]["content"]
    events[2]["item"].update(content)
    run(read_request("no_picture_wanted"), [sse(*events)])
