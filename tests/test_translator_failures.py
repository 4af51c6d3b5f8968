"""Turns become one response: model servers that fail, break off, or say too much."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driving import Driven
from exchanges import OPENING, Steps, ask, exchange, failed, outline, painted, painting, said, says, turn
from imagecall.events.calls import Limits
from imagecall.events.response_object import NEUTRAL
from imagecall.events.tools.base import ToolOutcome
from kite import HOSTED
from rules import check_stream, read_events
from transcript import Event, encode, event

KITE = turn(painting("a kite"))
DONE = turn(says("Done."))
RUNNING = ["0 + image_generation_call", "0 in_progress", "0 generating"]
CANCELLED = "0 - image_generation_call failed cancelled a kite"
GIVEN_UP = ["keep the response", CANCELLED, "error", "failed", "finish"]


def cut(body: bytes, before: str) -> bytes:
    """Break a turn off before the last event of a type."""
    return body[: body.rindex(f"event: response.{before}\n".encode())]


def last(driven: Driven) -> Event:
    response: Event = read_events(driven.body)[-1]["response"]
    return response


def frame(payload: Event) -> bytes:
    return b"data: %b\n\n" % json.dumps(payload).encode()


# -- streams that break off ------------------------------------------------------------------------


def test_a_break_inside_the_arguments_runs_nothing_and_fails_the_response() -> None:
    driven = exchange(ask(), cut(turn(says("Sure."), painting("a kite", 1)), "function_call_arguments.done"))
    assert outline(driven) == [
        *OPENING,
        *said("Sure."),
        *failed("invalid_arguments", 1),
        "error",
        "failed",
    ]
    assert driven.runs == []


def test_a_break_while_a_picture_is_made_cancels_it() -> None:
    driven = exchange(ask(), cut(KITE, "completed"))
    assert outline(driven) == [*OPENING, *RUNNING, CANCELLED, "error", "failed"]
    assert [call.id for call in driven.runs] == ["ig_1"]
    assert last(driven)["error"] == {"code": "server_error", "message": NEUTRAL}


def test_a_break_inside_a_text_closes_it_incomplete() -> None:
    driven = exchange(ask(), cut(DONE, "output_text.done"))
    told = said("Done.")
    assert outline(driven) == [*OPENING, *told[:-1], "0 - message incomplete Done.", "error", "failed"]


@pytest.mark.parametrize(
    "body", [b"", b": hush\n\n", b"<html>oops</html>", b"data: [DONE]\n\n", b"data: 7\n\n"]
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_body_that_is_no_stream_is_no_response(body: bytes, *, stream: bool) -> None:
    steps = Steps(ask(stream=stream))
    assert steps.turn(body) == ["finish"]
    assert (steps.finish.response, steps.finish.failed) == (None, True)


@pytest.mark.parametrize("stream", [True, False])
def test_a_broken_stream_is_a_failure_that_may_be_tried_again(*, stream: bool) -> None:
    steps = Steps(ask(stream=stream))
    steps.turn(cut(DONE, "output_text.done"))
    assert steps.finish.failed
    assert json.loads(steps.finish.response or b"")["status"] == "failed"


def test_after_a_finished_picture_a_break_is_no_error_but_a_failed_response() -> None:
    driven = exchange(ask(), KITE, cut(DONE, "output_text.done"))
    assert outline(driven) == [
        *OPENING,
        *painted("a kite"),
        *said("Done.", 1)[:-1],
        "1 - message incomplete Done.",
        "failed",
    ]
    assert driven.finish is not None
    assert not driven.finish.failed


# -- servers that say so ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"type": "error", "error": {"code": "overloaded", "message": "at 10.0.0.7"}}, "overloaded"),
        ({"type": "error", "code": "overloaded", "message": "at 10.0.0.7"}, "overloaded"),
        ({"error": {"code": 500, "message": "at 10.0.0.7", "type": "server_error"}}, "server_error"),
    ],
)
@pytest.mark.parametrize(
    "more", [b"", frame(event("failed", response={"status": "failed"})), b"data: [DONE]\n\n"]
)
def test_an_error_in_any_shape_is_told_once_in_neutral_words(error: Event, code: str, more: bytes) -> None:
    steps_body = cut(KITE, "completed") + frame(error) + more
    driven = exchange(ask(), steps_body)
    assert outline(driven) == [*OPENING, *RUNNING, CANCELLED, "error", "failed"]
    told = read_events(driven.body)[-2]
    assert (told["code"], told["message"], told["error"]["code"]) == (code, NEUTRAL, code)
    assert last(driven)["error"] == {"code": code, "message": NEUTRAL}
    assert b"10.0.0.7" not in driven.body
    assert driven.body.endswith(b"data: [DONE]\n\n") is more.startswith(b"data: [DONE]")


def test_the_servers_own_words_are_kept_apart_and_short_since_they_may_repeat_a_prompt() -> None:
    steps = Steps(ask())
    steps.turn(frame({"error": {"message": "no memory for " + "x" * 900}}))
    assert steps.translator.words == ["no memory for " + "x" * 286]
    assert steps.translator.notes == ["the model server failed: it reported an error"]
    silent = Steps(ask())
    silent.turn(frame(event("failed", response={})))
    assert silent.translator.words == []


def test_an_error_for_a_client_that_wants_no_stream_may_be_tried_again() -> None:
    steps = Steps(ask(stream=False))
    assert steps.turn(frame({"type": "error", "code": "overloaded", "message": "x"})) == ["finish"]
    assert steps.finish.failed


def test_an_event_that_is_not_json_breaks_the_stream_at_once() -> None:
    steps = Steps(ask())
    body = cut(DONE, "output_text.done") + b'data: {"type":"response\n\n'
    assert steps.take(steps.translator.receive(body))[-2:] == ["failed", "finish"]
    assert steps.take(steps.translator.receive(DONE)) == []
    assert steps.take(steps.translator.turn_ended()) == []


def test_a_failed_turn_cancels_its_pictures_and_keeps_the_servers_response() -> None:
    driven = exchange(
        ask(), turn(painting("a kite"), status="failed", error={"code": "x"}, metadata={"a": "b"})
    )
    assert outline(driven) == [*OPENING, *RUNNING, CANCELLED, "error", "failed"]
    assert last(driven)["metadata"] == {"a": "b"}
    assert driven.finish is not None
    assert not driven.finish.failed


def test_an_incomplete_turn_lets_its_pictures_finish_and_asks_no_more() -> None:
    details = {"reason": "max_output_tokens"}
    driven = exchange(ask(), turn(painting("a kite"), status="incomplete", incomplete_details=details))
    assert outline(driven) == [*OPENING, *painted("a kite"), "incomplete"]
    assert last(driven)["incomplete_details"] == details
    assert len(driven.asked) == 1


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_the_status_of_the_response_counts_and_not_the_name_of_the_event(status: str) -> None:
    body = turn(says("Done."), status=status).replace(f"response.{status}".encode(), b"response.completed")
    assert outline(exchange(ask(), body))[-1] == status


def test_a_response_that_is_only_named_failed_completes() -> None:
    body = DONE.replace(b"response.completed", b"response.failed")
    assert outline(exchange(ask(), body)) == [*OPENING, *said("Done."), "completed"]


# -- what is too much ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [
        encode([event("created", response={"id": "resp_2"}), event("completed", response={})]),
        frame({"type": "error", "code": "late"}),
        b"data: {nonsense\n\n<html>",
        b"data: " + b"x" * 9000,
        b"event: a\ndata: " + b"x" * 9000 + b"\n\n: more\n\n",
    ],
)
def test_what_follows_the_terminal_event_is_ignored(garbage: bytes) -> None:
    for body in (turn(says("Done.")), KITE):
        turns = [body + garbage] if body != KITE else [body + garbage, DONE]
        clean = exchange(ask(), *[body, DONE][: len(turns)])
        assert exchange(ask(), *turns, limits=Limits(max_event=5000)).body == clean.body


def test_an_event_beyond_the_limit_breaks_the_stream() -> None:
    body = cut(DONE, "output_text.done") + b"data: " + b"x" * 9000
    driven = exchange(ask(), body, limits=Limits(max_event=5000))
    assert outline(driven)[-2:] == ["error", "failed"]
    steps = Steps(ask(), limits=Limits(max_event=5000))
    steps.turn(body)
    assert steps.translator.notes == ["the model server failed: an event is larger than 5000 bytes"]


@pytest.mark.parametrize(
    "sentinel", [b"data: [DONE]\n\n", b"data: [DONE]\r\n\r\n", b"data:[DONE]\n\ndata: [DONE]\n\n"]
)
def test_the_sentinel_is_mirrored_once_and_last(sentinel: bytes) -> None:
    driven = exchange(ask(), KITE + sentinel, DONE + sentinel)
    assert driven.body.count(b"[DONE]") == 1
    assert driven.body.endswith(b"\n\ndata: [DONE]\n\n")
    assert outline(driven)[-1] == "completed"


def test_a_sentinel_that_only_an_earlier_turn_sent_is_not_mirrored_nor_sent_to_those_who_want_no_stream() -> (
    None
):
    assert b"[DONE]" not in exchange(ask(), KITE + b"data: [DONE]\n\n", DONE).body
    steps = Steps(ask(stream=False))
    assert steps.turn(DONE + b"data: [DONE]\n\n") == ["keep the response", "finish"]


def test_heartbeats_and_unknown_events_leave_no_trace_but_one_note_each() -> None:
    odd: list[Event] = [{"type": "keepalive"}, {"type": "response.thinking"}, {"type": "response.thinking"}]
    middle = DONE.index(b"event: response.output_text.delta")
    noisy = DONE[:middle] + b"".join(map(frame, odd)) + DONE[middle:]
    assert exchange(ask(), noisy).body == exchange(ask(), DONE).body
    steps = Steps(ask())
    steps.turn(noisy)
    assert steps.translator.notes == ["dropped events of the unknown type 'response.thinking'"]


# -- given up from outside -------------------------------------------------------------------------


def test_a_response_is_given_up_while_a_turn_speaks() -> None:
    steps = Steps(ask())
    steps.take(steps.translator.receive(cut(DONE, "output_text.done")))
    lines = steps.take(steps.translator.abandon("too slow", "server_timeout"))
    assert lines[-4:] == ["0 - message incomplete Done.", "error", "failed", "finish"]
    assert read_events(steps.body)[-2]["code"] == "server_timeout"
    assert check_stream(steps.body, tools=[HOSTED]) == []
    assert steps.translator.notes == ["the model server failed: too slow"]
    assert steps.finish.failed


def test_a_response_is_given_up_while_only_a_picture_is_waited_for() -> None:
    steps = Steps(ask())
    steps.turn(KITE)
    assert steps.take(steps.translator.abandon("too slow")) == GIVEN_UP
    assert check_stream(steps.body, tools=[HOSTED]) == []
    for late in (steps.finished("ig_1"), steps.take(steps.translator.abandon("again")), steps.turn(DONE)):
        assert late == []


def test_a_response_is_given_up_while_a_picture_and_the_end_of_the_body_are_waited_for() -> None:
    steps = Steps(ask())
    steps.take(steps.translator.receive(KITE))
    assert steps.take(steps.translator.abandon("too slow")) == GIVEN_UP


def test_a_response_is_given_up_between_two_turns() -> None:
    steps = Steps(ask())
    steps.turn(KITE)
    assert steps.finished("ig_1")[-1] == "ask again"
    assert steps.take(steps.translator.abandon("no answer")) == ["keep the response", "failed", "finish"]
    assert not steps.finish.failed


def test_a_server_that_never_ends_its_body_spoils_nothing_that_is_complete() -> None:
    steps = Steps(ask())
    assert steps.take(steps.translator.receive(DONE))[-1] == "completed"
    assert steps.take(steps.translator.abandon("silent for too long")) == ["finish"]
    assert not steps.finish.failed


@pytest.mark.parametrize("act", ["receive", "receive_json", "turn_ended", "turn_refused", "abandon"])
def test_after_the_end_nothing_is_wanted_any_more(act: str) -> None:
    steps = Steps(ask())
    steps.turn(DONE)
    arguments: dict[str, tuple[Any, ...]] = {
        "receive": (DONE,),
        "receive_json": (b"{}",),
        "turn_refused": (500,),
        "abandon": ("late",),
    }
    assert getattr(steps.translator, act)(*arguments.get(act, ())) == []
    assert steps.translator.tool_finished("ig_1", ToolOutcome()) == []
