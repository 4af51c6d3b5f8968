"""What the translator wants done: a closed union, performed in order by whoever drives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .tools.base import ToolCall

__all__ = ["Action", "Finish", "NextTurn", "Run", "Send"]


@dataclass(frozen=True, slots=True)
class Send:
    r"""Bytes for the client: whole frames, each exactly `event: T\ndata: {…}\n\n`."""

    frames: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """Start the tool; report back with `tool_progress` and one `tool_finished`."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class NextTurn:
    """Ask the model server again with this body, after `delay` seconds (a server's Retry-After)."""

    body: Mapping[str, Any]
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Finish:
    """Everything is told: cancel what runs and end the body.

    Attributes:
        response: the final response object as JSON, the same that the stream ended with; None
            when the model server's answer was no response at all and nothing was sent.
        failed: the model server failed before a picture was made; a client that did not ask
            for a stream gets a 502, since trying again costs it nothing.
    """

    response: bytes | None
    failed: bool = False


Action = Send | Run | NextTurn | Finish
