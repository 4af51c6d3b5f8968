r"""Server-sent events on bytes: the WHATWG grammar in, one canonical frame shape out.

Lines end with LF, CR or CRLF and with nothing else: text methods such as `str.splitlines` also
split on U+2028 and its kin, which are legal inside a JSON string, so everything here stays bytes.

A frame is *canonical* if it is exactly `event: T\ndata: {…}\n\n`. Only such a frame may be handed
on as it came; for every other one the reader gets the fields and no raw bytes.

Cost: each byte is looked at once. A line that spans many chunks is kept as a list of pieces and
joined once, and line ends are found one `\n` at a time, since looking for `\n\n` in a frame of
several megabytes is two orders of magnitude slower.
"""

from __future__ import annotations

from typing import NamedTuple

from .errors import RemoteProtocolError

__all__ = [
    "DONE",
    "KEEPALIVE",
    "MAX_EVENT",
    "SSEDecoder",
    "ServerSentEvent",
    "encode",
    "frame_end",
    "payload_of",
]

MAX_EVENT = 256 << 20
"""Bytes of one event, generous since a picture is one line; without a cap a stream that never
ends its line would fill the memory."""

DONE = b"data: [DONE]\n\n"
KEEPALIVE = b": keepalive\n\n"

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One dispatched event: its name (None without an `event:` line), its data, its own bytes.

    `data` is the `data:` lines joined with LF. `raw` is the whole frame if it is canonical, else None.
    """

    event: bytes | None
    data: bytes
    raw: bytes | None


def encode(event: bytes, data: bytes) -> bytes:
    """Build the canonical frame. `data` is JSON on one line."""
    return b"event: %b\ndata: %b\n\n" % (event, data)


def payload_of(frame: bytes) -> bytes:
    """Return the JSON of a canonical frame."""
    return frame[frame.index(b"\ndata: ") + 7 : -2]


def frame_end(chunk: bytes, start: int) -> int:
    """Return where the frame that begins at `start` ends, or the end of the chunk if it does not."""
    end = chunk.find(b"\n", start)
    while end >= 0 and not chunk.startswith(b"\n", end + 1):
        end = chunk.find(b"\n", end + 1)
    return len(chunk) if end < 0 else end + 2


class SSEDecoder:
    """Incremental decoder of one event stream. Comments, `id:` and `retry:` are read and dropped.

    Args:
        max_event: bytes of one event; a larger one ends the stream with a `RemoteProtocolError`.
    """

    __slots__ = ("_data", "_event", "_head", "_line", "_max_event", "_shape", "_size", "_skip_lf")

    def __init__(self, *, max_event: int = MAX_EVENT) -> None:
        self._max_event = max_event
        self._head: bytes | None = b""  # start of the stream, until it is clear whether a BOM stands there
        self._line: list[bytes] = []  # pieces of a line whose end has not come yet
        self._skip_lf = False  # the last chunk ended with CR: an LF that follows belongs to it
        self._size = 0
        self._reset()

    @property
    def idle(self) -> bool:
        """Whether a frame would begin with the next byte."""
        return self._head is None and not (self._shape or self._line or self._skip_lf)

    def _reset(self) -> None:
        self._event: bytes | None = None
        self._data: list[bytes] = []
        self._shape = 0  # canonical so far: 0 nothing, 1 event line, 2 event and data lines; -1 never

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes, cut anywhere, and return the events they complete.

        Raises:
            RemoteProtocolError: an event is larger than `max_event` bytes. Events that the chunk holds
                before it are returned first; then the next `feed` or `close` raises.
        """
        if self._size > self._max_event:
            raise self._too_large()
        if self._head is not None:
            chunk = self._without_bom(chunk)
        events: list[ServerSentEvent] = []
        position, size = 0, len(chunk)
        if self._skip_lf and size:
            self._skip_lf = False
            position = chunk.startswith(b"\n")
        carriage = chunk.find(b"\r")
        while position < size:
            if 0 <= carriage < position:
                carriage = chunk.find(b"\r", position)
            limit = size if carriage < 0 else carriage
            if not self._shape and not self._line and chunk.startswith(b"event: ", position):
                end = self._canonical(chunk, position, limit, events)
                if end:
                    position = end
                    continue
            position = self._next_line(chunk, position, limit, events)
        if not events and self._size > self._max_event:
            raise self._too_large()
        return events

    def close(self) -> list[ServerSentEvent]:
        """End the stream. A last event that lacks only its empty line still counts.

        Raises:
            RemoteProtocolError: the last event is larger than `max_event` bytes.
        """
        self._head = None
        events = self.feed(b"\n\n" if self._line or self._data else b"")
        self._reset()
        return events

    def _too_large(self) -> RemoteProtocolError:
        return RemoteProtocolError(f"an event is larger than {self._max_event} bytes")

    def _without_bom(self, chunk: bytes) -> bytes:
        head = (self._head or b"") + chunk
        if _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _canonical(self, chunk: bytes, start: int, limit: int, events: list[ServerSentEvent]) -> int:
        """Cut a whole canonical frame out of the chunk; return its end, or 0 if there is none.

        `limit` is where the next CR stands, or the chunk ends: nothing is searched beyond it.
        """
        name_end = chunk.find(b"\n", start, limit)
        if name_end < 0 or not chunk.startswith(b"data: ", name_end + 1):
            return 0
        data_end = chunk.find(b"\n", name_end + 7, limit)
        end = data_end + 2
        if data_end < 0 or not chunk.startswith(b"\n", data_end + 1) or end - start > self._max_event:
            return 0
        name, data = chunk[start + 7 : name_end], chunk[name_end + 7 : data_end]
        events.append(ServerSentEvent(name, data, chunk[start:end]))
        return end

    def _next_line(self, chunk: bytes, start: int, limit: int, events: list[ServerSentEvent]) -> int:
        """Take one line, or the rest of the chunk as a piece of one; return where the next begins."""
        end = chunk.find(b"\n", start, limit)
        if end < 0:
            end = limit
        piece = chunk[start:end]
        self._size += len(piece)
        if self._size > self._max_event:
            return len(chunk)
        if end == len(chunk):
            self._line.append(piece)
            return end
        after = end + 1
        if end == limit:
            self._shape = -1
            if after == len(chunk):
                self._skip_lf = True
            elif chunk.startswith(b"\n", after):
                after += 1
        if self._line:
            self._line.append(piece)
            piece = b"".join(self._line)
            self._line.clear()
        if piece:
            self._field(piece)
        else:
            self._dispatch(events)
        return after

    def _field(self, line: bytes) -> None:
        if line.startswith(b"data: "):
            self._add_data(line[6:])
            self._shape = 2 if self._shape == 1 else -1
            return
        if line.startswith(b"event: "):
            self._event = line[7:]
            self._shape = 1 if self._shape == 0 else -1
        else:
            self._shape = -1
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._add_data(value)
                return
            if name == b"event":
                self._event = value
        self._size -= len(line)

    def _add_data(self, value: bytes) -> None:
        self._data.append(value)
        self._size += 1  # for its LF: a stream of empty lines must not fill the memory either

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            raw = encode(self._event, data) if self._shape == 2 and self._event is not None else None
            events.append(ServerSentEvent(self._event, data, raw))
        self._size = 0
        self._reset()
