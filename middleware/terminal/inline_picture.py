"""A picture within a terminal's text.

Some terminals can show pictures: kitty by its graphics protocol, others (iTerm2, WezTerm, foot, Windows
Terminal, …) by sixels. `textual-image` speaks both, and finds out which by asking the terminal. Everywhere
else, and without that package, each character cell shows two pixels: a half block in one colour on another.
"""

from __future__ import annotations

import os
import sys
from typing import Protocol

import PIL.Image
from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.style import Style

__all__ = ["HalfBlocks", "InlinePicture", "inline_picture", "shows_pictures"]

_OPAQUE = 128
"""Alpha from which a pixel is drawn; below it the terminal's own background shows."""


class InlinePicture(Protocol):
    """Something that rich can print."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Tell rich what to print."""
        ...


def shows_pictures(console: Console) -> bool:
    """Tell whether a picture may be printed here: on a terminal with colours and more than ASCII."""
    # Not `console.is_terminal`: FORCE_COLOR makes that true of files and pipes.
    return console.file.isatty() and console.color_system is not None and not console.options.ascii_only


def inline_picture(picture: PIL.Image.Image, console: Console) -> InlinePicture:
    """Make a picture fit for the terminal that is this process's standard output, two thirds of it at most.

    Args:
        picture: RGB or RGBA.
        console: writes to standard output.
    """
    rows = console.height * 2 // 3
    return _sharp(picture, rows, console) or HalfBlocks(picture, rows)


class HalfBlocks:
    """A picture in character cells, each twice as high as wide and two pixels high.

    Args:
        picture: RGB or RGBA.
        rows: how many lines it may take at most. It is never enlarged.
    """

    def __init__(self, picture: PIL.Image.Image, rows: int) -> None:
        self._picture = picture.convert("RGBA")
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it as wide as there is room."""
        width, height = self._picture.size
        scale = min(1.0, options.max_width / width, 2 * self._rows / height)
        width, height = max(1, int(width * scale)), max(1, int(height * scale))
        pixels = self._picture.resize((width, height)).load()
        assert pixels is not None, "it was decoded when it was converted"
        for y in range(0, height, 2):
            for x in range(width):
                upper = _colour(pixels[x, y])
                lower = _colour(pixels[x, y + 1]) if y + 1 < height else None
                yield _cell(upper, lower)
            yield Segment.line()


def _colour(pixel: object) -> Color | None:
    assert isinstance(pixel, tuple)
    red, green, blue, alpha = pixel
    return Color.from_rgb(red, green, blue) if alpha >= _OPAQUE else None


def _cell(upper: Color | None, lower: Color | None) -> Segment:
    if upper is None:
        return Segment(" ") if lower is None else Segment("▄", Style(color=lower))
    return Segment("▀", Style(color=upper, bgcolor=lower))


class _Sharp:
    """A picture by one of the terminal's own protocols, no higher than it may be."""

    def __init__(self, picture: InlinePicture, rows: int) -> None:
        self._picture = picture
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self._picture, options.update(height=self._rows))


def _sharp(picture: PIL.Image.Image, rows: int, console: Console) -> InlinePicture | None:
    """Find out what the terminal can do; None if it knows no pictures, or cannot be asked."""
    try:
        if not _can_be_asked():
            return None
        # The terminal is asked while this is imported, and once.
        from textual_image.renderable import Image, SixelImage, TGPImage
    except (ImportError, OSError, ValueError):  # ValueError: somebody is typing, which is no answer
        return None
    if Image not in (SixelImage, TGPImage):
        # A terminal that does not know a question may have shown it.
        console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
        return None
    return _Sharp(Image(picture, width="auto", height="auto"), rows)


def _can_be_asked() -> bool:
    """Tell whether this process may read the terminal's answer: in the background it would be stopped."""
    keys = sys.__stdin__
    if keys is None or not keys.isatty():
        return False
    return sys.platform == "win32" or os.tcgetpgrp(keys.fileno()) == os.getpgrp()
