"""What the translator has decided and nobody has performed yet."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from .actions import Action, Send

__all__ = ["Outbox"]

_LARGE = 64 << 10
"""Bytes of a frame that leaves alone: a picture is not worth a copy to save a call."""


class Outbox:
    """Collects frames and other actions in their order; small neighbouring frames share a `Send`.

    Args:
        stream: False drops all frames: the client gets one object at the end.

    Attributes:
        frames: those that wait. Whoever makes frames appends them here.
    """

    def __init__(self, *, stream: bool) -> None:
        self.frames: list[bytes] = []
        self._actions: list[Action] = []
        self._stream = stream

    def act(self, action: Action) -> None:
        """Add an action that comes after the frames so far."""
        self._flush()
        self._actions.append(action)

    def keep(self, actions: Iterable[Action]) -> None:
        """Add actions that come before the frames to come; those that wait still leave in one `Send`."""
        self._actions += actions

    def take(self) -> list[Action]:
        """Hand over everything."""
        self._flush()
        actions, self._actions = self._actions, []
        return actions

    def _flush(self) -> None:
        frames = self.frames
        if frames and self._stream:
            if len(frames) == 1 or max(map(len, frames)) <= _LARGE:
                self._actions.append(Send(b"".join(frames)))
            else:
                for large, some in groupby(frames, lambda frame: len(frame) > _LARGE):
                    pieces = [*some]
                    self._actions += map(Send, pieces if large else [b"".join(pieces)])
        frames.clear()
