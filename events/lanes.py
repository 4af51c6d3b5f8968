"""Text that streams in frames which differ in nothing but the text and their number.

Nearly all of a stream is such frames. Once one has gone the long way, through parser, turn and response,
the next ones need not: what stands before, between and behind text and number is known, in what the
server sends and in what the client gets for it. Whatever is not exactly that goes the long way, and any
frame that does so ends the lane, so that nothing a lane relies on can change beneath it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from orjson import JSONDecodeError, loads

from .response import ClientResponse
from .sse import ServerSentEvent, encode
from .turn_events import Delta, Part
from .wire import dumps

__all__ = ["Lane"]

_DELTA = re.compile(rb'"delta": ?')
_NUMBER = re.compile(rb'"sequence_number": ?(\d+)(?=[,}])')


class _Shape(NamedTuple):
    """A frame without its text and its number, if it has one. The text's quotes stand in what is around it.

    Attributes:
        before: stands before the text.
        middle: stands between the text and the number; the rest of the frame if there is no number.
        behind: stands behind the number; None if there is none.
    """

    before: bytes
    middle: bytes
    behind: bytes | None

    def tail(self, number: int) -> bytes:
        """Return all that stands behind the text."""
        return self.middle if self.behind is None else b"%b%d%b" % (self.middle, number, self.behind)


class Lane:
    """The deltas of one text.

    Args:
        part: the text.
        client: has the client's next number.
        number: the server's next number; means nothing if it sends none.
        asked: the shape of the server's frames.
        told: the shape of the client's.
        max_event: bytes of one event of the server.

    Attributes:
        used: whether a frame was taken.
    """

    __slots__ = (
        "_before",
        "_behind",
        "_client",
        "_max_event",
        "_middle",
        "_number",
        "_said",
        "_same",
        "_start",
        "_told",
        "used",
    )

    def __init__(
        self, part: Part, client: ClientResponse, number: int, asked: _Shape, told: _Shape, max_event: int
    ) -> None:
        self._said = part.pieces
        self._client = client
        self._number = number
        self._before, self._middle, self._behind = asked
        self._start = len(asked.before) - 1
        self._told = told
        self._same = told == asked
        self._max_event = max_event
        self.used = False

    def take(self, frame: bytes) -> bytes:
        """Take the next frame, and note what it says.

        Args:
            frame: what the server sent from where a frame begins.

        Returns:
            what the client gets for it; nothing if it is not one frame exactly like the others.
        """
        number, behind = self._number, self._behind
        tail = self._middle if behind is None else b"%b%d%b" % (self._middle, number, behind)
        if not (frame.startswith(self._before) and frame.endswith(tail)) or len(frame) > self._max_event:
            return b""
        text = frame[self._start : 1 - len(tail)]
        try:
            said = loads(text)  # a string and nothing but: so the frame is just what it seems to be
        except JSONDecodeError:
            return b""
        client = self._client
        if not self._same or client.number != number:
            if dumps(said) != text:
                return b""
            frame = b"%b%b%b" % (self._told.before, text[1:-1], self._told.tail(client.number))
        self._said.append(said)
        self._number = number + 1
        client.number += 1
        self.used = True
        return frame

    @classmethod
    def after(
        cls, frame: ServerSentEvent, event: Delta, told: bytes, client: ClientResponse, max_event: int
    ) -> Lane | None:
        """Learn from a frame that went the long way.

        Args:
            frame: the server's.
            event: what it meant, the delta of a text.
            told: what the client got for it.
            client: has the client's numbers.
            max_event: bytes of one event of the server.

        Returns:
            None if its like could not be recognised.
        """
        part = event.item.last_part
        assert part is not None
        text = dumps(event.payload["delta"])
        received = encode(frame.event, frame.data) if frame.event else b"data: %b\n\n" % frame.data
        asked = _shape(received, text)
        answered = _shape(told, text)
        if asked is None or answered is None:
            return None
        return cls(part, client, asked[1] + 1, asked[0], answered[0], max_event)


def _shape(frame: bytes, text: bytes) -> tuple[_Shape, int] | None:
    """Take the text and the number out of a frame, if each stands there once, and in this order."""
    places = [found.end() for found in _DELTA.finditer(frame) if frame.startswith(text, found.end())]
    numbers = list(_NUMBER.finditer(frame))
    if len(places) != 1 or len(numbers) > 1:
        return None
    begin, end = places[0] + 1, places[0] + len(text) - 1
    if not numbers:
        return _Shape(frame[:begin], frame[end:], None), 0
    low, high = numbers[0].span(1)
    if low < end:
        return None
    return _Shape(frame[:begin], frame[end:low], frame[high:]), int(numbers[0][1])
