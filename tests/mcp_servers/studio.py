"""What both example servers do: a painter that obeys its prompts, so that a test can direct it from afar.

Prompts: the name of one of `SHAPES` or `WITHOUT_PICTURE`; `large`; `fail: words`; `wait NAME` waits until
another call says `tick NAME` (progress is reported) or `finish NAME`; `hang` waits until it is cancelled,
`until hanging` and `until cancelled` until that has happened; `together N` waits until N are there; `tell X`
fails with the process's id and its variable X; `exit` ends the process, `exit FILE` unless that file is
there, which it then is; anything else is painted as a dot.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp_servers.shapes import DOT_BASE64, SHAPES, WITHOUT_PICTURE, large_png

__all__ = ["FailedError", "Studio"]

Json = dict[str, Any]

Progress = Callable[[float, str], Awaitable[None]]


class FailedError(Exception):
    """The tool fails, in words for the client."""


class Studio:
    """Everything that one server knows."""

    def __init__(self) -> None:
        self.calls: list[Json] = []
        self._news = asyncio.Condition()
        self._facts: dict[str, int] = {}

    async def paint(self, arguments: Json, progress: Progress) -> Json:
        """Obey a call; return a result as it stands on the wire."""
        self.calls.append(arguments)
        prompt = arguments["prompt"]
        if prompt in SHAPES:
            return SHAPES[prompt]
        if prompt in WITHOUT_PICTURE:
            return WITHOUT_PICTURE[prompt]
        verb, _, name = prompt.partition(" ")
        match verb:
            case "large":
                return _block(base64.b64encode(large_png(6.0)).decode())
            case "fail:":
                raise FailedError(name)
            case "exit":
                _exit_unless(name)
            case "wait":
                await self._wait(name, progress)
            case "tick" | "finish":
                await self._note(prompt)
            case "hang":
                await self._hang()
            case "until":
                await self._until(lambda: self._facts.get(name, 0) > 0)
            case "together":
                await self._note("together")
                await self._until(lambda: self._facts["together"] >= int(name))
            case "tell":
                raise FailedError(f"{os.getpid()} {os.environ.get(name)}")
        return _block(DOT_BASE64)

    async def _wait(self, name: str, progress: Progress) -> None:
        await self._note(f"waiting {name}")
        tick, finish = f"tick {name}", f"finish {name}"
        while finish not in self._facts:
            await self._until(lambda: tick in self._facts or finish in self._facts)
            for count in range(self._facts.pop(tick, 0)):
                await progress(count, "still painting")

    async def _hang(self) -> None:
        await self._note("hanging")
        try:
            await asyncio.Event().wait()
        finally:
            self._facts["cancelled"] = 1
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, self._note("cancelled"))

    async def _note(self, fact: str) -> None:
        async with self._news:
            self._facts[fact] = self._facts.get(fact, 0) + 1
            self._news.notify_all()

    async def _until(self, true: Callable[[], bool]) -> None:
        async with self._news:
            await self._news.wait_for(true)


def _exit_unless(name: str) -> None:
    if name and Path(name).exists():
        return
    if name:
        Path(name).touch()
    os._exit(3)


def _block(data: str) -> Json:
    return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}
