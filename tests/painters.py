"""Backends that do what a test tells them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any, Self

from driving import paint
from imagecall.events.tools.base import ToolCall
from imagecall.middleware.backends.base import Image, ImageRequest, OnPartial
from waiting import News

__all__ = ["Painter", "Studio", "png", "raising"]


def png(prompt: str) -> bytes:
    """Paint a small PNG whose colour depends on the prompt."""
    return base64.b64decode(paint(ToolCall("", {"prompt": prompt})).data)


class Painter:
    """A backend that paints as soon as it may.

    Args:
        waits: whether it waits for `may_finish`, after the previews.
        makes: what to make of a prompt; something else than `png` for a bad backend.

    Attributes:
        asked: the requests, in order.
        cancelled: the prompts of those that were cancelled.
        may_preview: set unless a test clears it; each call then shows as many previews as are wanted.
        may_finish: lets all calls finish.
    """

    def __init__(self, *, waits: bool = False, makes: Callable[[str], bytes | Image] = png) -> None:
        self.asked: list[ImageRequest] = []
        self.cancelled: list[str] = []
        self.may_preview = asyncio.Event()
        self.may_preview.set()
        self.may_finish = asyncio.Event()
        if not waits:
            self.may_finish.set()
        self._makes = makes
        self._news = News()

    async def was_asked(self, times: int = 1) -> None:
        await self._news.until(lambda: len(self.asked) >= times)

    async def was_cancelled(self, times: int = 1) -> None:
        await self._news.until(lambda: len(self.cancelled) >= times)

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes | Image:
        self.asked.append(request)
        self._news.tell()
        try:
            await self.may_preview.wait()
            for count in range(request.partial_images):
                await on_partial(png(f"{request.prompt} {count}"))
            await self.may_finish.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.prompt)
            self._news.tell()
            raise
        return self._makes(request.prompt)


def raising(error: BaseException) -> Painter:
    """Make a backend that raises instead of painting."""

    def make(_: str) -> bytes:
        raise error

    return Painter(makes=make)


class Studio(Painter):
    """A backend with a session.

    Args:
        failures: what each opening raises; the next one after them succeeds.
        closing: what closing raises.
    """

    def __init__(self, *failures: BaseException, closing: Exception | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.opening = asyncio.Event()
        self.opened: list[asyncio.Task[Any] | None] = []
        self.closed: list[asyncio.Task[Any] | None] = []
        self._failures = [*failures]
        self._closing = closing

    async def __aenter__(self) -> Self:
        self.opened.append(asyncio.current_task())
        self.opening.set()
        await self.may_open.wait()
        if self._failures:
            raise self._failures.pop(0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.closed.append(asyncio.current_task())
        if self._closing is not None:
            raise self._closing
