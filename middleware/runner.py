"""Makes the pictures that the translator asks for, several at a time, and reports back."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..events.actions import Action
from ..events.pictures import Picture
from ..events.tools.base import ToolCall, ToolError, ToolOutcome, ToolProgress
from ..events.translator import Translator
from .backends.base import Image, ImageError, ImageRequest
from .backends.owner import BackendOwner
from .cancellation import from_outside
from .edits.pictures import Pictures
from .images import conform, read_image, without_metadata
from .shared import Shared
from .telemetry.picture import ObservedPicture

__all__ = ["Report", "Runner"]

log = logging.getLogger("imagecall")

Report = Callable[[Callable[[], list[Action]]], Coroutine[Any, Any, None]]
"""Call the translator under the exchange's lock and perform what it returns."""

_LARGE = 1 << 20
"""Bytes above which a picture would hold up the other streams and goes to a thread."""


class Runner:
    """The pictures of one response.

    Args:
        shared: what all exchanges share: backends, slots, settings, and where pictures are also written.
        translator: is told of previews and results.
        report: calls the translator under the exchange's lock.
        group: the exchange's task group.
        observe: shows a picture to operators.
        pictures: gets the pictures that edits start from.
    """

    def __init__(
        self,
        shared: Shared,
        translator: Translator,
        report: Report,
        group: asyncio.TaskGroup,
        *,
        observe: Callable[[ToolCall], ObservedPicture],
        pictures: Pictures,
    ) -> None:
        self._routing = shared.routing
        self._slots = shared.slots
        self._settings = shared.settings
        self._artifacts = shared.artifacts
        self._own_slots = asyncio.Semaphore(self._settings.concurrency_per_response)
        self._translator = translator
        self._report = report
        self._group = group
        self._observe = observe
        self._pictures = pictures
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call: ToolCall) -> None:
        """Begin to make a picture."""
        task = self._group.create_task(self._run(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop everything: nobody wants the pictures any more."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, call: ToolCall) -> None:
        with self._observe(call) as observed:
            outcome = observed.ended(await self._outcome(call, observed))
        await self._report(lambda: self._translator.tool_finished(call.id, outcome))

    async def _outcome(self, call: ToolCall, observed: ObservedPicture) -> ToolOutcome:
        seconds = self._settings.call_timeout
        deadline = asyncio.timeout(seconds)
        try:
            owner = self._routing.owner(call.arguments.get("model"))
            async with deadline, self._own_slots:
                # Without a place: what an edit starts from may be far away, or gone.
                request = await self._request(call)
                # The process's slot comes last: a backend's queue must not hold up the other backends.
                async with owner.place(), self._slots:
                    observed.asked()
                    image = await self._picture(call.id, request, owner, deadline)
            data = await _base64(image.data)
        except ImageError as error:
            log.info("%s failed: %s", call.id, error.code)
            log.debug("%s failed: %s", call.id, error.message)  # it may repeat the prompt
            return _failed(error.message, error.code, error)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and from_outside():
                raise
            if deadline.expired():
                log.warning("%s failed: no picture within %g seconds", call.id, seconds)
                told = f"No picture was made within the {seconds:g} seconds that call_timeout allows."
                return _failed(told, "timeout")
            # Its words are not fit for every log: they may hold the prompt, or a key in a URL.
            log.error("%s failed: the image backend raised %s", call.id, type(error).__name__)  # noqa: TRY400  see above
            log.debug("%s failed", call.id, exc_info=True)
            return _failed("The image backend failed.", "image_backend_error")
        log.info("%s is finished: %r", call.id, image)
        path = await self._kept(call.id, image)
        return ToolOutcome(data=data, facts=_facts(image), usage=image.usage, path=path)

    async def _request(self, call: ToolCall) -> ImageRequest:
        """Put pictures where the call only refers to them."""
        arguments = dict(call.arguments)
        images: Sequence[Picture] = arguments.pop("images", ())
        mask: Picture | None = arguments.pop("mask", None)
        found = await self._pictures.resolve(images, mask)
        count = len(images)
        return ImageRequest(**arguments, images=found[:count], mask=None if mask is None else found[count])

    async def _kept(self, call_id: str, image: Image) -> str | None:
        """Write the picture to a file, too; return its path if the model may know it."""
        if self._artifacts is None:
            return None
        path = await self._artifacts.write(self._translator.response_id, call_id, image)
        return str(path) if path is not None and self._settings.artifact_hint else None

    async def _picture(
        self, call_id: str, request: ImageRequest, owner: BackendOwner, deadline: asyncio.Timeout
    ) -> Image:
        backend = await owner.backend()

        async def on_partial(preview: Image | bytes) -> None:
            try:
                shown = self._read(preview)
                clean = self._without_metadata
                shown = clean(shown) if len(shown.data) < _LARGE else await asyncio.to_thread(clean, shown)
            except ImageError as error:  # the picture itself may still be good
                log.info("%s: a preview was dropped: %s", call_id, error.code)
                return
            progress = ToolProgress(data=await _base64(shown.data), facts=_facts(shown))
            await self._show(deadline, lambda: self._translator.tool_progress(call_id, progress))

        image = self._read(await backend.generate(request, on_partial))
        return await asyncio.to_thread(lambda: self._without_metadata(conform(image, request)))

    async def _show(self, deadline: asyncio.Timeout, decide: Callable[[], list[Action]]) -> None:
        """Show a preview. A slow client uses up none of the picture's time, and no frame is cut in two."""
        clock = asyncio.get_running_loop().time
        left = None if (when := deadline.when()) is None else when - clock()
        with suppress(RuntimeError):  # a backend that shows something after its time
            deadline.reschedule(None)
        try:
            await asyncio.shield(self._group.create_task(self._report(decide)))
        finally:
            with suppress(RuntimeError):
                deadline.reschedule(None if left is None else clock() + left)

    def _read(self, made: Image | bytes) -> Image:
        """Believe the bytes, not the backend, in all that the bytes can tell."""
        data = made.data if isinstance(made, Image) else made
        image = read_image(data, max_bytes=self._settings.max_image, max_pixels=self._settings.max_pixels)
        if not isinstance(made, Image):
            return image
        return replace(
            image,
            revised_prompt=made.revised_prompt,
            quality=made.quality,
            usage=made.usage,
            keep_metadata=made.keep_metadata,
        )

    def _without_metadata(self, image: Image) -> Image:
        kept = image.keep_metadata or self._settings.keep_metadata
        return image if kept else without_metadata(image)


async def _base64(data: bytes) -> bytes:
    if len(data) < _LARGE:
        return base64.b64encode(data)
    return await asyncio.to_thread(base64.b64encode, data)


def _facts(image: Image) -> dict[str, Any]:
    facts = {
        "size": f"{image.width}x{image.height}",
        "output_format": image.output_format,
        "background": "transparent" if image.transparent else "opaque",
        "quality": image.quality,
        "revised_prompt": image.revised_prompt,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _failed(message: str, code: str, error: ImageError | None = None) -> ToolOutcome:
    if error is None:
        return ToolOutcome(error=ToolError(message, code))
    return ToolOutcome(error=ToolError(message, code, error.type, error.param, error.details))
