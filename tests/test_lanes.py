"""The short way of a text's deltas: taken where it can be, and never to be told from the long one."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from driving import drive
from exchanges import Steps, ask, painting, turn
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events import reading
from imagecall.events.calls import Limits
from kite import SAID
from rules import read_events
from ways import LITELLM, LLAMA_CPP, OPENAI, TEXTS, VLLM, Style, both_ways, long_way, parsed_deltas, told_turn

pytestmark = pytest.mark.lanes


@pytest.mark.parametrize("style", [VLLM, LITELLM, LLAMA_CPP])
@pytest.mark.parametrize("event_lines", [True, False])
def test_after_its_first_delta_a_text_is_not_parsed_any_more(style: Style, event_lines: bool) -> None:
    body = told_turn(TEXTS, style, event_lines=event_lines)
    with parsed_deltas() as parsed:
        drive(ask(), [body])
    assert len(parsed) == 1
    told = read_events(both_ways(ask(), body))
    assert [one["delta"] for one in told if "delta" in one] == TEXTS


def test_a_server_whose_number_comes_before_the_text_goes_the_long_way() -> None:
    body = told_turn(TEXTS, OPENAI)
    with parsed_deltas() as parsed:
        drive(ask(), [body])
    assert len(parsed) == len(TEXTS)
    both_ways(ask(), body)


def test_chunks_that_are_a_frame_each_leave_as_the_very_bytes_that_came() -> None:
    body = told_turn(TEXTS)
    frames = [frame + b"\n\n" for frame in body.split(b"\n\n") if frame]
    driven = drive(ask(), [body], split=lambda _: frames)
    sent = {id(piece) for piece in driven.sends}
    deltas = [frame for frame in frames if b"output_text.delta" in frame]
    assert all(id(frame) in sent for frame in deltas)


def test_after_a_picture_numbers_and_places_are_set_anew_without_a_parse() -> None:
    turns = [turn(painting("a kite")), told_turn(TEXTS)]
    with parsed_deltas() as parsed:
        driven = drive(ask(), turns)
    assert len(parsed) == 1
    assert b'"output_index":1' in driven.body
    both_ways(ask(), *turns)


def test_text_that_would_be_written_in_another_way_goes_the_long_way_after_a_picture() -> None:
    said = told_turn(["plain", " X", " plain"]).replace(b" X", rb" \u00e9")
    with parsed_deltas() as parsed:
        driven = drive(ask(), [turn(painting("a kite")), said])
    assert [json.loads(data)["delta"] for data in parsed] == ["plain", " é", " plain"]
    assert [one["delta"] for one in read_events(driven.body) if "delta" in one] == ["plain", " é", " plain"]
    both_ways(ask(), turn(painting("a kite")), said)


def test_a_server_that_puts_something_new_into_every_frame_is_given_up() -> None:
    body = told_turn(["a"] * 50)
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
    both_ways(ask(), noisy)


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
    body = told_turn(["fox", "fox", "cat", "dog", "fox"])
    start, delta, rest = body.partition(b"event: response.output_text.delta")
    one, end, others = (delta + rest).partition(b"\n\n")
    changed = re.sub(pattern, first, one, count=1)
    assert changed != one
    body = start + changed + end + re.sub(pattern, later or first, others)
    both_ways(ask(), body)
    both_ways(ask(), turn(painting("a kite")), body)


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
    body = told_turn(["Once", " a", " a", " time", ".", " a", "."])
    first, delta, rest = body.partition(b"event: response.output_text.delta")
    changed = first + (delta + rest).replace(old, new, -1 if everywhere else 1)
    both_ways(ask(), changed)
    frames = changed.split(b"\n\n")
    both_ways(ask(), changed, split=lambda _: [frame + b"\n\n" for frame in frames])


def test_a_text_that_goes_on_after_its_end_is_dropped_as_ever() -> None:
    body = told_turn(TEXTS)
    delta = next(frame for frame in body.split(b"\n\n") if b"output_text.delta" in frame) + b"\n\n"
    both_ways(
        ask(),
        body.replace(b"event: response.content_part.done", delta + b"event: response.content_part.done"),
    )
    both_ways(ask(), body + delta * 3)


def test_an_event_beyond_the_limit_is_refused_as_ever() -> None:
    body = told_turn(["a", "b", "c" * 500, "d"])
    for limits in (Limits(max_event=1_000), Limits(max_event=600)):
        short = drive(ask(), [body], limits=limits).body
        with long_way():
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

    body = told_turn(texts or ["x"], style, start=numbers.choice((0, 0, 5)))
    whole = drive(ask(), [turn(painting("a kite")), body]).body
    with long_way():
        assert drive(ask(), [turn(painting("a kite")), body], split=split).body == whole
    assert drive(ask(), [turn(painting("a kite")), body], split=split).body == whole
    assert drive(ask(), [body], split=split).body == drive(ask(), [body]).body


@given(seed=st.integers())
def test_both_ways_give_the_same_bytes_for_streams_that_are_damaged_anywhere(seed: int) -> None:
    numbers = random.Random(seed)
    body = bytearray(told_turn(TEXTS[:8]))
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
    both_ways(ask(), bytes(body))


def test_nothing_is_sent_short_once_the_turn_was_abandoned() -> None:
    steps = Steps(ask())
    frames = [frame + b"\n\n" for frame in told_turn(["a", "b", "c"]).split(b"\n\n") if frame]
    until = next(place for place, frame in enumerate(frames) if b'"b"' in frame)
    for frame in frames[:until]:
        steps.take(steps.translator.receive(frame))
    steps.take(steps.translator.abandon("for a test"))
    assert steps.translator.reading.lane is None
    assert steps.take(steps.translator.receive(frames[until])) == []


def test_what_was_said_short_stands_in_the_final_response() -> None:
    body = told_turn([*SAID, "."])
    final = read_events(drive(ask(), [body]).body)[-1]["response"]
    assert final["output"][0]["content"][0]["text"] == "".join(SAID) + "."
