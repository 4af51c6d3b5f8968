"""Text that streams in frames which differ in nothing but the text and their number.

Nearly all of a stream is such frames. Once one has gone the long way, through parser, turn and response,
the next ones need not: what stands before, between and behind text and number is known, in what the
server sends and in what the client gets for it. Whatever is not exactly that goes the long way, and any
frame that does so ends the lane, so that nothing a lane relies on can change beneath it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from .sse import ServerSentEvent, encode
from .turn_events import Delta, Part
from .wire import dumps

__all__ = ["Lane"]

_NUMBER = re.compile(rb'"sequence_number": ?(\d+)(?=[,}])')


class _Shape(NamedTuple):
    """A frame without its text, a JSON string, and its number, if it has one.

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
        number: the server's next number; means nothing if it sends none.
        asked: the shape of the server's frames.
        told: the shape of the client's.
    """

    __slots__ = ("_before", "_behind", "_middle", "_number", "_said", "_same", "_told")

    def __init__(self, part: Part, number: int, asked: _Shape, told: _Shape) -> None:
        self._said = part.pieces
        self._number = number
        self._before, self._middle, self._behind = asked
        self._told = told
        self._same = told == asked

    def take(self, chunk: bytes, start: int, number: int) -> tuple[int, int, bytes]:
        """Take as many frames as possible from `start` on, where one begins; note what they say.

        Args:
            chunk: what the server sent.
            start: where a frame begins in it.
            number: the client's next number.

        Returns:
            how many were taken, where they end, and what the client gets for them.
        """
        before, middle, behind = self._before, self._middle, self._behind
        first = current = self._number
        same = self._same and first == number
        texts: list[bytes] = []
        end, size = start, len(chunk)
        while end < size and chunk.startswith(before, end):
            tail = middle if behind is None else b"%b%d%b" % (middle, current, behind)
            begin = end + len(before)
            after = chunk.find(b"\n", begin) + 2
            stop = after - len(tail)
            if not chunk.startswith(tail, stop):
                break
            text = chunk[begin:stop]
            try:
                value = orjson.loads(text)
            except orjson.JSONDecodeError:
                break
            # A string and nothing but: so the frame is just what it seems to be.
            if type(value) is not str or not (same or dumps(value) == text):
                break
            self._said.append(value)
            texts.append(text)
            current += 1
            end = after
        self._number = current
        return current - first, end, chunk[start:end] if same else self._tell(texts, number)

    def _tell(self, texts: list[bytes], number: int) -> bytes:
        told = self._told
        pieces: list[bytes] = []
        for text in texts:
            pieces += (told.before, text, told.tail(number))
            number += 1
        return b"".join(pieces)

    @classmethod
    def after(cls, frame: ServerSentEvent, event: Delta, told: bytes) -> Lane | None:
        """Learn from a frame that went the long way.

        Args:
            frame: the server's.
            event: what it meant, the delta of a text.
            told: what the client got for it.

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
        return cls(part, asked[1] + 1, asked[0], answered[0])


def _shape(frame: bytes, text: bytes) -> tuple[_Shape, int] | None:
    """Take the text and the number out of a frame, if each stands there once, and in this order."""
    places = [found.end() for found in re.finditer(rb'"delta": ?(?=%b)' % re.escape(text), frame)]
    numbers = list(_NUMBER.finditer(frame))
    if len(places) != 1 or len(numbers) > 1:
        return None
    begin, end = places[0], places[0] + len(text)
    if not numbers:
        return _Shape(frame[:begin], frame[end:], None), 0
    low, high = numbers[0].span(1)
    if low < end:
        return None
    return _Shape(frame[:begin], frame[end:low], frame[high:]), int(numbers[0][1])
