"""How a turn breaks: frames lost, repeated, swapped, cut, garbled, made up, or wrong in one value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

__all__ = ["JUNK", "Mutation", "mutations", "spots"]

JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 1.5, 10**30, "", "x", "\ud800", " ", [], {}, [[]], [7, None]),
    *({"type": "x"}, {"type": "message"}, {"text": 7}, "response.completed", "image_generation", "fc_1a"),
)

Mutation = Callable[[list[bytes]], list[bytes]]
_place = st.integers(0, 1_000)


def _drop(at: int, count: int) -> Mutation:
    return lambda told: told[: at % (len(told) + 1)] + told[at % (len(told) + 1) + count :]


def _repeat(at: int, to: int) -> Mutation:
    def change(told: list[bytes]) -> list[bytes]:
        place = to % (len(told) + 1)
        return [*told[:place], *told[at % max(len(told), 1) :][:1], *told[place:]]

    return change


def _swap(one: int, other: int) -> Mutation:
    def change(told: list[bytes]) -> list[bytes]:
        swapped = list(told)
        if told:
            here, there = one % len(told), other % len(told)
            swapped[here], swapped[there] = told[there], told[here]
        return swapped

    return change


def _cut(at: int) -> Mutation:
    def change(told: list[bytes]) -> list[bytes]:
        body = b"".join(told)
        return [body[: at * 37 % (len(body) + 1)]]

    return change


def _garble(at: int, by: bytes, length: int) -> Mutation:
    def change(told: list[bytes]) -> list[bytes]:
        body = b"".join(told)
        place = at * 37 % (len(body) + 1)
        return [body[:place] + by + body[place + length :]]

    return change


def _insert(at: int, frame: bytes) -> Mutation:
    return lambda told: [*told[: at % (len(told) + 1)], frame, *told[at % (len(told) + 1) :]]


def _edit(at: int, where: int, value: Any, how: str) -> Mutation:
    """Change one value in the JSON of a frame: set it, delete it, or make it a hundred times as long."""

    def change(told: list[bytes]) -> list[bytes]:
        if not told:
            return told
        place = at % len(told)
        head, mark, data = told[place].partition(b"data: ")
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            return told
        places = list(spots(payload))
        if not places:
            return told
        holder, key = places[where % len(places)]
        if how == "delete":
            del holder[key]
        elif how == "grow":
            holder[key] = holder[key] * 100 if isinstance(holder[key], str | list) else 10**18
        else:
            holder[key] = value
        return [*told[:place], head + mark + json.dumps(payload).encode() + b"\n\n", *told[place + 1 :]]

    return change


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Name every place of a JSON value: what holds it, and under which key."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from spots(value[key])


_LINES = (
    "[DONE]",
    "{",
    "{}",
    "null",
    '{"type":"response.output_item.added","item":{"type":"function_call","name":"image_generation"}}',
    '{"type":"response.output_item.added","item":{"type":"image_generation_call","result":"eA=="}}',
    '{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text"}]}}',
    '{"type":"response.output_item.done","item":{"type":"reasoning","summary":7,"content":[null]}}',
    '{"type":"response.output_item.done","item":{"type":"no_such_item"}}',
    r'{"type":"response.function_call_arguments.delta","delta":"{\"prompt\": \"no\"}"}',
    '{"type":"response.output_text.delta","delta":"x","content_index":3}',
    '{"type":"response.output_text.annotation.added","annotation":{}}',
    '{"type":"response.content_part.added","part":{"type":"refusal"},"output_index":0}',
    '{"type":"response.reasoning_summary_part.done","part":{"type":"summary_text","text":"x"}}',
    '{"type":"response.image_generation_call.partial_image","partial_image_b64":"eA=="}',
    '{"type":"response.image_generation_call.completed"}',
    '{"type":"response.mcp_call_arguments.done","arguments":"{}"}',
    '{"type":"response.audio.delta","delta":"eA=="}',
    '{"type":"response.incomplete","response":{"output":[{"type":"message"},{"type":"function_call"}]}}',
    '{"type":"response.completed","response":{"status":"failed","output":[{"type":"mcp_call"}]}}',
    '{"type":"no.such.event"}',
    '{"error":{"message":"no"}}',
    "[" * 3_000,
)
_FRAMES = [b": \xff\xfe\n\n", b"event: error\n\n", *(b"data: %b\n\n" % line.encode() for line in _LINES)]
_mutation = st.one_of(
    st.builds(_drop, _place, st.integers(1, 4)),
    st.builds(_repeat, _place, _place),
    st.builds(_swap, _place, _place),
    st.builds(_cut, _place),
    st.builds(
        _garble,
        _place,
        st.sampled_from([b'"', b"\\", b"{", b"\n", b"\r", b"\n\n", b"\xff", b"0"]),
        st.integers(0, 3),
    ),
    st.builds(_insert, _place, st.sampled_from(_FRAMES)),
    *[
        st.builds(
            _edit, _place, _place, st.sampled_from(JUNK), st.sampled_from(["set", "set", "delete", "grow"])
        )
    ]
    * 3,
)
mutations = st.lists(_mutation, min_size=1, max_size=3)
