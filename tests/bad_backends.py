"""Backends that each break one clause of the contract."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Self

from imagecall.middleware.backends.base import Image, ImageError, ImageRequest, OnPartial
from painters import png

__all__ = [
    "Absent",
    "Blind",
    "Blocking",
    "Broken",
    "Careless",
    "Choosy",
    "Confused",
    "Deaf",
    "Detached",
    "Eager",
    "Early",
    "Good",
    "Hanging",
    "Idle",
    "Late",
    "Mute",
    "Plain",
    "Rude",
    "Shy",
    "Silent",
    "Single",
    "Slow",
    "Unlucky",
    "Wild",
]


class Good:
    """Keeps the contract: previews, edits, a session."""

    def __init__(self) -> None:
        self.open = False

    async def __aenter__(self) -> Self:
        assert not self.open
        self.open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open = False

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image | bytes:
        assert self.open
        if request.prompt == "fail":
            raise ImageError("It cannot be painted.")
        await self.show(request, on_partial)
        await self.work()
        return self.paint(request)

    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        for number in range(request.partial_images):
            await on_partial(png(f"{request.prompt} {number}"))

    async def work(self) -> None:
        await asyncio.sleep(0)

    def paint(self, request: ImageRequest) -> Image | bytes:
        return png(request.prompt)


class Plain:
    """Keeps the contract with as little as possible: no previews, no edits, no session."""

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        if request.images:
            raise ImageError("It cannot edit.")
        return png(request.prompt)


class Wild(Good):
    def paint(self, request: ImageRequest) -> Image | bytes:
        return b"<svg/>"


class Confused(Good):
    def paint(self, request: ImageRequest) -> Any:
        return "a picture"


class Absent(Good):
    async def work(self) -> None:
        raise TimeoutError


class Hanging(Good):
    async def work(self) -> None:
        await asyncio.Event().wait()


class Choosy(Good):
    def paint(self, request: ImageRequest) -> Image | bytes:
        if request.output_format == "webp":
            raise ImageError("Only png.")
        return super().paint(request)


class Broken(Good):
    def paint(self, request: ImageRequest) -> Image | bytes:
        if request.size:
            width, height = request.size.split("x")
            assert int(width) * int(height)
        return super().paint(request)


class Careless(Good):
    def paint(self, request: ImageRequest) -> Image | bytes:
        if request.extra:
            raise TypeError(f"unknown: {request.extra}")
        return super().paint(request)


class Single(Good):
    """Serves one client only."""

    busy = False

    async def work(self) -> None:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        await asyncio.sleep(0)
        self.busy = False


class Blocking(Good):
    async def work(self) -> None:
        time.sleep(0.3)  # noqa: ASYNC251  just this


class Eager(Good):
    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        await on_partial(png("more than anybody wanted"))


class Early(Good):
    """Shows the finished picture."""

    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        for _ in range(request.partial_images):
            await on_partial(png(request.prompt))


class Shy(Good):
    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        pass


class Rude(Good):
    """Shows what is no picture."""

    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        for _ in range(request.partial_images):
            await on_partial(b"GIF89a?")


class Detached(Good):
    """Does not wait until a preview is shown."""

    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        shown = (_awaited(on_partial, png("x")) for _ in range(request.partial_images))
        self.showing = [asyncio.ensure_future(preview) for preview in shown]


class Late(Good):
    """Shows a preview afterwards."""

    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        if request.partial_images:
            self.showing = asyncio.get_running_loop().call_soon(
                lambda: asyncio.ensure_future(_awaited(on_partial, png("x")))
            )

    async def work(self) -> None:
        pass


class Blind(Good):
    """Paints the given picture's size but not what is in it: it returns it as it came."""

    def paint(self, request: ImageRequest) -> Image | bytes:
        return request.images[0] if request.images else super().paint(request)


class Deaf(Good):
    """Swallows its cancellation, from the second call on."""

    warm = False

    async def work(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            if self.warm:
                await asyncio.Event().wait()
        self.warm = True


class Slow(Good):
    """Goes on in a task that nobody owns, from the second call on."""

    warm = False

    async def work(self) -> None:
        if self.warm:
            self.working = asyncio.ensure_future(asyncio.Event().wait())
            await asyncio.shield(self.working)
        self.warm = True


class Idle(Good):
    """Can be opened once."""

    opened = 0

    async def __aenter__(self) -> Self:
        self.opened += 1
        if self.opened > 1:
            raise RuntimeError("used up")
        return await super().__aenter__()


class Unlucky(Good):
    """Keeps the contract: its client goes while a preview is on its way."""

    async def show(self, request: ImageRequest, on_partial: OnPartial) -> None:
        task = asyncio.current_task()
        assert task is not None
        if request.partial_images:
            asyncio.get_running_loop().call_soon(task.cancel)
        await super().show(request, on_partial)


class Silent(Good):
    """Fails without a word."""

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image | bytes:
        if request.prompt == "fail":
            raise ImageError("")
        return await super().generate(request, on_partial)


class Mute(Good):
    """Fails without a code."""

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image | bytes:
        if request.prompt == "fail":
            raise ImageError("No.", code="")
        return await super().generate(request, on_partial)


async def _awaited(on_partial: OnPartial, preview: bytes) -> None:
    await on_partial(preview)
