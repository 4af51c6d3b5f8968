"""The traffic: model server turns, written down once and sent as bytes."""

from __future__ import annotations

import base64
import functools
import itertools
import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any

__all__ = ["DELTAS", "PICTURE_BYTES", "call_turn", "picture", "renamed", "request", "text_turn"]

DELTAS = 2_000
PICTURE_BYTES = 3_000_000
_NUMBER = b"0123456789"
"""What stands in the ids of items where each turn has a number of its own."""
_numbers = itertools.count()

_WORDS = ["The", " quick", " brown", " fox", ",", " jumps", "\n", " over", ' "lazy"', " dog", " é", "."]
"""About one text in six has a quote, a line end or a letter beyond ASCII, as real answers have."""

_HEAD = {
    "id": "resp_bench",
    "object": "response",
    "created_at": 1_790_000_000,
    "model": "bench",
    "status": "in_progress",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
_USAGE = {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}


def request(model: str, *, tool: bool = True) -> bytes:
    """Make a client's request; `model` tells the upstream what to do."""
    body: dict[str, Any] = {"model": model, "input": "Tell me something.", "stream": True, "store": False}
    if tool:
        body["tools"] = [{"type": "image_generation"}]
    return json.dumps(body).encode()


def renamed(frames: Iterable[bytes]) -> list[bytes]:
    """Give the items of a turn ids of its own: no server uses one twice."""
    number = b"%010d" % next(_numbers)
    return [frame.replace(_NUMBER, number) for frame in frames]


@functools.cache
def text_turn(deltas: int = DELTAS) -> tuple[bytes, ...]:
    """Make a turn that says something in so many deltas, a frame for each event."""
    texts = [_WORDS[index % len(_WORDS)] for index in range(deltas)]
    whole = "".join(texts)
    place = {"item_id": "msg_bench_0123456789", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": whole, "annotations": [], "logprobs": []}
    item = {"id": place["item_id"], "type": "message", "status": "completed", "role": "assistant"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _HEAD},
        {"type": "response.in_progress", "response": _HEAD},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": text, "logprobs": []} for text in texts),
        {"type": "response.output_text.done", **place, "text": whole, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "content": [part]}},
        {"type": "response.completed", "response": _completed({**item, "content": [part]})},
    ]
    return _frames(events)


@functools.cache
def call_turn(name: str = "image_generation") -> tuple[bytes, ...]:
    """Make a turn that calls the image function once, by the name under which it was offered."""
    arguments = json.dumps({"prompt": "a red cat on a blue sofa, in the evening light"})
    place = {"item_id": "fc_bench_0123456789", "output_index": 0}
    item = {
        "id": place["item_id"],
        "type": "function_call",
        "status": "completed",
        "call_id": "call_bench_0123456789",
        "name": name,
        "arguments": arguments,
    }
    pieces = [arguments[start : start + 8] for start in range(0, len(arguments), 8)]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _HEAD},
        {"type": "response.in_progress", "response": _HEAD},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "arguments": ""},
        },
        *({"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces),
        {
            "type": "response.function_call_arguments.done",
            **place,
            "arguments": arguments,
            "name": item["name"],
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": _completed(item)},
    ]
    return _frames(events)


def _completed(item: dict[str, Any]) -> dict[str, Any]:
    return {**_HEAD, "status": "completed", "output": [item], "usage": _USAGE}


def _frames(events: list[dict[str, Any]]) -> tuple[bytes, ...]:
    """Write events as vLLM does: keys in order, the number among them."""
    frames = []
    for number, event in enumerate(events):
        data = json.dumps(
            {**event, "sequence_number": number}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        frames.append(f"event: {event['type']}\ndata: {data}\n\n".encode())
    return tuple(frames)


@functools.cache
def picture(size: int = PICTURE_BYTES) -> bytes:
    """Make a valid PNG of about so many bytes: noise, which cannot be compressed."""
    side = int((size / 3) ** 0.5)
    noise, state = bytearray(), 1
    for _ in range(side * side * 3 // 4 + 1):
        state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        noise += struct.pack("<I", state)
    row = side * 3
    rows = b"".join(b"\0" + noise[line * row : (line + 1) * row] for line in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def picture_base64() -> str:
    """Return the picture as servers send it."""
    return base64.b64encode(picture()).decode()
