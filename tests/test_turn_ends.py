"""One turn of a model server: how it begins, how it ends, and what is not part of it."""

from __future__ import annotations

import pytest
from imagecall.events.sse import ServerSentEvent
from imagecall.events.turn import Turn
from imagecall.events.turn_events import Delta, Loose, Started, TurnEnded
from transcript import Event, event
from turn_reading import COMPLETED, CREATED, HELLO, Reading, begun, canonical, read, text

OPENED = event("output_item.added", 0, item=begun(HELLO))
SAID = ["0 + message", "0 content_part.added", "0 output_text.delta Hello", "0 output_text.done Hello"]


def end(reading: Reading) -> TurnEnded:
    told = reading.events[-1]
    assert isinstance(told, TurnEnded)
    assert reading.turn.ended is told
    return told


# -- how a turn begins -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["created", "in_progress", "queued"])
def test_the_first_lifecycle_event_starts_the_turn_with_its_response(name: str) -> None:
    reading = Reading()
    assert reading.take(event(name, response={"id": "resp_9"}), CREATED, event("in_progress")) == [
        "started resp_9"
    ]
    assert isinstance(reading.events[0], Started)


@pytest.mark.parametrize(
    "first",
    [
        {"type": "response.created"},
        {"type": "response.created", "response": "x"},
        OPENED,
        text("Hello"),
        event("audio.delta", delta="x"),
        COMPLETED | {"response": None},
        {"type": "error"},
    ],
)
def test_whatever_comes_first_starts_the_turn(first: Event) -> None:
    assert read(first)[0] == "started"


def test_a_stream_that_says_nothing_never_starts() -> None:
    assert read() == ["ended failed"]
    assert read({"type": "keepalive"}, b"[1]", b"[DONE]") == ["ended failed"]


# -- how it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "truth"),
    [
        ("completed", "completed", "completed"),
        ("completed", "incomplete", "incomplete"),
        ("completed", "failed", "failed"),
        ("completed", "cancelled", "failed"),
        ("incomplete", "completed", "completed"),
        ("failed", "completed", "completed"),
        ("completed", None, "completed"),
        ("completed", "in_progress", "completed"),
        ("incomplete", "queued", "incomplete"),
        ("failed", {}, "failed"),
        ("cancelled", None, "failed"),
    ],
)
def test_the_status_of_the_response_is_the_truth(name: str, status: object, truth: str) -> None:
    assert read(CREATED, event(name, response={"status": status}))[-1] == f"ended {truth}"


def test_the_end_tells_the_response_and_what_stood_beside_it() -> None:
    reading = Reading()
    response = {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Too fast."}}
    reading.take(
        CREATED, event("failed", response=response, sequence_number=4, timings={"ms": 3}, error=None)
    )
    told = end(reading)
    assert (told.response, told.extra) == (response, {"timings": {"ms": 3}})
    assert (told.words, told.code, told.broken) == ("Too fast.", "rate_limit_exceeded", False)


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_what_is_open_when_the_response_breaks_off_closes_incomplete(status: str) -> None:
    cut = {**HELLO, "status": "in_progress"}
    for output in ([], [cut]):
        terminal = event(status, response={"status": status, "output": output})
        lines = read(CREATED, OPENED, text("Hello", item_id="msg_a"), terminal)
        assert lines[1:] == [
            *SAID,
            "0 content_part.done Hello",
            "0 - message incomplete Hello",
            f"ended {status}",
        ]


def test_what_a_broken_response_tells_first_in_its_output_is_told() -> None:
    terminal = event("failed", response={"status": "failed", "output": [HELLO]})
    assert read(CREATED, terminal)[1:] == [
        *SAID,
        "0 content_part.done Hello",
        "0 - message completed Hello",
        "ended failed",
    ]


@pytest.mark.parametrize(
    ("payload", "words", "code"),
    [
        ({"type": "error", "error": {"code": "overloaded", "message": "Busy."}}, "Busy.", "overloaded"),
        ({"type": "error", "code": "overloaded", "message": "Busy."}, "Busy.", "overloaded"),
        ({"error": {"code": 500, "message": "Busy.", "type": "server_error"}}, "Busy.", "server_error"),
        ({"error": "Busy."}, "Busy.", "server_error"),
        ({"type": None, "error": {"message": "Busy."}}, "Busy.", "server_error"),
        ({"type": "error", "code": "at 10.0.0.7!", "message": "Busy."}, "Busy.", "server_error"),
        ({"type": "error", "code": "x" * 65, "message": "Busy."}, "Busy.", "server_error"),
        ({"type": "error", "code": "", "message": "Busy."}, "Busy.", "server_error"),
    ],
)
def test_an_error_in_any_shape_fails_the_turn(payload: Event, words: str, code: str) -> None:
    reading = Reading()
    assert reading.take(CREATED, OPENED, payload)[-2:] == ["0 - message incomplete", "ended failed"]
    told = end(reading)
    assert (told.words, told.code, told.broken) == (words, code, False)
    assert words not in told.reason


def test_an_error_without_words_is_told_as_a_whole() -> None:
    reading = Reading()
    reading.take({"type": "error", "error": {"status": 500}})
    assert end(reading).words == "{'status': 500}"
    silent = Reading()
    silent.take(event("failed", response={}))
    assert end(silent).words == ""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"type":"response.output_text.delta","delta":"Hel', "not JSON"),
        (b"  {nonsense}", "not JSON"),
        (b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", "not JSON"),
    ],
)
def test_an_event_that_is_not_json_breaks_the_turn(data: bytes, reason: str) -> None:
    reading = Reading()
    assert reading.take(CREATED, OPENED, data)[-1] == "ended failed"
    assert reason in end(reading).reason
    assert end(reading).broken


