"""One turn's bytes: nearly all deltas of text go the short way, everything else through decoder and turn."""

from __future__ import annotations

from collections.abc import Callable

from .errors import RemoteProtocolError
from .lanes import Lane
from .response import ClientResponse
from .sse import ServerSentEvent, SSEDecoder, frame_end
from .turn import Turn
from .turn_events import Delta, TurnEvent
from .wire import FAMILIES

__all__ = ["Reading"]

_LANES = 8
"""Lanes in vain before no more are tried: some servers put something new into every frame."""

_DELTAS = frozenset(family.delta for family in FAMILIES.values())


class Reading:
    """Reads one turn.

    Args:
        turn: makes events of frames.
        client: has the numbers.
        frames: takes the client's frames; `on_event` appends to it, too.
        on_event: takes the turn's events.
        max_event: bytes of one event of the server.

    Attributes:
        lane: takes the next frame, if it is what is to be expected; None where nothing is.
    """

    __slots__ = (
        "_client",
        "_decoder",
        "_frames",
        "_lane",
        "_lanes_left",
        "_max_event",
        "_on_event",
        "_turn",
        "lane",
    )

    def __init__(
        self,
        turn: Turn,
        client: ClientResponse,
        frames: list[bytes],
        on_event: Callable[[TurnEvent], None],
        max_event: int,
    ) -> None:
        self._turn = turn
        self._client = client
        self._frames = frames
        self._on_event = on_event
        self._max_event = max_event
        self._decoder = SSEDecoder(max_event=max_event)
        self._lane: Lane | None = None
        self.lane: Lane | None = None
        self._lanes_left = _LANES

    def stop(self) -> None:
        """Let nothing go the short way any more: the turn was ended from outside."""
        self._lane = self.lane = None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        at, size = 0, len(chunk)
        alike = True  # whether there may be a run of frames
        while at < size:
            if alike and self.lane:
                told, at = self.lane.take_run(chunk, at)
                if told:
                    self._frames.append(told)
                    continue
                alike = False  # looking again for each frame would cost the square of the chunk
            end = frame_end(chunk, at) if self._lanes_left else size
            piece = chunk[at:end]
            told = self.lane.take(piece) if self.lane else b""
            if told:
                self._frames.append(told)
            else:
                self._long_way(piece)
            at = end

    def close(self) -> None:
        """Learn that the body is over."""
        self._long_way(None)

    def _long_way(self, piece: bytes | None) -> None:
        try:
            frames = self._decoder.close() if piece is None else self._decoder.feed(piece)
        except RemoteProtocolError as error:
            self.stop()
            size = f"the {self._max_event} bytes that max_event allows"
            told = f"The model server sent an event larger than {size}."
            for event in self._turn.abandon(str(error), told=told):
                self._on_event(event)
            return
        for frame in frames:
            events = self._turn.receive(frame)
            for event in events:
                self._on_event(event)
            self._learn(frame, events)
        # In the midst of a frame nothing can be skimmed, but what follows it can.
        self.lane = self._lane if self._decoder.idle else None

    def _learn(self, frame: ServerSentEvent, events: list[TurnEvent]) -> None:
        """Begin a lane with a frame, if its like can be recognised; any other frame ends the one there is."""
        if self._lane and self._lane.used:
            self._lanes_left = _LANES
        self._lane = None
        if not self._lanes_left or len(events) != 1:
            return
        event = events[0]
        if isinstance(event, Delta) and event.payload["type"] in _DELTAS:
            self._lane = Lane.after(frame, event, self._frames[-1], self._client, self._max_event)
            self._lanes_left -= 1
