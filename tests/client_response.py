"""A response as its translator builds it, and its frames read back."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from imagecall.events.response import ClientResponse
from imagecall.events.sse import payload_of
from imagecall.events.turn_events import TurnEnded
from transcript import Event, encode

__all__ = ["UPSTREAM", "WHOLE", "client", "ending", "final", "read", "source"]

HOSTED = {"type": "image_generation"}
ECHO = {"tools": [HOSTED], "tool_choice": "auto", "previous_response_id": None}
WHOLE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_790_000_000,
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "m",
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [HOSTED],
    "top_p": None,
    "usage": None,
}
UPSTREAM = {"id": "resp_1", "created_at": 1_790_000_000, "model": "m"}


def client(*, stream: bool = True, begin: bool = True, **defaults: Any) -> ClientResponse:
    """Make a response whose `created` and `in_progress` (numbers 0 and 1) are out."""
    ids: Counter[str] = Counter()

    def new_id(prefix: str) -> str:
        ids[prefix] += 1
        return f"{prefix}_{ids[prefix]}"

    made = ClientResponse(
        echo=ECHO, defaults=defaults, new_id=new_id, now=lambda: 1_800_000_000.7, stream=stream
    )
    if begin:
        made.begin(UPSTREAM)
    return made


def read(frame: bytes) -> Event:
    payload: Event = json.loads(payload_of(frame))
    assert frame == b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), payload_of(frame))
    return payload


def source(payload: Event) -> tuple[Event, bytes]:
    return payload, encode([payload])


def final(response: ClientResponse) -> Event:
    whole: Event = json.loads(b"".join(response.final or ()))
    return whole


def ending(response: ClientResponse, status: str = "completed", **told: Any) -> Event:
    whole: Event = read(response.end(status, TurnEnded(status, told)))["response"]
    return whole
