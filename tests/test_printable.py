"""Texts from elsewhere on a terminal."""

from __future__ import annotations

from imagecall.middleware.terminal.printable import one_line, printable


def test_what_a_terminal_would_obey_is_taken_out_and_line_ends_stay() -> None:
    text = "\x1b]0;title\x07one\ttwo\nthree\x9b31m \x7fé 👩‍🚀\r"
    assert printable(text) == "]0;titleone\ttwo\nthree31m é 👩‍🚀"


def test_a_lone_surrogate_can_be_printed() -> None:
    assert printable("a\ud83db") == "a?b"
    assert one_line("a\ud83db") == "a?b"


def test_one_line_has_no_line_end_of_any_kind() -> None:
    assert one_line(" <html>\r\n  <p>no\u2028\tsuch\x1b[2J\x0bmodel ") == "<html> <p>no such[2J model"
