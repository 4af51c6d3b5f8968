"""A turn driven the short way and the long way of its text's deltas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from driving import drive
from exchanges import says, turn
from imagecall.events import reading
from imagecall.events.turn import Turn
from rules import read_events
from transcript import Event, event, number

Style = tuple[str, ...]

VLLM: Style = ("content_index", "delta", "item_id", "logprobs", "output_index", "sequence_number", "type")
LITELLM: Style = ("type", "item_id", "output_index", "content_index", "delta", "sequence_number", "model")
LLAMA_CPP: Style = ("type", "item_id", "delta")
OPENAI: Style = ("type", "sequence_number", "item_id", "output_index", "content_index", "delta", "logprobs")

TEXTS = ["Once", " upon", " a", ' "time"', "\n", " lived", " é", " 🦊", "\\", "\t", "", " \u2028", "/"] * 2


@contextmanager
def long_way() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_LANES", 0)
        yield


@contextmanager
def parsed_deltas() -> Iterator[list[bytes]]:
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


def told_turn(texts: list[str], style: Style = VLLM, *, event_lines: bool = True, start: int = 0) -> bytes:
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


def both_ways(request: Event, *turns: bytes, split: Any = lambda body: [body]) -> bytes:
    """Drive an exchange the short way and the long way: nobody can tell which was which."""
    short = drive(request, turns, split=split)
    with long_way():
        long = drive(request, turns, split=split)
    assert short.body == long.body
    assert short.asked == long.asked
    assert short.finish == long.finish
    return short.body
