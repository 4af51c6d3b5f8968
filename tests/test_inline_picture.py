"""A picture within a terminal's text: by the terminal's own protocol, or in half blocks."""

from __future__ import annotations

import importlib.abc
import io
import os
import re
import sys
from typing import Any

import PIL.Image
import pytest
from imagecall.middleware.terminal.inline_picture import HalfBlocks, inline_picture, shows_pictures
from pseudo_terminal import KITTY, PLAIN, SIXEL, terminal
from rich.console import Console

BLOCK = "▀".encode()
_ROWS = 16
"""Two thirds of the terminal's lines."""

RED = PIL.Image.new("RGB", (64, 64), (255, 0, 0))


class NoPackage(importlib.abc.MetaPathFinder):
    """Finds out that `textual-image` is not installed."""

    @classmethod
    def find_spec(cls, name: str, path: Any, target: Any = None) -> None:
        if name.partition(".")[0] == "textual_image":
            raise ModuleNotFoundError(name)


def blocks(picture: PIL.Image.Image, *, rows: int = 10, width: int = 40) -> list[str]:
    """Draw in half blocks; return the lines with their escape sequences."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=width)
    console.print(HalfBlocks(picture, rows))
    return file.getvalue().split("\n")[:-1]


def shown(typed: bytes, picture: PIL.Image.Image = RED, **missing: Any) -> bytes:
    """Print a picture on a terminal that is this process's own; return what it is sent."""
    with terminal(typed) as screen, screen.attached() as patch:
        for name, value in missing.items():
            patch.setattr(*{"keys": (sys, "__stdin__", value), "group": (os, "tcgetpgrp", value)}[name])
        console = Console(highlight=False)
        assert shows_pictures(console)
        console.print(inline_picture(picture, console))
    return screen.output


def test_a_cell_shows_two_pixels() -> None:
    picture = PIL.Image.new("RGB", (2, 2), (1, 2, 3))
    picture.putpixel((0, 1), (4, 5, 6))
    assert blocks(picture) == ["\x1b[38;2;1;2;3;48;2;4;5;6m▀\x1b[0m\x1b[38;2;1;2;3;48;2;1;2;3m▀\x1b[0m"]


def test_where_a_picture_is_transparent_the_terminals_own_background_shows() -> None:
    picture = PIL.Image.new("RGBA", (3, 3), (0, 0, 0, 0))
    picture.putpixel((1, 0), (7, 7, 7, 255))
    picture.putpixel((2, 1), (8, 8, 8, 255))
    upper, lower = "\x1b[38;2;7;7;7m▀\x1b[0m", "\x1b[38;2;8;8;8m▄\x1b[0m"
    assert blocks(picture) == [f" {upper}{lower}", "   "]


@pytest.mark.parametrize(
    ("size", "cells"),
    [
        ((10, 10), (10, 5)),
        ((400, 100), (40, 5)),
        ((100, 400), (5, 10)),
        ((900, 3), (40, 1)),
        ((1, 999), (1, 10)),
    ],
)
def test_a_picture_fits_into_its_room_and_is_never_enlarged(
    size: tuple[int, int], cells: tuple[int, int]
) -> None:
    lines = blocks(PIL.Image.new("RGB", size))
    assert ({line.count("▀") for line in lines}, len(lines)) == ({cells[0]}, cells[1])


def test_a_terminal_that_knows_sixels_gets_sixels() -> None:
    sent = shown(SIXEL)
    assert sent.startswith(b"\x1b[c")
    assert sent.count(b"\x1bP") == 1
    assert BLOCK not in sent
    assert sent.count(b"\n") == _ROWS


def test_kitty_gets_the_picture_by_its_own_protocol() -> None:
    sent = shown(KITTY)
    commands = [command.split(b",") for command in re.findall(rb"\x1b_G([^;\x1b]*)", sent)]
    assert [b"a=q" in command for command in commands] == [True, False, False]
    assert b"f=100" in commands[1]  # a PNG
    assert [size in commands[2] for size in (b"c=32", b"r=16", b"U=1")] == [True] * 3
    assert "\U0010eeee".encode() in sent
    assert BLOCK not in sent
    assert sent.count(b"\n") == _ROWS


def test_any_other_terminal_gets_half_blocks_and_what_was_asked_is_wiped_out() -> None:
    sent = shown(PLAIN)
    assert sent.index(b"\r\x1b[2K") < sent.index(BLOCK)
    assert sent.count(BLOCK) == 2 * _ROWS * _ROWS


@pytest.mark.parametrize("answer", [b"y", "é".encode(), b""])
def test_keys_pressed_meanwhile_are_no_answer(answer: bytes) -> None:
    assert BLOCK in shown(answer)


def test_without_the_package_there_are_half_blocks() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "meta_path", [NoPackage, *sys.meta_path])
        sent = shown(SIXEL)
    assert b"\x1b[c" not in sent
    assert sent.count(BLOCK) == 2 * _ROWS * _ROWS


def no_terminal(keys: int) -> int:
    raise OSError("not its terminal")


@pytest.mark.parametrize(
    "missing",
    [
        {"keys": None},
        {"keys": io.StringIO()},
        {"group": lambda keys: 0},
        {"group": no_terminal},
    ],
)
def test_a_terminal_that_cannot_answer_this_process_is_not_asked(missing: dict[str, Any]) -> None:
    sent = shown(SIXEL, **missing)
    assert b"\x1b[c" not in sent
    assert BLOCK in sent


@pytest.mark.parametrize(
    ("encoding", "colours", "is_terminal", "shows"),
    [
        ("utf-8", "truecolor", True, True),
        ("utf-8", "standard", True, True),
        ("ascii", "truecolor", True, False),
        ("utf-8", None, True, False),
        ("utf-8", "truecolor", False, False),
    ],
)
def test_only_a_terminal_with_colours_and_more_than_ascii_shows_pictures(
    encoding: str, colours: Any, is_terminal: bool, shows: bool
) -> None:
    class File(io.TextIOWrapper):
        def isatty(self) -> bool:
            return is_terminal

    file = File(io.BytesIO(), encoding=encoding)
    console = Console(file=file, force_terminal=True, color_system=colours)
    assert shows_pictures(console) is shows
