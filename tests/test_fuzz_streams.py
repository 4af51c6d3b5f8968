"""Streams of model servers drawn at random, as they are and damaged: what the client gets is always valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from accumulator import accumulate, accumulate_events, check_types
from deeds import Did, said
from driving import JsonAnswer, drive
from found import FOUND, found_cases
from hypothesis import given, settings
from imagecall.events import reading
from imagecall.events.calls import Limits
from kite import kinds
from manners import events_of, tell
from plain import plain_output
from playing import Played, play
from rules import check_response, check_stream, read_events
from strategies import PROMPTS, TOOLS, Exchange, exchanges, turns
from tally import TRIED

more = settings(max_examples=max(100, settings().max_examples))

HERE = (said("Here."),)
_TEXT_TYPES = {"output_text", "refusal", "reasoning_text", "summary_text"}
_CONTRADICTION = re.compile(
    r"Item \d+: its (arguments|input) are '(.+)', but '(.*)' was streamed\.", re.DOTALL
)


def _known(exchange: Exchange) -> dict[str, Any]:
    request = exchange.request
    return {
        "tools": request["tools"],
        "tool_choice": request.get("tool_choice", "auto"),
        "client_functions": ("weather", "shell"),
        "json_text": "text" in request,
        "native_images": any(b"image_generation_call" in frame for told in exchange.told for frame in told),
    }


def _judge(played: Played, exchange: Exchange, *, broken: bool = False) -> None:
    """Hold a whole stream against every rule, and its end against the object kept."""
    assert played.finish is not None
    if not played.body:
        assert played.finish.response is None
        return
    wrong = check_stream(played.body, **_known(exchange))
    assert [sentence for sentence in wrong if not _excused(sentence, broken=broken)] == []
    last = read_events(played.body)[-1]["response"]
    assert json.loads(played.finish.response or b"null") == last


def _excused(sentence: str, *, broken: bool) -> bool:
    """Excuse what only the server can be blamed for.

    Deltas that are no whole arguments, or that marks led astray, give way to the server's last word on
    them: the item then says something else than was streamed. Parts of unknown types pass as they are.
    """
    if told := _CONTRADICTION.fullmatch(sentence):
        what, final, streamed = told.groups()
        return what == "input" or (_is_object(final) and not _is_object(streamed))
    types = re.findall(r"[({](?:'type': )?'(\w*)'", sentence)
    return broken and bool(set(types) - _TEXT_TYPES)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text.encode().decode("unicode_escape")), dict)
    except ValueError:
        return False


@contextmanager
def _long_way() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_LANES", 0)
        yield


@more
@given(exchanges())
def test_any_turn_in_any_manner_becomes_a_valid_stream(exchange: Exchange) -> None:
    played = play(exchange)
    _judge(played, exchange)
    assert {call.arguments["prompt"] for call in played.runs} <= {*PROMPTS}
    TRIED["streams in any manner"] += 1


@given(exchanges())
def test_the_official_sdk_and_its_types_take_any_stream(exchange: Exchange) -> None:
    body = play(exchange, trouble=True).body
    if body:
        assert check_types(body) == []
        _read_by_the_sdk(body)


@given(exchanges(broken=True))
def test_the_official_sdk_reads_what_becomes_of_a_damaged_turn(exchange: Exchange) -> None:
    body = play(exchange).body
    if body:
        _read_by_the_sdk(body)


def _read_by_the_sdk(body: bytes) -> None:
    last = read_events(body)[-1]
    if last["type"] == "response.completed":
        assert [item.type for item in accumulate(body).output] == kinds(last["response"])
    else:
        accumulate_events(body)
    TRIED["streams read by the official SDK"] += 1


@more
@given(exchanges())
def test_how_a_stream_is_cut_and_which_way_its_deltas_take_changes_nothing(exchange: Exchange) -> None:
    whole = play(exchange, calm=True, whole=True)
    assert play(exchange, calm=True) == whole
    with _long_way():
        assert play(exchange, calm=True) == whole
    TRIED["streams cut at random"] += 1


@more
@given(exchanges())
def test_a_client_that_wants_no_stream_gets_the_object_at_its_end(exchange: Exchange) -> None:
    streamed, plain = play(exchange, trouble=True), play(exchange, trouble=True, stream=False)
    assert streamed.finish is not None
    assert plain.finish is not None
    assert plain.body == b""
    assert (plain.finish.response, plain.finish.failed) == (streamed.finish.response, streamed.finish.failed)
    assert plain.asked[1:] == [{**body, "stream": False} for body in streamed.asked[1:]]
    if plain.finish.response is not None:
        response = json.loads(plain.finish.response)
        wrong = check_response(response, **_known(exchange))
        assert plain.cancelled if response["status"] == "cancelled" else wrong == []
    TRIED["responses without a stream"] += 1


@more
@given(turns)
def test_a_turn_told_as_one_object_leads_to_the_same_response_as_its_stream(deeds: tuple[Did, ...]) -> None:
    request = {"model": "m", "input": "Draw.", "tools": TOOLS}
    outputs = []
    for answers in ([tell(one) for one in (deeds, HERE)], [_object(one) for one in (deeds, HERE)]):
        driven = drive(request, answers[:1], rest=answers[1], limits=Limits(max_turns=2))
        assert driven.finish is not None
        response = json.loads(driven.finish.response or b"")
        assert check_response(response, tools=TOOLS, client_functions=("weather", "shell")) == []
        outputs.append(plain_output(response))
    assert outputs[0] == outputs[1]
    TRIED["response objects"] += 1


def _object(deeds: tuple[Did, ...]) -> JsonAnswer:
    return JsonAnswer(json.dumps(events_of(deeds)[-1]["response"]).encode())


@more
@given(exchanges())
def test_trouble_at_any_time_ends_a_stream_once_and_properly(exchange: Exchange) -> None:
    _judge(play(exchange, trouble=True), exchange)
    TRIED["streams cancelled, abandoned or refused"] += 1


@pytest.mark.parametrize("exchange", FOUND.values(), ids=FOUND)
def test_a_turn_that_once_broke_a_stream_is_valid_for_the_sdks_types_as_well(exchange: Exchange) -> None:
    body = play(exchange).body
    assert check_stream(body, **_known(exchange)) == []
    assert check_types(body) == []


@more
@found_cases
@given(exchanges(broken=True))
def test_a_damaged_turn_becomes_a_valid_stream_all_the_same(exchange: Exchange) -> None:
    _judge(play(exchange), exchange, broken=True)
    _judge(play(exchange, trouble=True), exchange, broken=True)
    TRIED["damaged streams"] += 1


@more
@found_cases
@given(exchanges(broken=True))
def test_how_a_damaged_stream_is_cut_changes_nothing(exchange: Exchange) -> None:
    whole = play(exchange, calm=True, whole=True)
    assert play(exchange, calm=True) == whole
    with _long_way():
        assert play(exchange, calm=True) == whole
    TRIED["damaged streams cut at random"] += 1


@more
@given(exchanges(cut=True))
def test_a_turn_that_breaks_off_paints_only_what_was_asked_for_in_full(exchange: Exchange) -> None:
    played = play(exchange)
    _judge(played, exchange)
    assert {call.arguments["prompt"] for call in played.runs} <= {*PROMPTS}
    TRIED["streams that break off"] += 1
