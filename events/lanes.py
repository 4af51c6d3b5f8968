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

_DELTA = re.compile(rb'"delta"\s*:\s*')
_NUMBER = re.compile(rb'"sequence_number"\s*:\s*(\d+(?=[,}]))?')


_QUOTE = ord('"')

_RUN = 64 << 10
"""Bytes of the frames that are taken at once: what is cut out of more leaves the processor's caches."""


class _Shape(NamedTuple):
    """A frame without its text, quotes and all, and without its number, if it has one.

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

    def render(self, texts: list[bytes], number: int) -> bytes:
        """Return a frame for each text, the first of which has the number."""
        before, middle = self.before.replace(b"%", b"%%"), self.middle.replace(b"%", b"%%")
        if self.behind is None:
            return b"%b%%b%b" % (before, middle) * len(texts) % (*texts,)
        behind = self.behind.replace(b"%", b"%%")
        values: list[object] = [number] * (2 * len(texts))
        values[::2] = texts
        values[1::2] = range(number, number + len(texts))
        return b"%b%%b%b%%d%b" % (before, middle, behind) * len(texts) % (*values,)


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
        "_asked",
        "_client",
        "_max_event",
        "_number",
        "_said",
        "_same",
        "_told",
        "used",
    )

    def __init__(
        self, part: Part, client: ClientResponse, number: int, asked: _Shape, told: _Shape, max_event: int
    ) -> None:
        self._said = part.pieces
        self._client = client
        self._number = number
        self._asked = asked
        self._same = told == asked
        self._told = asked if self._same else told  # one of them is enough to keep
        self._max_event = max_event
        self.used = False

    def take(self, frame: bytes) -> bytes:
        """Take the next frame, and note what it says.

        Args:
            frame: what the server sent from where a frame begins.

        Returns:
            what the client gets for it; nothing if it is not one frame exactly like the others.
        """
        number, (before, middle, behind) = self._number, self._asked
        tail = middle if behind is None else b"%b%d%b" % (middle, number, behind)
        # Methods that take one argument and no more cost half of `startswith` and its like.
        rest = frame.removeprefix(before)
        text = rest.removesuffix(tail)
        if not len(text) < len(rest) < len(frame) <= self._max_event:
            return b""
        try:
            said = loads(text)
        except JSONDecodeError:
            return b""
        if not text[0] == text[-1] == _QUOTE:  # JSON lets line ends stand beside a string
            return b""
        # A string and nothing but: so the frame is just what it seems to be.
        client = self._client
        if not self._same or client.number != number:
            if dumps(said) != text:
                return b""
            frame = b"%b%b%b" % (self._told.before, text, self._told.tail(client.number))
        self._said.append(said)
        self._number = number + 1
        client.number += 1
        self.used = True
        return frame

    def take_run(self, chunk: bytes, start: int) -> tuple[bytes, int]:
        """Take frames that stand one behind the other, for a fraction of what they cost one by one.

        Args:
            chunk: what the server sent.
            start: where a frame begins.

        Returns:
            what the client gets for them, and where they end; b"" and `start` if there are not several, or
            one of them is not exactly like the others.
        """
        number = self._number
        texts = self._texts(chunk, start)
        # Put together again and compared with what came, nothing can have been overlooked.
        frames = self._asked.render(texts, number)
        if not texts or not chunk.startswith(frames, start) or len(frames) > self._max_event:
            return b"", start
        if b"\r" in frames:  # a line end to its reader, beside a string or anywhere
            return b"", start
        try:
            # No string holds a line end, so each text is at least one value of its own.
            said = loads(b"[%b]" % b",\n".join(texts))
        except JSONDecodeError:
            return b"", start
        if len(said) != len(texts) or {*map(type, said)} != {str}:
            return b"", start
        end = start + len(frames)
        client = self._client
        if not self._same or client.number != number:
            if dumps(said) != b"[%b]" % b",".join(texts):
                return b"", start
            frames = self._told.render(texts, client.number)
        self._said += said
        self._number += len(said)
        client.number += len(said)
        self.used = True
        return frames, end

    def _texts(self, chunk: bytes, start: int) -> list[bytes]:
        """Cut out what stands in the places of the texts, of as many frames as seem to be there."""
        before, middle, behind = self._asked
        ending = middle if behind is None else behind
        last = chunk.rfind(ending + before, start, start + _RUN)
        if last < 0:
            return []
        end = chunk.find(ending, last + len(ending))
        end = (last if end < 0 else end) + len(ending)  # of the last one that is whole
        above = before.count(b"\n")
        lines = chunk[start:end].split(b"\n")[above : -1 : above + 2]
        begin = len(before) - before.rfind(b"\n") - 1
        # What stands behind a text grows with its number: look at as many as have one digit more at most.
        number = self._number
        longer = 10 ** len(str(number))
        few, more = longer - number, 10 * longer - number
        stop, later = (2 - len(self._asked.tail(first)) for first in (number, longer))
        return [line[begin:stop] for line in lines[:few]] + [line[begin:later] for line in lines[few:more]]

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
        if b"\n" in frame.data:  # several lines of the server's: not known how they were divided
            return None
        text = dumps(event.payload["delta"])
        received = encode(frame.event, frame.data) if frame.event else b"data: %b\n\n" % frame.data
        asked = _shape(received, text)
        answered = _shape(told, text)
        if asked is None or answered is None:
            return None
        return cls(part, client, asked[1] + 1, asked[0], answered[0], max_event)


def _shape(frame: bytes, text: bytes) -> tuple[_Shape, int] | None:
    """Take the text and the number out of a frame, if each could stand there only once, and in this order."""
    places = [found.end() for found in _DELTA.finditer(frame)]
    numbers = list(_NUMBER.finditer(frame))
    if len(places) != 1 or not frame.startswith(text, places[0]) or len(numbers) > 1:
        return None
    begin, end = places[0], places[0] + len(text)
    if not numbers:
        return _Shape(frame[:begin], frame[end:], None), 0
    low, high = numbers[0].span(1)
    if low < end:  # or it is no plain number
        return None
    return _Shape(frame[:begin], frame[end:low], frame[high:]), int(numbers[0][1])
