"""What the translator has decided and nobody has performed yet."""

from __future__ import annotations

from collections.abc import Iterable

from .actions import Action, Send

__all__ = ["Outbox"]


class Outbox:
    """Collects frames and other actions in their order; neighbouring frames leave in one `Send`.

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
            self._actions.append(Send(frames[0] if len(frames) == 1 else b"".join(frames)))
        frames.clear()
