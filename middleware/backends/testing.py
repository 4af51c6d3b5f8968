"""The contract between the middleware and a backend, as tests that anybody's backend can be put to.

It needs pytest and pytest-asyncio, in any of its modes, and nothing else. Subclass it in a test file:

    from imagecall.middleware.backends.testing import BackendContract

    class TestMyBackend(BackendContract):
        supports_edits = True

        @pytest.fixture
        def backend(self):
            return MyBackend()
"""

from __future__ import annotations

import asyncio
import io
import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import PIL.Image
import pytest

from ..images import decode_image, read_image
from .base import Image, ImageBackend, ImageError, ImageRequest, OnPartial

__all__ = ["BackendContract"]

_LIMIT = 1 << 30
"""Bytes and pixels that no test exceeds: how large a picture may be is for the middleware's settings."""

_FEW = 10
"""Turns of the event loop, after which what was cancelled has stopped."""


@pytest.mark.asyncio
class BackendContract:
    """Give a subclass whose name begins with `Test` a fixture `backend` that returns a new backend.

    Each test opens the backend itself, if it is an async context manager, and closes it.

    Attributes:
        supports_previews: whether previews come when they are asked for; else there may be some or none.
        supports_edits: whether given pictures are changed; else asking for that must be an `ImageError`.
        prompt: what is painted.
        sizes: sizes that must give a picture, in whatever size it then has.
        calls_at_once: how many pictures are made at the same time.
        patience: seconds after which a call that neither makes a picture nor fails is wrong.
        cancel_after: seconds after which a call is cancelled, so that its work has begun.
        longest_block: seconds for which the event loop may stand still, and with it every other client.
    """

    supports_previews: ClassVar[bool] = False
    supports_edits: ClassVar[bool] = False
    prompt: ClassVar[str] = "a red kite over a harbour"
    sizes: ClassVar[tuple[str, ...]] = ("1024x1024", "1536x1024", "1024x1536")
    calls_at_once: ClassVar[int] = 5
    patience: ClassVar[float] = 300.0
    cancel_after: ClassVar[float] = 0.05
    longest_block: ClassVar[float] = 2.0

    @pytest.fixture
    def failing(self) -> tuple[ImageBackend, ImageRequest] | None:
        """Override this to return a backend and a request that it cannot fulfil."""
        return None

    async def test_a_prompt_becomes_a_picture(self, backend: ImageBackend) -> None:
        """A prompt alone must be enough."""
        async with _opened(backend):
            await self._picture(backend, ImageRequest(self.prompt))

    async def test_usual_wishes_are_fulfilled_or_passed_over(self, backend: ImageBackend) -> None:
        """The middleware turns formats into each other, so a backend may answer in its own."""
        formats = itertools.cycle(("png", "jpeg", "webp"))
        async with _opened(backend):
            for size, kind in zip(self.sizes, formats, strict=False):
                wish = ImageRequest(
                    self.prompt, model="gpt-image-2", size=size, output_format=kind, quality="low"
                )
                await self._picture(backend, wish)

    async def test_an_odd_wish_gives_a_picture_or_an_image_error(self, backend: ImageBackend) -> None:
        """A wish that cannot be fulfilled is passed over, or refused in words."""
        async with _opened(backend):
            for odd in (
                ImageRequest(self.prompt, size="wide"),
                ImageRequest(self.prompt, output_format="avif"),
                ImageRequest(self.prompt, quality="?"),
            ):
                await self._picture_or_error(backend, odd)

    async def test_unknown_fields_do_no_harm(self, backend: ImageBackend) -> None:
        """A client's declaration may have fields that nobody knows yet; see `ImageRequest.extra`."""
        extra = {"x_style": "oil", "x_options": {"steps": None, "seeds": [1, 2]}}
        async with _opened(backend):
            await self._picture(backend, ImageRequest(self.prompt, extra=extra))

    async def test_many_pictures_are_made_at_once_and_nobody_else_is_held_up(
        self, backend: ImageBackend
    ) -> None:
        """One object serves all clients, and one event loop the rest of the server as well."""
        requests = [ImageRequest(f"{self.prompt}, {number}") for number in range(self.calls_at_once)]
        async with _opened(backend), _watched() as gaps:
            await asyncio.gather(*(self._picture(backend, request) for request in requests))
        assert max(gaps) < self.longest_block, (
            f"the event loop stood still for {max(gaps):.1f} seconds: await, or work in a thread"
        )

    async def test_previews_are_unfinished_pictures_that_come_before_the_end(
        self, backend: ImageBackend
    ) -> None:
        """At most as many as were asked for, each awaited, none of them the finished picture."""
        async with _opened(backend):
            for wanted in (0, 1, 3):
                previews = _Previews()
                request = ImageRequest(self.prompt, partial_images=wanted)
                final = await self._picture(backend, request, previews)
                previews.ended = True
                await _settle()
                assert not previews.late, "a preview came after the picture, or was not awaited"
                assert len(previews.shown) <= wanted, f"{len(previews.shown)} previews instead of {wanted}"
                for preview in previews.shown:
                    assert _read(preview).data != final.data, "the finished picture was shown as a preview"
                if self.supports_previews and wanted == 3:
                    assert previews.shown, "no preview came"

    async def test_a_given_picture_is_changed_or_refused(self, backend: ImageBackend) -> None:
        """Who cannot edit must not paint something else instead."""
        request = ImageRequest(self.prompt, images=(_given(),))
        async with _opened(backend):
            if self.supports_edits:
                assert (await self._picture(backend, request)).data != _given().data, "nothing was changed"
            else:
                made = await self._picture_or_error(backend, request)
                assert made is None, "it cannot edit, yet made a picture without the given one"

    async def test_cancelling_stops_the_work_and_spoils_nothing(self, backend: ImageBackend) -> None:
        """The client has gone: the call ends at once, and the next one works."""
        async with _opened(backend):
            await self._picture(backend, ImageRequest(self.prompt))  # what opens with the first call is open
            before = asyncio.all_tasks()
            previews = _Previews()
            call = asyncio.ensure_future(
                backend.generate(ImageRequest(self.prompt, partial_images=3), previews)
            )
            await asyncio.wait([call], timeout=self.cancel_after)
            previews.ended = True
            if call.cancel():
                await asyncio.wait([call], timeout=self.patience)
                assert call.cancelled(), "the call went on although it was cancelled"
            await _settle()
            assert not asyncio.all_tasks() - before, "a task went on although its call was cancelled"
            assert not previews.late, "a preview came after the call was cancelled"
            await self._picture(backend, ImageRequest(self.prompt))

    async def test_it_can_be_opened_and_closed_again_and_again(self, backend: ImageBackend) -> None:
        """After a session has died the same object is opened anew."""
        async with _opened(backend):
            pass
        for _ in range(2):
            async with _opened(backend):
                await self._picture(backend, ImageRequest(self.prompt))

    async def test_a_failure_is_an_image_error_that_says_why(
        self, failing: tuple[ImageBackend, ImageRequest] | None
    ) -> None:
        """The model is told the message, so it must say what went wrong."""
        if failing is None:
            pytest.skip("there is no fixture `failing`, which returns a backend and a request that must fail")
        backend, request = failing
        with pytest.raises(ImageError) as caught:
            async with _opened(backend):
                await self._made(backend, request, _Previews())
        assert caught.value.code, "the error has no code"
        assert 0 < len(caught.value.message) <= 500, "the message is no sentence of 1 to 500 characters"

    async def _picture(
        self, backend: ImageBackend, request: ImageRequest, previews: _Previews | None = None
    ) -> Image:
        return _read(await self._made(backend, request, previews or _Previews()))

    async def _picture_or_error(self, backend: ImageBackend, request: ImageRequest) -> Image | None:
        try:
            return await self._picture(backend, request)
        except ImageError:
            return None

    async def _made(
        self, backend: ImageBackend, request: ImageRequest, on_partial: OnPartial
    ) -> Image | bytes:
        deadline = asyncio.timeout(self.patience)
        try:
            async with deadline:
                return await backend.generate(request, on_partial)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise AssertionError(f"there was no picture within {self.patience:g} seconds") from error