def test_a_body_that_ends_without_a_terminal_event_breaks_the_turn() -> None:
    reading = Reading()
    reading.take(CREATED, OPENED, text("Hel", item_id="msg_a"))
    assert reading.lines(reading.turn.close()) == [
        "0 output_text.done Hel",
        "0 content_part.done Hel",
        "0 - message incomplete Hel",
        "ended failed",
    ]
    assert "without a terminal event" in end(reading).reason
    assert end(reading).broken


def test_a_turn_can_be_given_up_from_outside_until_it_has_ended() -> None:
    reading = Reading()
    reading.take(CREATED, OPENED)
    assert reading.lines(reading.turn.abandon("too slow", "server_timeout"))[-1] == "ended failed"
    assert (end(reading).reason, end(reading).code, end(reading).broken) == (
        "too slow",
        "server_timeout",
        True,
    )
    assert reading.turn.abandon("again") == []
    assert reading.turn.close() == []


def test_after_the_end_nothing_counts_but_the_sentinel() -> None:
    reading = Reading()
    reading.take(CREATED, COMPLETED)
    before = reading.turn.sentinel
    late: list[Event | bytes] = [OPENED, {"type": "error"}, b"{nonsense", b"garbage", COMPLETED, CREATED]
    assert reading.take(*late, b"[DONE]", *late, b" [DONE] ") == []
    assert (before, reading.turn.sentinel) == (False, True)
    assert reading.turn.notes == []
    assert reading.turn.close() == []


# -- what is no part of it -------------------------------------------------------------------------


def test_an_event_that_is_no_error_has_no_key_that_sdks_take_for_one() -> None:
    reading = Reading()
    frame = canonical(text("Hello", item_id="msg_a", content_index=0, error={"code": "x"}))
    assert reading.take(CREATED, OPENED, frame)[-1] == SAID[2]
    told = reading.events[-1]
    assert isinstance(told, Delta)
    assert ("error" in told.payload, told.raw) == (False, None)
    kept = canonical(text("!", item_id="msg_a", content_index=0, error=None))
    reading.take(kept)
    told = reading.events[-1]
    assert isinstance(told, Delta)
    assert told.raw is kept.raw


def test_heartbeats_are_swallowed_and_unknown_events_dropped_with_one_note_each() -> None:
    reading = Reading()
    names = ["keepalive", "ping", "response.keep_alive", "response.keepalive", "heartbeat"]
    assert reading.take(*({"type": name} for name in names)) == []
    assert reading.turn.notes == []
    odd: list[Event | bytes] = [
        {"type": "response.thought"},
        {"type": "x" * 99},
        {},
        b"[]",
        b"nonsense",
        b"7",
    ]
    assert reading.take(*odd, *odd) == []
    assert reading.turn.notes == [
        "dropped events of the unknown type 'response.thought'",
        f"dropped events of the unknown type '{'x' * 80}'",
        "dropped events of the unknown type ''",
        "dropped data that is no JSON object",
    ]


def test_notes_do_not_fill_the_memory() -> None:
    reading = Reading()
    reading.take(*({"type": f"x{number}"} for number in range(50)))
    assert len(reading.turn.notes) == 20


def test_known_events_of_no_item_are_loose_and_keep_their_frame() -> None:
    reading = Reading()
    frame = canonical(event("audio.transcript.delta", delta="x"))
    assert reading.take(CREATED, frame, event("audio.done"))[1:] == [
        "loose audio.transcript.delta",
        "loose audio.done",
    ]
    first, second = reading.events[1:]
    assert isinstance(first, Loose)
    assert isinstance(second, Loose)
    assert first.raw is frame.raw
    assert second.raw is None


def test_a_payload_without_any_type_is_unknown() -> None:
    turn = Turn(name=None)
    assert turn.receive(ServerSentEvent(None, b'{"delta":"x"}', None)) == []
    assert turn.receive(ServerSentEvent(b"\xff", b'{"type":null}', None)) == []
    assert len(turn.notes) == 2
