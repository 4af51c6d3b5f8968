"""Turns become one response: heads, ids and bytes; objects instead of streams; what was spent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driving import NOW, Driven, JsonAnswer, drive, fail, paint
from exchanges import (
    OPENING,
    WEATHER,
    Steps,
    ask,
    exchange,
    oslo,
    outline,
    painted,
    painting,
    said,
    says,
    turn,
)
from imagecall.events.tools.base import ToolCall, ToolOutcome
from kite import HOSTED, run, usage
from rules import check_response, read_events
from transcript import Event, encode, event, number, reasoning

KITE = turn(painting("a kite"))
DONE = turn(says("Done."), number_of=2)


def last(driven: Driven) -> Event:
    response: Event = read_events(driven.body)[-1]["response"]
    return response


def frames(body: bytes) -> list[bytes]:
    return [one + b"\n\n" for one in body.split(b"\n\n")[:-1]]


# -- the server's own bytes ------------------------------------------------------------------------

TEXT = turn(reasoning(0, "rs_a", "Hm", "m."), says("Hello there.", 1))


def test_a_text_passes_with_the_servers_own_bytes_but_for_its_head_and_end() -> None:
    driven = exchange(ask(), TEXT)
    ours, theirs = frames(driven.body), frames(TEXT)
    assert len(ours) == len(theirs)
    assert ours[2:-1] == theirs[2:-1]
    assert driven.body != TEXT


def test_each_frame_that_comes_alone_leaves_as_the_same_object() -> None:
    pieces = frames(TEXT)
    sends = drive(ask(), [TEXT], split=lambda body: pieces).sends
    assert all(one is other for one, other in zip(sends[1:-1], pieces[2:-1], strict=True))


def test_a_turn_that_comes_in_one_chunk_leaves_in_one_send() -> None:
    assert len(drive(ask(), [TEXT]).sends) == 1


def test_after_a_picture_only_numbers_and_indexes_differ() -> None:
    driven = exchange(ask(), KITE, DONE)
    theirs = read_events(DONE)[2:-1]
    ours = read_events(driven.body)[-len(theirs) - 1 : -1]
    for own, other in zip(ours, theirs, strict=True):
        assert {**own, "output_index": 0, "sequence_number": 0} == {**other, "sequence_number": 0}


def test_data_only_frames_are_written_anew_with_their_names() -> None:
    bare = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in read_events(TEXT))
    assert read_events(exchange(ask(), bare).body) == read_events(exchange(ask(), TEXT).body)


# -- heads -----------------------------------------------------------------------------------------


def without(body: bytes, *names: str) -> bytes:
    return encode([one for one in read_events(body) if one["type"].removeprefix("response.") not in names])


@pytest.mark.parametrize("missing", [["created"], ["in_progress"], ["created", "in_progress"]])
def test_a_missing_head_is_made_up(missing: list[str]) -> None:
    driven = exchange(ask(), without(turn(says("Done.")), *missing))
    created, in_progress = read_events(driven.body)[:2]
    assert (created["type"], in_progress["type"]) == ("response.created", "response.in_progress")
    assert created["response"] == in_progress["response"]
    assert created["response"]["model"] == "m"
    whole = len(missing) == 2
    assert created["response"]["created_at"] == (int(NOW) if whole else 1_790_000_000)
    assert last(driven)["id"] == created["response"]["id"] == "resp_1"


@pytest.mark.parametrize("head", [{}, None, {"id": None}, {"status": "queued", "model": None}])
def test_a_bare_head_is_filled(head: Event | None) -> None:
    events = [event("queued", response=head), *read_events(turn(says("Done.")))[2:]]
    driven = exchange(ask(temperature=0.5), encode(events).replace(b"event: response.queued\n", b""))
    first = read_events(driven.body)[0]["response"]
    assert (first["model"], first["temperature"], first["status"]) == ("m", 0.5, "in_progress")
    assert first["created_at"] == int(NOW)


def test_the_head_is_turn_ones_and_the_rest_is_the_last_turns() -> None:
    driven = exchange(ask(), KITE, turn(says("Done."), number_of=2, model="m2", metadata={"turn": "2"}))
    assert {one["response"]["id"] for one in read_events(driven.body) if "response" in one} == {"resp_1"}
    assert (last(driven)["model"], last(driven)["metadata"]) == ("m2", {"turn": "2"})
    assert last(driven)["created_at"] == 1_790_000_000


def test_tools_choice_and_instructions_are_the_clients_own_everywhere() -> None:
    request = ask(
        tools=[HOSTED, WEATHER],
        tool_choice={"type": "image_generation"},
        instructions="Be brief.",
        previous_response_id="resp_0",
    )
    other: Event = {"tools": [], "tool_choice": "required", "instructions": "x", "previous_response_id": None}
    driven = exchange(request, KITE, turn(says("Done."), number_of=2, **other))
    for one in (one["response"] for one in read_events(driven.body) if "response" in one):
        assert {key: one[key] for key in other} == {key: request[key] for key in other}


# -- ids -------------------------------------------------------------------------------------------


def item_ids(driven: Driven) -> list[str]:
    return [item["id"] for item in last(driven)["output"]]


def test_an_id_that_a_later_turn_uses_again_is_replaced() -> None:
    driven = exchange(ask(), turn(says("Sure."), painting("a kite", 1)), DONE)
    assert item_ids(driven) == ["msg_a", "ig_1", "msg_ig_1"]


def renamed(body: bytes, rename: Any) -> bytes:
    events = read_events(body)
    for count, one in enumerate(events):
        for place, key in ((one, "item_id"), (one.get("item", {}), "id")):
            if key in place:
                place[key] = rename(count)
    return encode(events)


@pytest.mark.parametrize("rename", [lambda count: None, lambda count: f"x{count}", lambda count: ""])
def test_ids_that_are_none_or_change_with_every_event_are_one_to_the_client(rename: Any) -> None:
    driven = exchange(ask(), renamed(turn(says("Sure."), painting("a kite", 1)), rename), DONE)
    expected = [*OPENING, *said("Sure."), *painted("a kite", 1), *said("Done.", 2), "completed"]
    assert outline(driven) == expected
    assert len(set(item_ids(driven))) == 3


@pytest.mark.parametrize("index", [None, 0, 7, -1, "0"])
def test_indexes_that_are_none_or_collide_are_counted_anew(index: object) -> None:
    events = read_events(turn(says("Sure."), painting("a kite", 1)))
    for one in events[2:-1]:
        one["output_index"] = index
    driven = exchange(ask(), encode(events), DONE)
    expected = [*OPENING, *said("Sure."), *painted("a kite", 1), *said("Done.", 2), "completed"]
    assert outline(driven) == expected


# -- objects instead of streams --------------------------------------------------------------------


def as_object(body: bytes) -> JsonAnswer:
    return JsonAnswer(json.dumps(read_events(body)[-1]["response"]).encode())


def silent(driven: Driven) -> Event:
    assert driven.body == b""
    assert driven.finish is not None
    assert not driven.finish.failed
    response: Event = json.loads(driven.finish.response or b"")
    return response


def half(call: ToolCall) -> ToolOutcome:
    return fail(call) if call.id == "ig_1" else paint(call)


EXCHANGES: dict[str, tuple[Event, list[bytes], Any]] = {
    "a text": (ask(), [turn(says("Hello."))], paint),
    "a picture": (ask(), [KITE, DONE], paint),
    "text and a picture": (ask(), [turn(says("Sure."), painting("a kite", 1)), DONE], paint),
    "two pictures": (ask(), [turn(painting("a kite"), painting("a dog", 1, "fc_b")), DONE], paint),
    "one of two fails": (ask(), [turn(painting("a kite"), painting("a dog", 1, "fc_b")), DONE], half),
    "no words": (ask(), [KITE, turn(number_of=2)], paint),
    "a client's call": (ask(tools=[HOSTED, WEATHER]), [turn(painting("a kite"), oslo(1))], paint),
    "incomplete": (ask(), [turn(painting("a kite"), status="incomplete")], paint),
    "reasoning": (ask(), [turn(reasoning(0, "rs_a", "Hm"), painting("a kite", 1)), DONE], paint),
}


@pytest.mark.parametrize(("request_", "turns", "outcome"), EXCHANGES.values(), ids=EXCHANGES)
def test_a_client_that_wants_no_stream_gets_the_same_response(
    request_: Event, turns: list[bytes], outcome: Any
) -> None:
    streamed = exchange(request_, *turns, outcome=outcome)
    objects = [as_object(body) for body in turns]
    unstreamed = drive({**request_, "stream": False}, objects, outcome=outcome)
    assert silent(unstreamed) == last(streamed)
    assert check_response(silent(unstreamed), tools=request_["tools"]) == []
    assert [asked["stream"] for asked in unstreamed.asked] == [False] * len(turns)
    assert silent(drive({**request_, "stream": False}, turns, outcome=outcome)) == last(streamed)


@pytest.mark.parametrize(("request_", "turns", "outcome"), EXCHANGES.values(), ids=EXCHANGES)
def test_a_server_that_answers_a_stream_request_with_an_object_gets_its_client_a_stream(
    request_: Event, turns: list[bytes], outcome: Any
) -> None:
    streamed = run(request_, [as_object(body) for body in turns], outcome=outcome)
    assert last(streamed) == last(exchange(request_, *turns, outcome=outcome))


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"output":null}', b'{"error":{"message":"no"}}', b"7", b"null"]
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_is_no_response_is_none(body: bytes, *, stream: bool) -> None:
    steps = Steps(ask(stream=stream))
    assert steps.take(steps.translator.receive_json(body)) == ["finish"]
    assert (steps.finish.response, steps.finish.failed) == (None, True)


def test_a_stream_that_is_not_declared_as_one_is_read_as_one() -> None:
    driven = run(ask(), [JsonAnswer(KITE), JsonAnswer(DONE)])
    assert driven.body == exchange(ask(), KITE, DONE).body


@pytest.mark.parametrize("stream", [True, False])
def test_an_object_that_says_it_failed_is_the_answer(*, stream: bool) -> None:
    body = json.dumps({"id": "resp_1", "status": "failed", "output": [], "error": {"code": "x"}}).encode()
    driven = drive(ask(stream=stream), [JsonAnswer(body)])
    assert driven.finish is not None
    assert not driven.finish.failed
    assert json.loads(driven.finish.response or b"")["status"] == "failed"


def test_a_failed_object_after_a_picture_keeps_the_picture() -> None:
    failing = JsonAnswer(json.dumps({"status": "failed", "output": []}).encode())
    driven = drive(ask(stream=False), [as_object(KITE), failing])
    assert (silent(driven)["status"], silent(driven)["output"][0]["status"]) == ("failed", "completed")


# -- what was spent --------------------------------------------------------------------------------


def test_usage_is_that_of_all_turns_and_a_turn_without_adds_nothing() -> None:
    def spent(*counts: int) -> Event:
        return dict(zip(("input_tokens", "output_tokens", "total_tokens"), counts, strict=False))

    turns = [
        turn(painting("a kite"), usage=spent(10, 2, 12)),
        turn(painting("a dog"), number_of=2, usage=None),
        turn(says("Done."), number_of=3, usage=spent(30, 4)),
    ]
    assert last(exchange(ask(), *turns))["usage"] == usage(40, 6)
    assert last(exchange(ask(), KITE, DONE))["usage"] is None


def test_what_the_backend_spent_is_told_once_for_each_picture_that_was_made() -> None:
    def costly(call: ToolCall) -> ToolOutcome:
        made = paint(call)
        return ToolOutcome(data=made.data, facts=made.facts, usage={"input_tokens": 5, "output_tokens": 100})

    again = turn(painting("a kite"), number_of=2)
    driven = exchange(
        ask(), turn(painting("a kite"), painting("a dog", 1, "fc_b")), again, DONE, outcome=costly
    )
    assert len(driven.runs) == 2
    assert last(driven)["tool_usage"]["image_gen"] == {
        "input_tokens": 10,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 200,
        "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "total_tokens": 210,
    }


def test_loose_events_and_extras_of_the_end_pass() -> None:
    events = read_events(turn(says("Hi.")))
    events.insert(2, event("audio.delta", delta="x"))
    events[-1]["timings"] = {"ms": 3}
    driven = exchange(ask(), encode(number(events)))
    assert outline(driven)[2] == "audio.delta x"
    assert read_events(driven.body)[-1]["timings"] == {"ms": 3}
