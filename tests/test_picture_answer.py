"""What is read of an answer, however much a server leaves out."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from imagecall.middleware.terminal.picture_answer import PictureAnswer, Problem
from kite import painted, response, stream, usage
from transcript import Event, encode, event, message, picture, preview_event

ITEM = painted()
FAILED: Event = {**ITEM, "status": "failed", "result": "", "error": {"message": "Too dry.", "code": "dry"}}
SPENT = usage(10, 5)


def read(*pieces: bytes, whole: bytes | None = None) -> PictureAnswer:
    """Read an answer by a clock that counts how often it is looked at."""
    answer = PictureAnswer(itertools.count().__next__)
    for piece in pieces:
        answer.feed(200, piece)
    answer.end(b"".join(pieces) if whole is None else whole)
    return answer


def told(*items: list[Event], **fields: Any) -> bytes:
    return encode(stream(*items, spent=SPENT, **fields))


def alone(*events: Event) -> bytes:
    """A stream of just these events, and then the end of the connection."""
    return encode([*events])


def test_a_whole_stream_is_a_picture_words_and_what_it_cost() -> None:
    previews = [preview_event(number, f"QUJ{number}") for number in range(2)]
    body = told(picture(0, ITEM, *previews), message(1, "msg_1", "Here ", "it is."))
    answer = read(*(body[at : at + 7] for at in range(0, len(body), 7)))
    (call,) = answer.calls.values()
    assert (call.state, call.partials, call.preview, call.item) == ("completed", 2, "QUJ1", ITEM)
    assert call.ended is not None
    assert answer.began < call.began < call.ended
    assert answer.pictures == [ITEM]
    assert answer.text == "Here it is."
    assert (answer.response_id, answer.usage, answer.problem) == ("resp_up1", SPENT, None)


@pytest.mark.parametrize(
    ("events", "state", "partials"),
    [
        (1, "in progress", 0),
        (2, "in progress", 0),
        (3, "generating", 0),
        (4, "generating", 1),
        (5, "completed", 1),
    ],
)
def test_a_picture_goes_through_its_states(events: int, state: str, partials: int) -> None:
    answer = PictureAnswer()
    answer.feed(200, alone(*picture(0, ITEM, preview_event(0, "QUJD"))[:events]))
    (call,) = answer.calls.values()
    assert (call.state, call.partials, call.item, call.ended) == (state, partials, None, None)


def test_one_json_object_is_as_good_as_a_stream() -> None:
    said = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi."}, {"type": "x"}]}
    body = json.dumps(response("completed", output=[ITEM, said], usage=SPENT), indent=1).encode()
    answer = read(body)
    assert (answer.pictures, answer.text) == ([ITEM], "Hi.")
    assert (answer.response_id, answer.usage, answer.problem) == ("resp_up1", SPENT, None)


def test_a_server_may_tell_of_a_picture_only_at_the_end() -> None:
    assert read(alone(event("completed", response=response("completed", output=[ITEM])))).pictures == [ITEM]


def test_a_result_that_comes_late_is_taken_and_one_that_is_told_again_is_not() -> None:
    bare = {**ITEM, "result": None, "status": "generating"}
    done = event("output_item.done", output_index=0, item=bare)
    answer = read(alone(done, event("completed", response=response("completed", output=[ITEM]))))
    assert answer.pictures == [ITEM]
    assert answer.calls[ITEM["id"]].state == "completed"
    other = event("completed", response=response("completed", output=[{**ITEM, "result": "AAAA"}]))
    assert read(alone(*picture(0, ITEM), other)).pictures == [ITEM]


def test_texts_without_deltas_are_heard_once() -> None:
    done = event("output_text.done", 0, "msg_1", content_index=0, text="Hello.")
    part = {"type": "output_text", "text": "Hello."}
    said = {"type": "message", "id": "msg_1", "content": [part]}
    end = event("output_item.done", output_index=0, item=said)
    other = event(
        "output_item.done", output_index=1, item={"type": "message", "id": "msg_2", "content": [part]}
    )
    assert read(alone(done, end)).text == "Hello."
    assert read(alone(done, end, other)).text == "Hello.\nHello."


def test_a_failed_picture_is_the_reason() -> None:
    answer = read(told(picture(0, FAILED), message(1, "m", "Sorry.")))
    assert (answer.pictures, answer.problem) == ([], None)
    assert answer.failure == Problem("the picture failed: Too dry.", "dry")
    assert answer.calls[ITEM["id"]].state == "failed"
    silent = read(told(picture(0, {**FAILED, "error": None})))
    assert silent.failure == Problem("the picture failed: no reason given")


def test_a_model_that_only_talks_is_quoted() -> None:
    answer = read(told(message(0, "msg_1", "I ", "cannot draw.")))
    assert answer.failure == Problem("the model made no picture; it said: I cannot draw.")
    assert read(told()).failure == Problem("the model made no picture")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (
            [event("failed", response=response("failed", error={"message": "No.", "code": "server_error"}))],
            ("No.", "server_error"),
        ),
        ([event("failed", response=response("failed", error={}))], ("the response failed", None)),
        ([event("completed", response=response("cancelled"))], ("the response cancelled", None)),
        (
            [
                event(
                    "incomplete",
                    response=response("incomplete", incomplete_details={"reason": "max_output_tokens"}),
                )
            ],
            ("the response is incomplete: max_output_tokens", "max_output_tokens"),
        ),
        (
            [event("incomplete", response=response("incomplete"))],
            ("the response is incomplete: no reason given", None),
        ),
        ([{"type": "error", "message": "Flat.", "code": "c"}], ("Flat.", "c")),
        ([{"type": "error", "error": {"message": "Nested."}}], ("Nested.", None)),
        (
            [{"type": "error", "error": {"message": "First."}}, event("failed", response=response("failed"))],
            ("First.", None),
        ),
        ([{"type": "x", "error": "A word."}], ("A word.", None)),
        (
            [event("in_progress", response=response("in_progress"))],
            ("the answer ended before the response did", None),
        ),
        ([event("completed"), event("created")], ("", None)),
    ],
)
def test_what_went_wrong_is_told(events: list[Event], problem: tuple[str, str | None]) -> None:
    answer = read(alone(*events))
    assert (answer.problem or ("", None)) == problem
    if problem[0]:
        assert answer.failure == problem


@pytest.mark.parametrize("body", [b"data: {\n\n", b"data: [1]\n\n", b"{ no JSON"])
def test_what_is_not_json_is_a_problem_and_no_crash(body: bytes) -> None:
    assert read(body).problem == Problem("the endpoint's answer holds something that is no JSON object")


def test_the_mark_at_a_streams_end_is_no_event() -> None:
    assert read(told(picture(0, ITEM)) + b"data: [DONE]\n\n").problem is None


def test_a_last_event_that_lacks_only_its_empty_line_counts() -> None:
    assert read(told(picture(0, ITEM)).rstrip()).problem is None


def test_a_body_of_another_status_is_not_read() -> None:
    answer = PictureAnswer()
    answer.feed(500, told(picture(0, ITEM)))
    assert answer.calls == {}
