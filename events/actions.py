"""What the translator wants done: a closed union, performed in order by whoever drives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .tools.base import ToolCall

__all__ = ["Action", "Finish", "KeepPicture", "KeepResponse", "NextTurn", "Run", "Send"]


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
class KeepPicture:
    """Keep a finished picture; the frames that show it come after this.

    Attributes:
        item: the finished image item, without its `result`.
        data: that result, bare base64.
    """

    item: Mapping[str, Any]
    data: bytes


@dataclass(frozen=True, slots=True)
class KeepResponse:
    """Keep what the client is about to be told last; the terminal event's frame comes after this.

    Attributes:
        response: the final response object, image items without `result`.
        upstream: the model server's own id of each turn, in order; the last one continues the
            response. Empty when the server gives none.
        pictures: the ids of the finished image items, in the order of the output.
        owed: outputs of calls in the last turn that the model server has not been given: whoever
            continues its state, and does not send the items again, must send these first.
    """

    response: Mapping[str, Any]
    upstream: tuple[str, ...]
    pictures: tuple[str, ...]
    owed: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """Everything is told: cancel what runs and end the body.

    Attributes:
        pieces: the final response object as JSON, the same that the stream ended with, in pieces, since
            whoever reads a stream has no use for another copy of its pictures; None when the model
            server's answer was no response at all and nothing was sent.
        failed: the model server failed before a picture was made; a client that did not ask
            for a stream gets a 502, since trying again costs it nothing.
        told: why, where a limit of ours was met; else "", and the client hears a neutral sentence.
        stopping: it failed because this server stops; another one may be asked at once.
    """

    pieces: tuple[bytes, ...] | None
    failed: bool = False
    told: str = ""
    stopping: bool = False

    @property
    def response(self) -> bytes | None:
        """The final response object in one piece."""
        return None if self.pieces is None else b"".join(self.pieces)


Action = Send | Run | KeepPicture | KeepResponse | NextTurn | Finish
