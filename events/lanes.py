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

    __slots__ = ("_asked", "_number", "_told", "part")

    def __init__(self, part: Part, number: int, asked: _Shape, told: _Shape) -> None:
        self.part = part
        self._number = number
        self._asked = asked
        self._told = told

    def take(self, chunk: bytes, start: int, number: int) -> tuple[int, int, bytes]:
        """Take as many frames as possible from `start` on, where one begins; note what they say.

        Args:
            chunk: what the server sent.
            start: where a frame begins in it.
            number: the client's next number.

        Returns:
            how many were taken, where they end, and what the client gets for them.
        """
        asked, first = self._asked, self._number
        same = first == number and asked == self._told
        before, said = asked.before, self.part.pieces
        texts: list[bytes] = []
        end, size = start, len(chunk)
        while end < size and chunk.startswith(before, end):
            begin = end + len(before)
            tail = asked.tail(self._number)
            after = chunk.find(b"\n", begin) + 2
            text = chunk[begin : after - len(tail)]
            if not chunk.startswith(tail, after - len(tail)) or (value := _text(text)) is None:
                break
            if not same and dumps(value) != text:
                break  # the long way would write it in another way
            said.append(value)
            texts.append(text)
            self._number += 1
            end = after
        return self._number - first, end, chunk[start:end] if same else self._tell(texts, number)

    def _tell(self, texts: list[bytes], number: int) -> bytes:
        pieces: list[bytes] = []
        for text in texts:
            pieces += (self._told.before, text, self._told.tail(number))
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


def _text(data: bytes) -> str | None:
    """Read a JSON string; None for anything else, one with more behind it included."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, str) else None


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
