"""Texts from elsewhere, fit for a terminal."""

from __future__ import annotations

__all__ = ["one_line", "printable"]

_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)])
_CONTROLS_IN_TEXT = {code: None for code in _CONTROLS if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Take out what a terminal would obey rather than show: escape sequences lose their first character."""
    return _encodable(text.translate(_CONTROLS_IN_TEXT))


def one_line(text: str) -> str:
    """Make a text printable on one line: line ends and runs of blanks become one blank."""
    return _encodable(" ".join(text.split()).translate(_CONTROLS))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can hold and no terminal can be sent."""
    return text.encode("utf-8", "replace").decode("utf-8")
