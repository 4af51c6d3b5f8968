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

__all__ = ["DONE", "KEEPALIVE", "MAX_EVENT", "SSEDecoder", "ServerSentEvent", "encode", "payload_of"]

MAX_EVENT = 256 << 20
"""Bytes of one event, generous since a picture is one line; without a cap a stream that never
ends its line would fill the memory."""

DONE = b"data: [DONE]\n\n"
KEEPALIVE = b": keepalive\n\n"

_BOM = b"\xef\xbb\xbf"
_COLON = 0x3A


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


class SSEDecoder:
    """Incremental decoder of one event stream. Comments, `id:` and `retry:` are read and dropped."""

    __slots__ = ("_data", "_event", "_head", "_line", "_max_event", "_shape", "_size", "_skip_lf")

    def __init__(self, *, max_event: int = MAX_EVENT) -> None:
        self._max_event = max_event
        self._head: bytes | None = b""  # start of the stream, until it is clear whether a BOM stands there
        self._line: list[bytes] = []  # pieces of a line whose end has not come yet
        self._skip_lf = False  # the last chunk ended with CR: an LF that follows belongs to it
        self._size = 0
        self._reset()

    def _reset(self) -> None:
        self._event: bytes | None = None
        self._data: list[bytes] = []
        self._shape = 0  # canonical so far: 0 nothing, 1 event line, 2 event and data lines; -1 never

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes, cut anywhere, and return the events they complete.

        Raises:
            RemoteProtocolError: an event is larger than `max_event` bytes.
        """
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
            if (
                not self._shape
                and not self._line
                and not self._data
                and chunk.startswith(b"event: ", position)
            ):
                end = self._canonical(chunk, position, carriage, events)
                if end:
                    position = end
                    continue
            position = self._next_line(chunk, position, carriage, events)
        return events

    def close(self) -> list[ServerSentEvent]:
        """End the stream. A last event that lacks only its empty line still counts."""
        self._head = None
        events = self.feed(b"\n\n") if self._line or self._data else []
        self._reset()
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        head = (self._head or b"") + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    @staticmethod
    def _canonical(chunk: bytes, start: int, carriage: int, events: list[ServerSentEvent]) -> int:
        """Cut a whole canonical frame out of the chunk; return its end, or 0 if there is none."""
        name_end = chunk.find(b"\n", start)
        if name_end < 0 or not chunk.startswith(b"data: ", name_end + 1):
            return 0
        data_end = chunk.find(b"\n", name_end + 7)
        if data_end < 0 or not chunk.startswith(b"\n", data_end + 1) or 0 <= carriage <= data_end:
            return 0
        end = data_end + 2
        raw = chunk if start == 0 and end == len(chunk) else chunk[start:end]
        events.append(ServerSentEvent(chunk[start + 7 : name_end], chunk[name_end + 7 : data_end], raw))
        return end

    def _next_line(self, chunk: bytes, start: int, carriage: int, events: list[ServerSentEvent]) -> int:
        """Take one line, or the rest of the chunk as a piece of one; return where the next begins."""
        end = chunk.find(b"\n", start, carriage if carriage >= 0 else len(chunk))
        if end < 0:
            end = carriage
        piece = chunk[start:end] if end >= 0 else chunk[start:]
        self._size += len(piece)
        if self._size > self._max_event:
            raise RemoteProtocolError(f"an event is larger than {self._max_event} bytes")
        if end < 0:
            self._line.append(piece)
            return len(chunk)
        after = end + 1
        if end == carriage:
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
            self._data.append(line[6:])
            self._shape = 2 if self._shape == 1 else -1
            return
        self._size -= len(line)
        if line.startswith(b"event: "):
            self._event = line[7:]
            self._shape = 1 if self._shape == 0 else -1
            return
        self._shape = -1
        if line[0] == _COLON:
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value)
            self._data.append(value)
        elif name == b"event":
            self._event = value

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            raw = encode(self._event, data) if self._shape == 2 and self._event is not None else None
            events.append(ServerSentEvent(self._event, data, raw))
        self._size = 0
        self._reset()
