"""Makes the pictures that the translator asks for, several at a time, and reports back."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any

from ..events.actions import Action
from ..events.tools.base import ToolCall, ToolError, ToolOutcome, ToolProgress
from ..events.translator import Translator
from .backends.base import Image, ImageBackend, ImageError, ImageRequest
from .images import conform, read_image
from .settings import Settings

__all__ = ["BackendOwner", "Report", "Runner"]

log = logging.getLogger("imagecall")

Report = Callable[[Callable[[], list[Action]]], Coroutine[Any, Any, None]]
"""Call the translator under the exchange's lock and perform what it returns."""

_LARGE = 1 << 20
"""Bytes above which encoding would hold up the other streams and goes to a thread."""


class BackendOwner:
    """Opens a backend before its first picture and closes it at shutdown, both in one task of its own.

    A session must be left in the task that entered it, and no request lives long enough.
    """

    def __init__(self, backend: ImageBackend | None) -> None:
        self._backend = backend
        self._session: _Session | None = None

    @property
    def present(self) -> bool:
        """Whether there is a backend at all."""
        return self._backend is not None

    async def backend(self) -> ImageBackend:
        """Return the backend, open. A failure to open it is the caller's; the next caller tries again."""
        if self._backend is None:
            raise ImageError("There is no image backend.", code="no_backend")
        if not isinstance(self._backend, AbstractAsyncContextManager):
            return self._backend
        if self._session is None or self._session.task.done():
            self._session = _Session(self._backend)
        session = self._session
        await session.settled.wait()
        if session.failure is not None:
            raise session.failure
        return self._backend

    async def close(self) -> None:
        """Close the backend if it was ever opened."""
        if self._session is not None:
            await self._session.close()


class _Session:
    """One opening of a backend; `settled` is set when it has succeeded or failed."""

    def __init__(self, backend: AbstractAsyncContextManager[Any]) -> None:
        self.settled = asyncio.Event()
        self.failure: Exception | None = ImageError("The image backend was not opened.", code="no_backend")
        self._closing = asyncio.Event()
        self.task = asyncio.create_task(self._own(backend))

    async def _own(self, backend: AbstractAsyncContextManager[Any]) -> None:
        try:
            async with backend:
                self.failure = None
                self.settled.set()
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001  whatever a backend raises belongs to its callers
            if self.settled.is_set():
                log.warning("The image backend did not close cleanly: %s", type(error).__name__)
            else:
                self.failure = error
        finally:
            self.settled.set()

    async def close(self) -> None:
        self._closing.set()
        if not self.settled.is_set():
            self.task.cancel()
        await asyncio.wait([self.task])


class Runner:
    """The pictures of one response.

    Args:
        owner: gives the backend.
        slots: bounds the pictures made at a time in this process.
        settings: the limits.
        translator: is told of previews and results.
        report: calls the translator under the exchange's lock.
        group: the exchange's task group.
    """

    def __init__(
        self,
        owner: BackendOwner,
        slots: asyncio.Semaphore,
        settings: Settings,
        translator: Translator,
        report: Report,
        group: asyncio.TaskGroup,
    ) -> None:
        self._owner = owner
        self._slots = slots
        self._own_slots = asyncio.Semaphore(settings.concurrency_per_response)
        self._settings = settings
        self._translator = translator
        self._report = report
        self._group = group
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
        outcome = await self._outcome(call)
        await self._report(lambda: self._translator.tool_finished(call.id, outcome))

    async def _outcome(self, call: ToolCall) -> ToolOutcome:
        seconds = self._settings.call_timeout
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline, self._own_slots, self._slots:
                image = await self._picture(call, deadline)
            data = await _base64(image.data)
        except ImageError as error:
            log.info("%s failed: %s", call.id, error.code)
            return _failed(error.message, error.code, error)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _nobody_waits():
                raise
            if deadline.expired():
                log.warning("%s failed: no picture within %g seconds", call.id, seconds)
                return _failed(f"No picture was made within {seconds:g} seconds.", "timeout")
            # Its words are not fit for every log: they may hold the prompt, or a key in a URL.
            log.error("%s failed: the image backend raised %s", call.id, type(error).__name__)  # noqa: TRY400
            log.debug("%s failed", call.id, exc_info=True)
            return _failed("The image backend failed.", "image_backend_error")
        log.info("%s is finished: %r", call.id, image)
        return ToolOutcome(data=data, facts=_facts(image), usage=image.usage)

    async def _picture(self, call: ToolCall, deadline: asyncio.Timeout) -> Image:
        request = ImageRequest(**call.arguments)
        backend = await self._owner.backend()

        async def on_partial(preview: Image | bytes) -> None:
            try:
                shown = self._read(preview)
            except ImageError as error:  # the picture itself may still be good
                log.info("%s: a preview was dropped: %s", call.id, error.code)
                return
            progress = ToolProgress(data=await _base64(shown.data), facts=_facts(shown))
            await self._show(deadline, lambda: self._translator.tool_progress(call.id, progress))

        image = self._read(await backend.generate(request, on_partial))
        return await asyncio.to_thread(conform, image, request)

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
        return replace(image, revised_prompt=made.revised_prompt, quality=made.quality, usage=made.usage)


def _nobody_waits() -> bool:
    """Tell a cancellation from outside from a backend's own, which is a failure like any other."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
