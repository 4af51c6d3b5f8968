"""What a terminal shows while a picture is made."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ..backends.base import ImageError
from ..images import decode_base64, decode_image, read_image
from .inline_picture import HalfBlocks
from .picture_answer import PictureAnswer, PictureCall
from .printable import printable

__all__ = ["Progress"]

_ROWS = 12
"""Lines of a partial picture: the words below it stay in sight."""

_MARKS = {"completed": ("✓ ", "green"), "failed": ("✗ ", "red")}
_MAX_PREVIEW = 64 << 20


class Progress:
    """Draws an answer as far as it has come. Rich draws it anew several times a second, in its own thread.

    Args:
        answer: what is read meanwhile.
        previews: whether the latest partial picture is drawn, too.
    """

    def __init__(self, answer: PictureAnswer, *, previews: bool) -> None:
        self._answer = answer
        self._previews = previews
        self._drawn: tuple[str, HalfBlocks | None] = ("", None)
        self._spinner = Spinner("dots")

    def live(self, console: Console) -> Live:
        """Return what draws it for as long as it is entered, and wipes it out afterwards."""
        return Live(self, console=console, refresh_per_second=8, transient=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Tell rich a line for each picture, the latest partial picture, and the model's words."""
        calls = tuple(self._answer.calls.values())
        if not calls:
            yield self._line(console, None, "asking the model", self._answer.began)
        for number, call in enumerate(calls, 1):
            name = f"picture {number}" if len(calls) > 1 else "picture"
            yield self._line(console, call, f"{name}: {_state(call)}", call.began)
        preview = next((call.preview for call in reversed(calls) if call.item is None and call.preview), None)
        if self._previews and preview and (drawn := self._draw(preview)):
            yield drawn
        if text := self._answer.text:
            yield Text(printable(text), style="italic")

    def _line(self, console: Console, call: PictureCall | None, words: str, began: float) -> Text:
        elapsed = ((call and call.ended) or self._answer.clock()) - began
        mark, style = _MARKS.get(call.state if call and call.item else "", ("", ""))
        line = Text(mark, style=style) if mark else Text.assemble(self._spin(console), " ")
        return line.append(f"{words}, {elapsed:.1f} s", style="default")

    def _spin(self, console: Console) -> Text:
        spun = self._spinner.render(console.get_time())
        assert isinstance(spun, Text)
        return spun

    def _draw(self, encoded: str) -> HalfBlocks | None:
        if encoded != self._drawn[0]:
            self._drawn = (encoded, _decoded(encoded))
        return self._drawn[1]


def _state(call: PictureCall) -> str:
    if not call.partials:
        return call.state
    return f"{call.state}, {call.partials} partial picture{'s' if call.partials > 1 else ''}"


def _decoded(encoded: str) -> HalfBlocks | None:
    try:
        data = decode_base64(encoded, max_bytes=_MAX_PREVIEW)
        image = read_image(data, max_bytes=_MAX_PREVIEW, max_pixels=_MAX_PREVIEW)
        return HalfBlocks(decode_image(image), _ROWS)
    except ImageError:
        return None
