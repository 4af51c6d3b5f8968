"""What a terminal shows while a picture is made."""

from __future__ import annotations

import base64
import io

import PIL.Image
import pytest
from imagecall.middleware.terminal.picture_answer import PictureAnswer
from imagecall.middleware.terminal.progress import Progress
from kite import painted
from picture_files import encoded
from rich.console import Console
from transcript import encode, event, message, picture, preview_event

ITEM = painted("ig_1")
FAILED = {**painted("ig_2"), "status": "failed", "result": "", "error": {"message": "Dry."}}
PREVIEW = base64.b64encode(encoded(PIL.Image.new("RGB", (4, 4), "red"), "png")).decode()


class Shown:
    """An answer and what is drawn of it; the clock is set by hand."""

    def __init__(self, *, previews: bool = False) -> None:
        self.now = 100.0
        self.answer = PictureAnswer(lambda: self.now)
        self.progress = Progress(self.answer, previews=previews)

    def hears(self, *events: dict[str, object], seconds: float = 0) -> list[str]:
        self.now += seconds
        self.answer.feed(200, encode([*events]))
        return self.lines()

    def lines(self) -> list[str]:
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, color_system=None, width=60, get_time=lambda: 0.0)
        console.print(self.progress)
        return file.getvalue().split("\n")[:-1]


def test_each_state_of_a_picture_has_its_line_and_its_time() -> None:
    shown = Shown()
    assert shown.lines() == ["⠋ asking the model, 0.0 s"]
    shown.now += 1.25
    assert shown.lines() == ["⠋ asking the model, 1.2 s"]
    added, _, generating, first, second, completed, done = picture(
        0, ITEM, preview_event(0, "AAAA"), preview_event(1, "AAAA")
    )
    assert shown.hears(added, seconds=1) == ["⠋ picture: in progress, 0.0 s"]
    assert shown.hears(generating, seconds=1) == ["⠋ picture: generating, 1.0 s"]
    assert shown.hears(first) == ["⠋ picture: generating, 1 partial picture, 1.0 s"]
    assert shown.hears(second) == ["⠋ picture: generating, 2 partial pictures, 1.0 s"]
    assert shown.hears(completed) == ["⠋ picture: completed, 2 partial pictures, 1.0 s"]
    assert shown.hears(done, seconds=2) == ["✓ picture: completed, 2 partial pictures, 3.0 s"]
    shown.now += 60
    assert shown.lines() == ["✓ picture: completed, 2 partial pictures, 3.0 s"]


def test_several_pictures_are_numbered_and_a_failed_one_is_marked() -> None:
    shown = Shown()
    lines = shown.hears(*picture(0, ITEM), *picture(1, FAILED))
    assert lines == ["✓ picture 1: completed, 0.0 s", "✗ picture 2: failed, 0.0 s"]


def test_the_models_words_are_shown_as_they_come_and_cannot_steer_the_terminal() -> None:
    shown = Shown()
    said = message(0, "msg_1", "Here\x1b[2J ", "it is.")
    assert shown.hears(*said[:3])[1:] == ["Here[2J "]
    assert shown.hears(*said[3:])[1:] == ["Here[2J it is."]


def test_the_latest_partial_picture_is_drawn_until_the_picture_is_done() -> None:
    shown = Shown(previews=True)
    *begun, completed, done = picture(0, ITEM, preview_event(0, PREVIEW))
    for _ in range(2):
        assert shown.hears(*begun)[1:] == ["▀▀▀▀", "▀▀▀▀"]
        begun = []
    assert len(shown.hears(completed, done)) == 1


@pytest.mark.parametrize("preview", ["%%", base64.b64encode(b"no picture").decode()])
def test_a_partial_picture_that_is_none_is_only_counted(preview: str) -> None:
    shown = Shown(previews=True)
    begun = picture(0, ITEM, preview_event(0, preview))[:4]
    assert shown.hears(*begun) == ["⠋ picture: generating, 1 partial picture, 0.0 s"]


def test_it_is_wiped_out_at_its_end() -> None:
    file = io.StringIO()
    shown = Shown()
    shown.answer.feed(200, encode([event("created", response={"id": "r"})]))
    with shown.progress.live(Console(file=file, force_terminal=True, width=60)):
        pass
    assert "asking the model" in file.getvalue()
    assert file.getvalue().endswith("\x1b[1A\x1b[2K")