class _Previews:
    """Takes previews as a slow client does. `late` are those that were not taken before the end."""

    def __init__(self) -> None:
        self.shown: list[Image | bytes] = []
        self.late = 0
        self.ended = False

    async def __call__(self, preview: Image | bytes) -> None:
        came_late = self.ended
        self.shown.append(preview)
        self.late += 1
        try:
            await _settle()
        except asyncio.CancelledError:  # its call was cancelled, and it stopped with that
            self.late -= not came_late
            raise
        self.late -= not self.ended


@asynccontextmanager
async def _opened(backend: ImageBackend) -> AsyncIterator[None]:
    if isinstance(backend, AbstractAsyncContextManager):
        async with backend:
            yield
    else:
        yield


@asynccontextmanager
async def _watched() -> AsyncIterator[list[float]]:
    """Measure the gaps between two turns of the event loop."""
    clock = asyncio.get_running_loop().time
    gaps: list[float] = []

    async def watch() -> None:
        last = clock()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(clock() - last)
            last = clock()

    watcher = asyncio.ensure_future(watch())
    try:
        yield gaps
        await asyncio.sleep(0.02)
    finally:
        watcher.cancel()


async def _settle() -> None:
    for _ in range(_FEW):
        await asyncio.sleep(0)


def _read(made: Image | bytes) -> Image:
    """Read a picture as the middleware does, and decode it as a client does."""
    assert isinstance(made, Image | bytes), f"a {type(made).__name__} is neither bytes nor an Image"
    data = made.data if isinstance(made, Image) else made
    try:
        image = read_image(data, max_bytes=_LIMIT, max_pixels=_LIMIT)
        decode_image(image)
    except ImageError as error:
        raise AssertionError(f"this is no picture: {error}") from error
    return image


def _given() -> Image:
    file = io.BytesIO()
    PIL.Image.linear_gradient("L").convert("RGB").save(file, "PNG")
    return _read(file.getvalue())
