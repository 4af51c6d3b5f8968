"""What every failed stream must keep."""

from __future__ import annotations

from typing import Any

from accumulator import accumulate_events
from model_server import HOSTED
from rules import check_stream, read_events

__all__ = ["failed"]


def failed(body: bytes, *, pictures: int) -> list[dict[str, Any]]:
    """Check a stream that must end as failed; return its final output."""
    assert check_stream(body, tools=[HOSTED], tool_choice="auto") == []
    accumulate_events(body)
    events = read_events(body)
    assert events[-1]["type"] == "response.failed"
    assert [event["type"] for event in events].count("error") == (not pictures)
    output: list[dict[str, Any]] = events[-1]["response"]["output"]
    assert sum(1 for item in output if item.get("result")) == pictures
    return output
