"""Frames of one chunk that are taken together: never to be told from those that are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from driving import drive
from exchanges import ask, painting, turn
from imagecall.events import reading
from rules import read_events
from ways import LLAMA_CPP, VLLM, Style, both_ways, parsed_deltas, told_turn

pytestmark = pytest.mark.lanes


@contextmanager
def _taken_singly() -> Iterator[list[bytes]]:
    """Note the frames that lanes take one by one."""
    taken: list[bytes] = []
    take = reading.Lane.take

    def noting(self: reading.Lane, frame: bytes) -> bytes:
        taken.append(frame)
        return take(self, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.Lane, "take", noting)
        yield taken


@pytest.mark.parametrize("style", [VLLM, LLAMA_CPP])
@pytest.mark.parametrize("event_lines", [True, False])
@pytest.mark.parametrize("start", [0, 985, 10**17])
@pytest.mark.parametrize("painted", [False, True])
def test_frames_that_come_together_are_taken_together(
    style: Style, event_lines: bool, start: int, painted: bool
) -> None:
    body = told_turn(["a", " longer one", "", "é"] * 260, style, event_lines=event_lines, start=start)
    turns = [turn(painting("a kite")), body] if painted else [body]
    with _taken_singly() as taken, parsed_deltas() as parsed:
        driven = drive(ask(), turns)
    assert len(parsed) == 1
    assert len(taken) <= 1, "what follows the last delta, at most"
    told = read_events(driven.body)
    assert "".join(one["delta"] for one in told if "delta" in one) == "a longer oneé" * 260
    both_ways(ask(), *turns)
    both_ways(ask(), *turns, split=lambda body: [body[at : at + 9_999] for at in range(0, len(body), 9_999)])


def test_a_percent_sign_in_what_surrounds_the_texts_stands_for_itself() -> None:
    body = told_turn(["50%", " %d %b %s", "%"] * 9).replace(b'"msg_a"', b'"msg_%d%b%%"')
    with _taken_singly() as taken:
        drive(ask(), [body])
    assert len(taken) <= 1
    both_ways(ask(), body)
    both_ways(ask(), turn(painting("a kite")), body)


def test_what_would_be_written_in_another_way_makes_its_whole_run_go_one_by_one() -> None:
    said = told_turn(["plain", " X", " plain", " more", " and", " more"]).replace(b" X", rb" \u00e9")
    with _taken_singly() as taken:
        drive(ask(), [turn(painting("a kite")), said])
    assert len(taken) > 3
    both_ways(ask(), turn(painting("a kite")), said)


@pytest.mark.parametrize(
    "values",
    [
        ['"a"', '"b","c"'],
        ['["a"', '"b"]', '"c","d"'],
        ['"a', 'b"', '"c","d"'],
        ['"a"', "", '"c","d"'],
        ['"a"', '["b"]', '"c"'],
        ['"a"', "7", "null"],
        ['"a"', '"b","delta":"c"', '"d"'],
        ['"a"', ' "b" ', '\t"c"'],
        ['"a"', '\r"b"', '"c"'],
        ['"a"', '"b"\r', '"c"'],
        ['"a"', '\n"b"', '"c"'],
        ['"a"', '"b"\n', '"c"'],
    ],
)
def test_no_run_of_frames_is_taken_that_are_whole_only_together(values: list[str]) -> None:
    body = told_turn(["plain", *(f"#{place}#" for place, _ in enumerate(values)), " plain", " again"])
    for place, value in enumerate(values):
        body = body.replace(f'"#{place}#"'.encode(), value.encode())
    both_ways(ask(), body)
    both_ways(ask(), turn(painting("a kite")), body)
    frames = body.split(b"\n\n")
    both_ways(ask(), body, split=lambda _: [frame + b"\n\n" for frame in frames])


def test_a_frame_may_be_cut_anywhere_after_others() -> None:
    body = told_turn(["plain", " one", " two", " three"])
    begin, end = body.index(b" two") - 150, body.index(b" three")
    whole = drive(ask(), [body]).body
    for place in range(begin, end):
        assert drive(ask(), [body], split=lambda _, at=place: [body[:at], body[at:]]).body == whole


def test_a_number_that_does_not_follow_goes_the_long_way_in_a_run_as_well() -> None:
    body = told_turn(["a", "b", "c", "d", "e", "f"]).replace(b'"sequence_number":7', b'"sequence_number":9')
    with parsed_deltas() as parsed:
        drive(ask(), [body])
    assert len(parsed) > 1
    both_ways(ask(), body)
