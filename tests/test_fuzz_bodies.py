"""Requests drawn at random, in order and damaged: what the model server gets is what a strict one takes."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from body_strategies import BASE64, Asked, asked, damaged
from hypothesis import given, settings
from imagecall.events.errors import RequestError
from imagecall.events.lowering import LoweredRequest, lower_request, references
from imagecall.events.wire import dumps
from imagecall.middleware.embedded.strict_request import check_request
from tally import TRIED

more = settings(max_examples=max(100, settings().max_examples))

Json = dict[str, Any]


def _lowered(given: Asked) -> LoweredRequest | None:
    """Lower a request, and see that nothing in it changes and that the same gives the same bytes."""
    before = copy.deepcopy(given.body)
    references(given.body)
    lowered = lower_request(given.body, given.known, given.options)
    assert given.body == before
    again = lower_request(copy.deepcopy(given.body), given.known, given.options)
    if lowered is None:
        assert again is None
        return None
    assert again is not None
    for one, other in ((lowered.body, again.body), (lowered.later, again.later), (lowered.echo, again.echo)):
        assert dumps(one) == dumps(other)
    return lowered


def _strict(body: Mapping[str, Any]) -> Json:
    """Leave of a request what a strict server knows: functions, texts, and items of four types."""
    items = body.get("input")
    listed = items if isinstance(items, list) else []
    tools = [*(body.get("tools") or [])]
    kept = []
    for item in listed:
        if item.get("type") == "additional_tools":
            tools += item["tools"]
        else:
            kept.append(_in_words(item))
    functions: dict[str, Json] = {tool["name"]: tool for tool in tools if tool["type"] == "function"}
    known = {key: body[key] for key in ("model", "stream", "tool_choice", "instructions") if key in body}
    return {**known, "tools": list(functions.values()), "input": kept if isinstance(items, list) else items}


def _in_words(item: Json) -> Json:
    """Take the pictures out of a user's message and of a client's output."""
    if isinstance(item.get("output"), list):
        return {**item, "output": "a picture"}
    if item.get("role") == "user" and isinstance(item["content"], list):
        return {**item, "content": [part for part in item["content"] if part["type"] == "input_text"]}
    return item


def _no_trace(body: Mapping[str, Any]) -> None:
    """The model server hears of no hosted tool, no picture's item, and no base64 but the client's own."""
    lists = [
        body.get("tools"),
        *(item.get("tools") for item in _items(body) if item.get("type") == "additional_tools"),
    ]
    for tools in lists:
        kinds = (
            [tool.get("type") for tool in tools or () if isinstance(tool, dict)]
            if isinstance(tools, list)
            else []
        )
        assert "image_generation" not in kinds
    assert "image_generation_call" not in [item.get("type") for item in _items(body)]
    ours = [item for item in _items(body) if str(item.get("call_id", "")).startswith("call_ig_")]
    assert BASE64 not in json.dumps([item for item in ours if isinstance(item.get("output", ""), str)])


def _items(body: Mapping[str, Any]) -> list[Json]:
    items = body.get("input")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


@more
@given(asked())
def test_a_strict_server_takes_any_request_that_was_in_order(given_: Asked) -> None:
    lowered = _lowered(given_)
    if lowered is None:
        return
    owed = [item["call_id"] for item in given_.known.owed]
    for body in (lowered.body, lowered.later, lowered.next_turn([], [], last=True)):
        _no_trace(body)
        checked = _strict(body)
        if isinstance(checked["input"], list):
            checked["input"] = [item for item in checked["input"] if item.get("call_id") not in owed]
        check_request(checked)
    TRIED["requests in order"] += 1


@more
@given(asked())
def test_what_is_not_ours_travels_on_untouched_and_in_its_order(given_: Asked) -> None:
    lowered = _lowered(given_)
    if lowered is None:
        return
    before, after = given_.body, lowered.body
    free = ("input", "tools", "tool_choice", "stream", "instructions", "background", "previous_response_id")
    assert after.get("previous_response_id") == given_.known.previous
    assert {key: value for key, value in before.items() if key not in free} == {
        key: value for key, value in after.items() if key not in free
    }
    own = [tool for tool in before.get("tools") or [] if tool["type"] != "image_generation"]
    sent = [tool for tool in after.get("tools") or [] if tool in own]
    assert sent == [tool for tool in own if tool in sent]
    if not isinstance(before.get("tool_choice"), dict):
        assert sent == own
    said = [
        item
        for item in _items(before)
        if item.get("role") in ("user", "system", "developer") and "tools" not in item
    ]
    assert [item for item in _items(after) if item in said] == said
    TRIED["requests compared part by part"] += 1


@more
@given(damaged())
def test_a_damaged_request_is_lowered_all_the_same_or_refused_by_the_name_of_its_field(given_: Asked) -> None:
    before = copy.deepcopy(given_.body)
    try:
        lowered = _lowered(given_)
    except RequestError as error:
        assert error.param  # noqa: PT017  either end is asserted
        assert error.status == 400  # noqa: PT017  it need not be raised
        lowered = None
    assert given_.body == before
    if lowered is not None:
        dumps(lowered.body)
        _no_trace(lowered.body)
        again = lower_request(lowered.body, given_.known, given_.options)
        assert again is None or again.tool is None or given_.known.previous or given_.known.owed
    TRIED["damaged requests"] += 1
