"""The short way of a text's deltas: taken where it can be, and never to be told from the long one."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from driving import drive
from exchanges import Steps, ask, painting, says, turn
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events import reading
from imagecall.events.calls import Limits
from imagecall.events.turn import Turn
from kite import SAID
from rules import read_events
from transcript import Event, event, number

pytestmark = pytest.mark.lanes

Style = tuple[str, ...]

VLLM: Style = ("content_index", "delta", "item_id", "logprobs", "output_index", "sequence_number", "type")
LITELLM: Style = ("type", "item_id", "output_index", "content_index", "delta", "sequence_number", "model")
LLAMA_CPP: Style = ("type", "item_id", "delta")
OPENAI: Style = ("type", "sequence_number", "item_id", "output_index", "content_index", "delta", "logprobs")

TEXTS = ["Once", " upon", " a", ' "time"', "\n", " lived", " é", " 🦊", "\\", "\t", "", " \u2028", "/"] * 2


@contextmanager
def _long_way() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_LANES", 0)
        yield


@contextmanager
def _parsed_deltas() -> Iterator[list[bytes]]:
    """Note the frames that go the long way and are deltas of a text."""
    parsed: list[bytes] = []
    receive = Turn.receive

    def noting(self: Turn, frame: Any) -> Any:
        if b"text.delta" in frame.data:
            parsed.append(frame.data)
        return receive(self, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turn, "receive", noting)
        yield parsed


def _told(texts: list[str], style: Style = VLLM, *, event_lines: bool = True, start: int = 0) -> bytes:
    """Tell a turn that says something, its deltas with just the keys of the style, in that order."""
    frames = []
    for one in number(read_events(turn(says("".join(texts))))):
        if one["type"] == "response.output_text.delta":
            continue
        frames.append({**one, "sequence_number": one["sequence_number"] + start})
        if one["type"] == "response.content_part.added":
            frames += [
                event("output_text.delta", 0, "msg_a", content_index=0, delta=text, logprobs=[], model="m")
                for text in texts
            ]
    body = b""
    for count, one in enumerate(frames):
        one["sequence_number"] = count + start
        shown = {key: one[key] for key in style} if "delta" in one else one
        data = json.dumps(shown, separators=(",", ":"), ensure_ascii=False).encode()
        body += (b"event: %b\n" % one["type"].encode() if event_lines else b"") + b"data: %b\n\n" % data
    return body


def _both_ways(request: Event, *turns: bytes, split: Any = lambda body: [body]) -> bytes:
    """Drive an exchange the short way and the long way: nobody can tell which was which."""
    short = drive(request, turns, split=split)
    with _long_way():
        long = drive(request, turns, split=split)
    assert short.body == long.body
    assert short.asked == long.asked
    assert short.finish == long.finish
    return short.body


@pytest.mark.parametrize("style", [VLLM, LITELLM, LLAMA_CPP])
@pytest.mark.parametrize("event_lines", [True, False])
def test_after_its_first_delta_a_text_is_not_parsed_any_more(style: Style, event_lines: bool) -> None:
    body = _told(TEXTS, style, event_lines=event_lines)
    with _parsed_deltas() as parsed:
        drive(ask(), [body])
    assert len(parsed) == 1
    told = read_events(_both_ways(ask(), body))
    assert [one["delta"] for one in told if "delta" in one] == TEXTS


def test_a_server_whose_number_comes_before_the_text_goes_the_long_way() -> None:
    body = _told(TEXTS, OPENAI)
    with _parsed_deltas() as parsed:
        drive(ask(), [body])
    assert len(parsed) == len(TEXTS)
    _both_ways(ask(), body)


def test_chunks_that_are_a_frame_each_leave_as_the_very_bytes_that_came() -> None:
    body = _told(TEXTS)
    frames = [frame + b"\n\n" for frame in body.split(b"\n\n") if frame]
    driven = drive(ask(), [body], split=lambda _: frames)
    sent = {id(piece) for piece in driven.sends}
    deltas = [frame for frame in frames if b"output_text.delta" in frame]
    assert all(id(frame) in sent for frame in deltas)


def test_after_a_picture_numbers_and_places_are_set_anew_without_a_parse() -> None:
    turns = [turn(painting("a kite")), _told(TEXTS)]
    with _parsed_deltas() as parsed:
        driven = drive(ask(), turns)
    assert len(parsed) == 1
    assert b'"output_index":1' in driven.body
    _both_ways(ask(), *turns)


def test_text_that_would_be_written_in_another_way_goes_the_long_way_after_a_picture() -> None:
    said = _told(["plain", " X", " plain"]).replace(b" X", rb" \u00e9")
    with _parsed_deltas() as parsed:
        driven = drive(ask(), [turn(painting("a kite")), said])
    assert [json.loads(data)["delta"] for data in parsed] == ["plain", " é", " plain"]
    assert [one["delta"] for one in read_events(driven.body) if "delta" in one] == ["plain", " é", " plain"]
    _both_ways(ask(), turn(painting("a kite")), said)


def test_a_server_that_puts_something_new_into_every_frame_is_given_up() -> None:
    body = _told(["a"] * 50)
    noisy = b"".join(
        frame.replace(b'"logprobs":[]', b'"logprobs":[],"obfuscation":"%d"' % count) + b"\n\n"
        for count, frame in enumerate(body.split(b"\n\n"))
        if frame
    )
    learned = 0
    after = reading.Lane.after

    def counting(*given: Any) -> Any:
        nonlocal learned
        learned += 1
        return after(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.Lane, "after", counting)
        drive(ask(), [noisy])
    assert learned == 8
    _both_ways(ask(), noisy)


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
    body = _told(["a", " longer one", "", "é"] * 260, style, event_lines=event_lines, start=start)
    turns = [turn(painting("a kite")), body] if painted else [body]
    with _taken_singly() as taken, _parsed_deltas() as parsed:
        driven = drive(ask(), turns)
    assert len(parsed) == 1
    assert len(taken) <= 1, "what follows the last delta, at most"
    told = read_events(driven.body)
    assert "".join(one["delta"] for one in told if "delta" in one) == "a longer oneé" * 260
    _both_ways(ask(), *turns)
    _both_ways(ask(), *turns, split=lambda body: [body[at : at + 9_999] for at in range(0, len(body), 9_999)])


def test_a_percent_sign_in_what_surrounds_the_texts_stands_for_itself() -> None:
    body = _told(["50%", " %d %b %s", "%"] * 9).replace(b'"msg_a"', b'"msg_%d%b%%"')
    with _taken_singly() as taken:
        drive(ask(), [body])
    assert len(taken) <= 1
    _both_ways(ask(), body)
    _both_ways(ask(), turn(painting("a kite")), body)


def test_what_would_be_written_in_another_way_makes_its_whole_run_go_one_by_one() -> None:
    said = _told(["plain", " X", " plain", " more", " and", " more"]).replace(b" X", rb" \u00e9")
    with _taken_singly() as taken:
        drive(ask(), [turn(painting("a kite")), said])
    assert len(taken) > 3
    _both_ways(ask(), turn(painting("a kite")), said)


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
    body = _told(["plain", *(f"#{place}#" for place, _ in enumerate(values)), " plain", " again"])
    for place, value in enumerate(values):
        body = body.replace(f'"#{place}#"'.encode(), value.encode())
    _both_ways(ask(), body)
    _both_ways(ask(), turn(painting("a kite")), body)
    frames = body.split(b"\n\n")
    _both_ways(ask(), body, split=lambda _: [frame + b"\n\n" for frame in frames])


@pytest.mark.parametrize(
    ("pattern", "first", "later"),
    [
        (rb'"delta":("\w+")', rb'"x":{"delta":\1},"delta" :"fox"', None),
        (rb'"delta":("\w+")', rb'"x":{"delta":\1},"delta":"\\u0066ox"', None),
        (rb'"delta":("\w+")', rb'"delta":\ndata: \1', rb'"delta":\n\1'),
        (rb'"delta":("\w+")', rb'"delta":\1\ndata: ', rb'"delta":\1\n'),
        (rb'"sequence_number":(\d+)(?=.*delta)', rb'"x":{"sequence_number":\1},"sequence_number" :4', None),
        (rb'"sequence_number":(\d+)(?=.*delta)', rb'"sequence_number":"\1"', None),
    ],
)
def test_nothing_wrong_is_learnt_from_a_frame_whose_text_or_number_could_stand_elsewhere(
    pattern: bytes, first: bytes, later: bytes | None
) -> None:
    body = _told(["fox", "fox", "cat", "dog", "fox"])
    start, delta, rest = body.partition(b"event: response.output_text.delta")
    one, end, others = (delta + rest).partition(b"\n\n")
    changed = re.sub(pattern, first, one, count=1)
    assert changed != one
    body = start + changed + end + re.sub(pattern, later or first, others)
    _both_ways(ask(), body)
    _both_ways(ask(), turn(painting("a kite")), body)


def test_a_frame_may_be_cut_anywhere_after_others() -> None:
    body = _told(["plain", " one", " two", " three"])
    begin, end = body.index(b" two") - 150, body.index(b" three")
    whole = drive(ask(), [body]).body
    for place in range(begin, end):
        assert drive(ask(), [body], split=lambda _, at=place: [body[:at], body[at:]]).body == whole


def test_a_number_that_does_not_follow_goes_the_long_way_in_a_run_as_well() -> None:
    body = _told(["a", "b", "c", "d", "e", "f"]).replace(b'"sequence_number":7', b'"sequence_number":9')
    with _parsed_deltas() as parsed:
        drive(ask(), [body])
    assert len(parsed) > 1
    _both_ways(ask(), body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"delta":" a"', b'"delta":7'),
        (b'"delta":" a"', b'"delta":" a","delta":" b"'),
        (b'"delta":" a"', b'"delta":" a","x":{"delta":" a"}'),
        (b'"delta":" a"', b'"delta":" \x01"'),
        (b'"delta":" a"', b'"delta":" \xff"'),
        (b'"delta":" a"', rb'"delta":" \ud800"'),
        (b'"delta":" a"', rb'"delta":" \x"'),
        (b'"delta":" a"', b'"delta":" a'),
        (b'"item_id":"msg_a"', b'"item_id":"msg_b"'),
        (b'"output_index":0', b'"output_index":3'),
        (b'"sequence_number":6', b'"sequence_number":60'),
        (b'"sequence_number":6', b'"sequence_number":06'),
        (b'"sequence_number":6', b'"sequence_number":6,"x":{"sequence_number":6}'),
        (b'"sequence_number":6', b'"error":{"message":"no"}'),
        (b"data: {", b"data:  {"),
        (b"\n\n", b"\r\n\r\n"),
        (b"\n\n", b"\n: hello\n\n"),
        (b"\n\n", b"\n\n: hello\n\n"),
        (b"\n\n", b"\nid: 7\n\n"),
        (b"event: response.output_text.delta", b"event: response.refusal.delta"),
        (b'"type":"response.output_text.delta"', b'"type":"response.refusal.delta"'),
    ],
)
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_frame_that_is_not_just_like_the_others_is_understood_as_ever(
    old: bytes, new: bytes, everywhere: bool
) -> None:
    body = _told(["Once", " a", " a", " time", ".", " a", "."])
    first, delta, rest = body.partition(b"event: response.output_text.delta")
    changed = first + (delta + rest).replace(old, new, -1 if everywhere else 1)
    _both_ways(ask(), changed)
    frames = changed.split(b"\n\n")
    _both_ways(ask(), changed, split=lambda _: [frame + b"\n\n" for frame in frames])


def test_a_text_that_goes_on_after_its_end_is_dropped_as_ever() -> None:
    body = _told(TEXTS)
    delta = next(frame for frame in body.split(b"\n\n") if b"output_text.delta" in frame) + b"\n\n"
    _both_ways(
        ask(),
        body.replace(b"event: response.content_part.done", delta + b"event: response.content_part.done"),
    )
    _both_ways(ask(), body + delta * 3)


def test_an_event_beyond_the_limit_is_refused_as_ever() -> None:
    body = _told(["a", "b", "c" * 500, "d"])
    for limits in (Limits(max_event=1_000), Limits(max_event=600)):
        short = drive(ask(), [body], limits=limits).body
        with _long_way():
            assert drive(ask(), [body], limits=limits).body == short


_text = st.text(st.characters(codec="utf-8"), max_size=8)


@given(
    texts=st.lists(_text, max_size=30), seed=st.integers(), style=st.sampled_from([VLLM, LITELLM, LLAMA_CPP])
)
def test_both_ways_give_the_same_bytes_however_the_stream_is_cut(
    texts: list[str], seed: int, style: Style
) -> None:
    numbers = random.Random(seed)

    def split(body: bytes) -> list[bytes]:
        places = sorted(numbers.randrange(len(body) + 1) for _ in range(12))
        return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]

    body = _told(texts or ["x"], style, start=numbers.choice((0, 0, 5)))
    whole = drive(ask(), [turn(painting("a kite")), body]).body
    with _long_way():
        assert drive(ask(), [turn(painting("a kite")), body], split=split).body == whole
    assert drive(ask(), [turn(painting("a kite")), body], split=split).body == whole
    assert drive(ask(), [body], split=split).body == drive(ask(), [body]).body


@given(seed=st.integers())
def test_both_ways_give_the_same_bytes_for_streams_that_are_damaged_anywhere(seed: int) -> None:
    numbers = random.Random(seed)
    body = bytearray(_told(TEXTS[:8]))
    begin = body.index(b"output_text.delta")
    for _ in range(numbers.randint(1, 3)):
        place = numbers.randrange(begin, len(body))
        match numbers.randrange(3):
            case 0:
                body[place] = numbers.choice(b'"\\{}:,0 \n\r\xff')
            case 1:
                del body[place : place + numbers.randint(1, 40)]
            case _:
                body[place:place] = body[numbers.randrange(begin, len(body)) :][: numbers.randint(1, 40)]
    _both_ways(ask(), bytes(body))


def test_nothing_is_sent_short_once_the_turn_was_abandoned() -> None:
    steps = Steps(ask())
    frames = [frame + b"\n\n" for frame in _told(["a", "b", "c"]).split(b"\n\n") if frame]
    until = next(place for place, frame in enumerate(frames) if b'"b"' in frame)
    for frame in frames[:until]:
        steps.take(steps.translator.receive(frame))
    steps.take(steps.translator.abandon("for a test"))
    assert steps.translator.reading.lane is None
    assert steps.take(steps.translator.receive(frames[until])) == []


def test_what_was_said_short_stands_in_the_final_response() -> None:
    body = _told([*SAID, "."])
    final = read_events(drive(ask(), [body]).body)[-1]["response"]
    assert final["output"][0]["content"][0]["text"] == "".join(SAID) + "."
