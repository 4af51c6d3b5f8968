"""One turn of a model server that contradicts itself: what was streamed, and what can be run, stays."""

from __future__ import annotations

import pytest
from imagecall.events.turn_events import Closed, Opened
from transcript import Event, event
from turn_reading import COMPLETED, CREATED, Reading, arguments, call_item, closed, final, opened, told

SQL = {
    "id": "ct",
    "type": "custom_tool_call",
    "call_id": "c",
    "name": "sql",
    "input": "SELECT 1",
    "status": "completed",
}
OSLO = call_item("fc", "weather", '{"city":"Oslo"}')
SAID = {"id": "msg", "type": "message", "role": "assistant", "status": "completed"}


def custom(end: str, **fields: object) -> Event:
    return event(f"custom_tool_call_input.{end}", 0, "ct", **fields)


def delta(text: str, content_index: object = 0, kind: str = "output_text") -> Event:
    return event(f"{kind}.delta", 0, "msg", content_index=content_index, delta=text)


def body_of(*payloads: Event) -> Event:
    """Return the final body of the only item."""
    reading = Reading()
    reading.take(CREATED, *payloads, COMPLETED)
    (end,) = [one for one in reading.events if isinstance(one, Closed)]
    return end.body


# -- calls -----------------------------------------------------------------------------------------


def test_a_custom_call_waits_for_its_name_and_its_call_id() -> None:
    reading = Reading()
    assert reading.take(CREATED, custom("delta", delta="SELECT"), custom("delta", delta=" 1")) == [
        "started resp_1"
    ]
    assert reading.take(closed(SQL)) == [
        "0 + custom_tool_call sql",
        "0 custom_tool_call_input.delta SELECT",
        "0 custom_tool_call_input.delta  1",
        "0 custom_tool_call_input.done SELECT 1",
        "0 - custom_tool_call completed SELECT 1",
    ]
    opening = reading.events[1]
    assert isinstance(opening, Opened)
    assert opening.body["call_id"] == "c"


def test_a_custom_call_that_nobody_names_is_none() -> None:
    reading = Reading()
    reading.take(CREATED, custom("delta", delta="SELECT"), COMPLETED)
    assert not [one for one in reading.events if isinstance(one, Opened)]
    assert reading.turn.notes == ["dropped a call that has no name"]


@pytest.mark.parametrize(
    "ends",
    [
        [custom("done", input="SELECT 1")] * 2,
        [custom("done", input="SELECT 1"), custom("delta", delta="; DROP")],
        [custom("done", input=""), closed({**SQL, "input": "SELECT 2"})],
        [custom("done", input=None)],
        [custom("delta", delta=None), closed({**SQL, "name": "other"})],
    ],
)
def test_an_input_ends_once_and_stays_what_it_was(ends: list[Event]) -> None:
    started = event("output_item.added", 0, item={**SQL, "input": ""})
    lines = told(started, custom("delta", delta="SELECT 1"), *ends)
    assert lines == [
        "0 + custom_tool_call sql",
        "0 custom_tool_call_input.delta SELECT 1",
        "0 custom_tool_call_input.done SELECT 1",
        "0 - custom_tool_call completed SELECT 1",
    ]
    assert body_of(started, custom("delta", delta="SELECT 1"), *ends)["name"] == "sql"


def test_an_input_told_as_a_whole_wins_over_deltas_that_lack_something() -> None:
    started = event("output_item.added", 0, item={**SQL, "input": ""})
    assert (
        body_of(started, custom("delta", delta="LECT 1"), custom("done", input="SELECT 1"))["input"]
        == "SELECT 1"
    )


def test_an_empty_input_is_ended_where_the_server_ends_it() -> None:
    started = event("output_item.added", 0, item={**SQL, "input": ""})
    lines = told(started, custom("done", input=""), closed({**SQL, "input": ""}))
    assert lines[1:] == ["0 custom_tool_call_input.done", "0 - custom_tool_call completed"]


def test_arguments_that_an_event_told_are_not_forgotten_by_the_item() -> None:
    told_once = event("function_call_arguments.done", 0, "fc", arguments=OSLO["arguments"])
    for forgotten in ("", "{}", None):
        body = body_of(opened(OSLO), told_once, closed({**OSLO, "arguments": forgotten}))
        assert body["arguments"] == OSLO["arguments"]


def test_of_two_broken_arguments_those_that_were_read_stay() -> None:
    body = body_of(opened(OSLO), arguments('{"ci', item_id="fc"), closed({**OSLO, "arguments": "null"}))
    assert body["arguments"] == '{"ci'


@pytest.mark.parametrize(
    ("words", "status"), [("{}", "completed"), ("", "incomplete"), ('{"ci', "incomplete")]
)
def test_a_call_of_a_cut_response_is_complete_only_with_complete_arguments(words: str, status: str) -> None:
    lines = told(end=final({**OSLO, "arguments": words}, status="incomplete"))
    assert lines[-1] == f"0 - function_call {status} {words}".strip()
    assert ("0 function_call_arguments.done {}" in lines) == (status == "completed")


