"""A client's stream as a drawing: a line for each event, a lane for each output item.

```
turn 1
    0         response.created                               1.2 kB
    1         response.in_progress                           1.2 kB
    2  ┌      response.output_item.added                  112 bytes  reasoning
 3–14  │      response.reasoning_summary_text.delta × 12     1.9 kB
   15  └      response.output_item.done                   167 bytes  reasoning
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.filesize import decimal
from rich.text import Text

from ...events.sse import SSEDecoder
from ...events.wire import loads, strings_of
from ..recording import Recording, replay_recording
from ..replay import frame_by_frame
from .printable import one_line

__all__ = ["timeline"]

Json = dict[str, Any]

_OPENS = "response.output_item.added"
_CLOSES = "response.output_item.done"
_MARKS = {_OPENS: "┌", _CLOSES: "└"}
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
_BASE64 = ("result", "partial_image_b64")
"""The fields that hold pictures."""


def timeline(recording: Recording) -> list[Text]:
    """Replay a recording and draw what the client gets; a stream's deltas in a row take one line.

    Sizes are those of the frames without the base64 of pictures, which is told by the size of the
    picture: `98 bytes + 1.2 MB picture`.

    Returns:
        The lines.
    """
    turns: list[int] = []
    client = replay_recording(recording, on_turn=turns.append)
    rows = _joined(_events(client))
    lanes = max((row.lane + 1 for row in rows if row.lane is not None), default=0)
    return [*_drawn(rows, turns, lanes)] if rows else []


@dataclass(slots=True)
class _Row:
    """An event, or several deltas in a row."""

    offset: int
    numbers: list[object]
    kind: str
    lane: int | None
    size: int
    picture: int
    note: str

    def follows(self, row: _Row) -> bool:
        """Whether it goes on with what the row before it tells."""
        return self.kind.endswith(".delta") and (self.kind, self.lane) == (row.kind, row.lane)

    @property
    def span(self) -> str:
        """Its sequence numbers."""
        ends = dict.fromkeys(str(number) for number in (self.numbers[0], self.numbers[-1]))
        return "–".join(ends)

    @property
    def name(self) -> str:
        """The type, and how often it came."""
        return f"{self.kind} × {len(self.numbers)}" if len(self.numbers) > 1 else self.kind

    @property
    def weight(self) -> str:
        """The size for people."""
        return decimal(self.size) + (f" + {decimal(self.picture)} picture" if self.picture else "")


def _events(client: bytes) -> Iterator[_Row]:
    if client.lstrip().startswith(b"{"):
        yield _row(0, client, loads(client))
        return
    decoder = SSEDecoder()
    offset = 0
    for frame in frame_by_frame(client):
        for event in decoder.feed(frame):
            done = event.data == b"[DONE]"
            yield _row(offset, frame, {"type": "[DONE]"} if done else loads(event.data))
        offset += len(frame)


def _row(offset: int, frame: bytes, event: Json) -> _Row:
    encoded = sum(len(text) for text in strings_of(event, _BASE64))
    return _Row(
        offset=offset,
        numbers=[event.get("sequence_number", "")],
        kind=one_line(str(event.get("type") or event.get("object") or "error")),
        lane=event.get("output_index"),
        size=len(frame) - encoded,
        picture=encoded * 3 // 4,
        note=_note(event),
    )


def _note(event: Json) -> str:
    """Tell what an item or a response is, and how it stands."""
    item = event.get("item") or {}
    state = item.get("status") or (event.get("response") or event).get("status")
    words = [item.get("type"), item.get("size"), state, (item.get("error") or {}).get("message")]
    return one_line(" ".join(str(word) for word in words if word))


def _joined(events: Iterator[_Row]) -> list[_Row]:
    rows: list[_Row] = []
    for row in events:
        if rows and row.follows(rows[-1]):
            rows[-1].numbers += row.numbers
            rows[-1].size += row.size
        else:
            rows.append(row)
    return rows


def _drawn(rows: list[_Row], turns: list[int], lanes: int) -> Iterator[Text]:
    columns = zip(*((row.span, row.name, row.weight) for row in rows), strict=True)
    spans, names, weights = (max(map(len, column)) for column in columns)
    titles = [(offset, Text(f"turn {number}", style="bold")) for number, offset in enumerate(turns, 1)]
    opened: set[int] = set()
    for row in rows:
        while titles and titles[0][0] <= row.offset:
            yield titles.pop(0)[1]
        span = (f"{row.span:>{spans}}", "dim")
        told = f"{row.name:<{names}}  {row.weight:>{weights}}  {row.note}"
        yield Text.assemble(span, "  ", _lanes(row, opened, lanes), "  ", told.rstrip())
    yield from (title for _, title in titles)


def _lanes(row: _Row, opened: set[int], lanes: int) -> Text:
    """Draw the lanes beside one event, and note what it opens and closes."""
    if row.lane is not None and row.kind == _OPENS:
        opened.add(row.lane)
    drawn = Text()
    for lane in range(lanes):
        beside = "│" if lane in opened else " "
        mark = _MARKS.get(row.kind, "├") if lane == row.lane else beside
        drawn.append(mark, style=_COLOURS[lane % len(_COLOURS)])
    if row.kind == _CLOSES:
        opened.discard(row.lane if row.lane is not None else -1)
    return drawn
