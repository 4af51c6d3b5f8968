"""Bytes: what the client gets depends neither on the server's framing nor on where the network cuts it."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from case_files import STREAMED, read_request, read_turns
from driving import bytewise, drive, preview
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.tools.base import ToolCall
from kite import (
    KITE,
    SAID,
    answers,
    kite_stream,
    painted,
    pair,
    run,
    run_case,
    stream,
    usage,
)
from rules import check_stream
from transcript import message, picture, preview_event

# -- the rules of all cases ------------------------------------------------------------------------


def internal_name(case: str) -> str:
    """Name the function that the hosted tool becomes in a case."""
    return "image_generation_2" if case == "name_taken_by_the_client" else "image_generation"


def needed_turns(case: str) -> list[bytes]:
    """Read the turns that will be asked for; a call of the client's own function ends the exchange."""
    return read_turns(case)[: 1 if case == "name_taken_by_the_client" else None]


@pytest.mark.parametrize("case", STREAMED)
def test_a_turn_read_byte_by_byte_gives_the_same_bytes(case: str) -> None:
    request, turns = read_request(case), needed_turns(case)
    driven = run(request, turns, internal=internal_name(case))
    assert drive(request, turns, split=bytewise).body == driven.body


@given(case=st.sampled_from(STREAMED), lengths=st.lists(st.integers(1, 700), min_size=1, max_size=30))
def test_a_turn_cut_anywhere_gives_the_same_bytes(case: str, lengths: list[int]) -> None:
    def split(body: bytes) -> Iterable[bytes]:
        start = 0
        for length in lengths:
            yield body[start : start + length]
            start += length
        yield body[start:]

    request, turns = read_request(case), needed_turns(case)
    assert drive(request, turns, split=split).body == drive(request, turns).body


@given(case=st.sampled_from(STREAMED), share=st.floats(0, 1, exclude_max=True))
def test_a_turn_that_breaks_off_ends_in_a_failed_response(case: str, share: float) -> None:
    whole = read_turns(case)[0]
    end = whole.rfind(b"response.completed") if b"response.completed" in whole else len(whole)
    cut = whole[: int(share * end)]
    driven = drive(read_request(case), [cut])
    assert driven.finish is not None
    assert driven.finish.failed or driven.runs
    if driven.body:
        assert check_stream(driven.body, internal_names=(internal_name(case),)) == []
        assert answers(driven)[-1]["type"] == "response.failed"


# -- framing ---------------------------------------------------------------------------------------


def test_the_sentinel_comes_once_and_last() -> None:
    driven = run_case("done_sentinel")
    assert answers(driven) == kite_stream()
    assert driven.body.count(b"[DONE]") == 1
    assert driven.body.endswith(b"\n\ndata: [DONE]\n\n")


def test_a_sentinel_instead_of_a_terminal_event_is_a_broken_stream() -> None:
    first = read_turns("done_sentinel")[0]
    cut = first[: first.rindex(b"event: response.completed")] + b"data: [DONE]\n\n"
    driven = run(read_request("done_sentinel"), [cut])
    assert answers(driven)[-1]["type"] == "response.failed"


def test_comments_inside_and_between_frames_leave_no_trace() -> None:
    driven = run_case("comments_between_lines")
    assert answers(driven) == kite_stream()
    assert b"PROCESSING" not in driven.body
    assert b"still here" not in driven.body


def test_line_separators_inside_strings_end_no_line() -> None:
    driven = run_case("unicode_line_separators")
    prompt = "a sign that says A\u2028B"
    said = message(0, "msg_0", "line one\u2028li", "ne two\x85end\u2029.")
    drawn = picture(1, painted(prompt=prompt))
    assert answers(driven) == stream(said, drawn, message(2, "msg_1", *SAID), spent=usage(250, 42))
    assert driven.runs[0].arguments["prompt"] == prompt
    assert json.loads(pair(driven.asked[1], 2)[0]["arguments"]) == {"prompt": prompt}


def test_a_byte_order_mark_cut_in_pieces_is_no_part_of_the_first_frame() -> None:
    # Without in_progress nothing but the first frame tells the response's id.
    turns = []
    for turn in read_turns("byte_order_mark"):
        frames = turn.split(b"\n\n")
        turns.append(b"\n\n".join([frames[0], *frames[2:]]))

    def split(body: bytes) -> list[bytes]:
        return [body[:1], body[1:2], body[2:3], body[3:10], body[10:]]

    driven = run(read_request("byte_order_mark"), turns, split=split)
    assert answers(driven) == kite_stream()


@pytest.mark.parametrize("variant", ["", "multiline"])
def test_frames_without_names_spaces_or_one_line_read_like_any_other(variant: str) -> None:
    driven = run_case("unnamed_and_multiline_frames", variant)
    assert answers(driven) == kite_stream()


# -- previews --------------------------------------------------------------------------------------


def test_previews_are_shown_as_many_as_asked_for() -> None:
    request = read_request("request_sent_twice")
    driven = run(request, read_turns("request_sent_twice"), partials=lambda one: preview(one, 3))
    shown = preview(ToolCall("ig_1", {"prompt": KITE}), 2)
    previews = [preview_event(count, one.data.decode(), **one.facts) for count, one in enumerate(shown)]
    expected = stream(
        picture(0, painted(), *previews),
        message(1, "msg_1", *SAID),
        spent=usage(310, 30),
        tools=request["tools"],
    )
    told = answers(driven)
    for one in told:
        if one["type"].endswith("partial_image"):
            one.pop("quality", None)
    assert told == expected