# -- how items begin and end -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["message", "reasoning", "custom_tool_call", "mcp_call"])
def test_an_item_that_is_announced_as_complete_is_not(kind: str) -> None:
    reading = Reading()
    item = {
        "id": "x",
        "type": kind,
        "name": "n",
        "status": "completed",
        "summary": [{"type": "summary_text", "text": "x"}],
    }
    reading.take(CREATED, event("output_item.added", 0, item=item))
    opening = reading.events[-1]
    assert isinstance(opening, Opened)
    assert opening.body["status"] == "in_progress"
    assert kind != "reasoning" or opening.body["summary"] == []


@pytest.mark.parametrize("status", ["generating", 7, None, ["completed"]])
def test_an_item_ends_with_a_status_that_ends_it(status: object) -> None:
    assert body_of(closed({**SAID, "content": [], "status": status}))["status"] == "completed"


# -- parts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [3, 0, None])
def test_the_first_part_has_the_index_zero_for_clients(first: object) -> None:
    text = {"type": "output_text", "text": "Hi there", "annotations": []}
    lines = told(opened(SAID), delta("Hi", first), closed({**SAID, "content": [text]}))
    assert lines[1:] == [
        "0 content_part.added",
        "0 output_text.delta Hi",
        "0 output_text.delta  there",
        "0 output_text.done Hi there",
        "0 content_part.done Hi there",
        "0 - message completed Hi there",
    ]


def test_parts_that_are_told_in_another_order_in_the_end_are_told_once() -> None:
    content = [
        {"type": "refusal", "refusal": "No."},
        {"type": "output_text", "text": "Hi", "annotations": []},
    ]
    body = body_of(
        opened(SAID), delta("Hi", 5), delta("No", 6, "refusal"), closed({**SAID, "content": content})
    )
    assert [(part["type"], part.get("text") or part.get("refusal")) for part in body["content"]] == [
        ("output_text", "Hi"),
        ("refusal", "No."),
    ]


def test_a_part_that_ends_under_an_unknown_type_is_the_one_that_began() -> None:
    part = {"type": "output_text", "text": "", "annotations": []}
    end = {"type": "output_txt", "text": "Hi"}
    lines = told(
        opened(SAID),
        event("content_part.added", 0, "msg", content_index=0, part=part),
        event("content_part.done", 0, "msg", content_index=0, part=end),
    )
    assert lines[1:5] == [
        "0 content_part.added",
        "0 output_text.delta Hi",
        "0 output_text.done Hi",
        "0 content_part.done Hi",
    ]


def test_an_unknown_part_ends_only_if_it_began() -> None:
    strange = {"type": "output_audio", "data": "x"}
    end = event("content_part.done", 0, "msg", content_index=0, part=strange)
    begin = event("content_part.added", 0, "msg", content_index=0, part=strange)
    assert told(opened(SAID), end, closed({**SAID, "content": []}))[1:] == ["0 - message completed"]
    lines = told(opened(SAID), begin, end, delta("Hi", 1))
    assert lines[1:4] == ["0 content_part.added", "0 content_part.done", "0 content_part.added"]
    assert told(opened(SAID), {**begin, "content_index": None})[1:] == ["0 - message completed"]


def test_a_summary_is_a_summary_and_content_is_none_whatever_its_parts_call_themselves() -> None:
    item = {"id": "rs", "type": "reasoning", "summary": []}
    lines = told(
        event("output_item.added", 0, item=item),
        event("reasoning_summary_part.added", 0, "rs", summary_index=0, part={"type": "x", "text": "So."}),
        event("content_part.added", 0, "rs", content_index=0, part={"type": "summary_text", "text": "Hm."}),
    )
    assert lines[1:5] == [
        "0 reasoning_summary_part.added",
        "0 reasoning_summary_text.delta So.",
        "0 content_part.added",
        "0 reasoning_text.delta Hm.",
    ]


def test_of_reasoning_that_was_streamed_in_part_the_rest_is_streamed_too() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("Hm.", "So.")]
    first = event("reasoning_summary_text.delta", 0, "rs", summary_index=0, delta="Hm.")
    lines = told(first, closed({"id": "rs", "type": "reasoning", "summary": summary}))
    assert "0 reasoning_summary_text.delta So." in lines
    assert lines[-1] == "0 - reasoning Hm.|So."


@pytest.mark.parametrize("content", [7, None, ["x", 7, {"type": 7}, {"type": "summary_text", "text": "x"}]])
def test_a_messages_content_is_a_list_of_its_parts(content: object) -> None:
    assert body_of(closed({**SAID, "content": content}))["content"] == []
