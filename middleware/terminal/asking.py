"""The `ask` command: progress while a picture is made, then its file, the picture itself, or JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..backends.base import ImageError
from ..images import decode_image
from .inline_picture import inline_picture, shows_pictures
from .picture_answer import PictureAnswer, Problem
from .printable import one_line
from .progress import Progress
from .saved_picture import SavedPicture, save_pictures
from .terminal import ask_for_picture, picture_request

__all__ = ["Asking"]

_FORMATS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}


@dataclass(frozen=True, slots=True)
class Asking:
    """What to ask for, and how to show what comes.

    Attributes:
        prompt: what the picture shows, or what to change in it.
        url: an endpoint that has the tool; None asks the embedded model.
        model: the model to ask for.
        tool: options of the tool; None stands for one that is left out.
        edit: a picture to change.
        output: the file to write. Its suffix is the format where `tool` names none.
        inline: whether a terminal shows the picture, too.
        as_json: whether standard output gets one JSON object and nothing else.
    """

    prompt: str
    url: str | None
    model: str
    tool: dict[str, Any]
    edit: Path | None
    output: Path | None
    inline: bool
    as_json: bool

    def run(self) -> None:
        """Ask, save the picture, show it.

        Raises:
            RuntimeError: there is no picture, or it cannot be saved.
            ValueError: a file that was named cannot be.
            ImageError: the picture is not base64.
            KeyboardInterrupt: somebody pressed Ctrl+C.
        """
        answer = PictureAnswer()
        saved: list[SavedPicture] = []
        problem: Problem | None = None
        try:
            saved = self._save(answer)
            problem = answer.problem
        except KeyboardInterrupt:
            problem = Problem("stopped", "stopped")
            raise
        except Exception as error:
            problem = Problem(str(error) or type(error).__name__, getattr(error, "code", None))
            raise
        finally:
            if self.as_json:
                # In ASCII: a terminal would obey some of the other characters.
                self._write(json.dumps(_report(answer, saved, problem), separators=(",", ":")))
        if problem:
            told = Console(stderr=True, highlight=False, soft_wrap=True)
            told.print(f"imagecall: {one_line(problem.message)}", style="yellow", markup=False)
        if not self.as_json:
            for picture in saved:
                self._show(picture)

    def _save(self, answer: PictureAnswer) -> list[SavedPicture]:
        if self.output is not None and not self.output.resolve().parent.is_dir():
            raise ValueError(f"{self.output} cannot be written: its folder does not exist")
        suffix = self.output.suffix.lower() if self.output else ""
        tool = {**self.tool, "output_format": self.tool["output_format"] or _FORMATS.get(suffix)}
        request = picture_request(self.prompt, model=self.model, tool=tool, edit=self.edit)
        # Not left to rich: FORCE_COLOR would make a file look like a terminal.
        console = Console(stderr=True, highlight=False, force_terminal=sys.stderr.isatty())
        progress = Progress(answer, previews=self.inline and shows_pictures(console))
        with progress.live(console) as live:
            asyncio.run(ask_for_picture(request, answer, url=self.url))
            live.transient = not console.is_terminal
        return save_pictures(answer.pictures, self.output)

    def _show(self, picture: SavedPicture) -> None:
        console = Console(highlight=False)
        if self.inline and picture.image and shows_pictures(console):
            with contextlib.suppress(ImageError):  # a picture that is damaged is a file all the same
                console.print(inline_picture(decode_image(picture.image), console))
        self._write(str(picture.file))

    def _write(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _report(answer: PictureAnswer, saved: list[SavedPicture], problem: Problem | None) -> dict[str, Any]:
    none = dict.fromkeys(("file", "size", "format", "revised_prompt"))
    return {
        **(saved[0].facts() if saved else none),
        "response_id": answer.response_id,
        "text": answer.text,
        "usage": answer.usage,
        "error": problem and problem._asdict(),
        "others": [picture.facts() for picture in saved[1:]],
    }
