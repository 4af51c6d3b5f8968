"""What is asked of every model server, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from situations import SITUATIONS as RECORDED

__all__ = ["BROKEN", "SITUATIONS", "Situation", "count"]

Json = dict[str, Any]

BROKEN = "broken"
"""The declared image model whose pictures fail."""

PICTURE, FAILED, MESSAGE, CALL = "picture", "failed picture", "message", "function_call"


@dataclass(frozen=True, slots=True)
class Situation:
    """One request, or a conversation of two.

    Attributes:
        name: what it shows.
        request: the client's request, without its model.
        wanted: kinds of output items and how many of each there must at least be.
        free: whether the model may choose to do something else.
        then: the second request, which continues the first; `wanted` is about it.
        background: the response is made without its client, who then reads, looks up and deletes it.
    """

    name: str
    request: Json
    wanted: dict[str, int]
    free: bool = False
    then: Json | None = None
    background: bool = False


def count(output: list[Json]) -> dict[str, int]:
    """Count the kinds of a response's output items."""
    counted: dict[str, int] = {}
    for item in output:
        kind = item["type"]
        if kind == "image_generation_call":
            kind = PICTURE if item["status"] == "completed" else FAILED
        counted[kind] = counted.get(kind, 0) + 1
    return counted


def _ask(text: str, *, forced: bool = True, stream: bool = True, **tool: Any) -> Json:
    return {
        "input": [{"role": "user", "content": text}],
        "tools": [{"type": "image_generation", "size": "256x256", **tool}],
        "tool_choice": {"type": "image_generation"} if forced else "auto",
        "stream": stream,
        "temperature": 0,
        "max_output_tokens": 200,
    }


_RECORDED = {situation.name: situation.request for situation in RECORDED}
_CAT = "Draw a red cat"
_ONE = {PICTURE: 1, MESSAGE: 1}

SITUATIONS = (
    Situation("text only", _RECORDED["text-only"], {MESSAGE: 1}, free=True),
    Situation("one picture", _RECORDED["one-picture"], _ONE, free=True),
    Situation("forced, with previews", _ask(_CAT, partial_images=2), _ONE),
    Situation("forced, not streamed", _ask(_CAT, stream=False), _ONE),
    Situation("two pictures", _RECORDED["parallel-pictures"], {PICTURE: 2, MESSAGE: 1}, free=True),
    Situation("with the client's function", _RECORDED["mixed-calls"], {PICTURE: 1, CALL: 1}, free=True),
    Situation("two turns, an edit", _ask(_CAT), _ONE, then=_ask("Make it blue", action="edit")),
    Situation("a failing picture", _ask(_CAT, model=BROKEN), {FAILED: 1, MESSAGE: 1}),
    Situation("in the background", _ask(_CAT, stream=False), _ONE, background=True),
)
