"""One picture from one server: ask for it, read the answer as it comes, fetch what it points to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ....events.errors import RemoteProtocolError
from ....events.sse import ServerSentEvent, SSEDecoder
from ....events.wire import loads
from ...images import decode_base64, read_image
from ..base import Image, ImageError, ImageRequest, OnPartial
from .answer import Found, find_picture, read_answer
from .errors import AnswerError
from .patience import Patience
from .request import Dialect, form_of, json_of
from .server import ImagesServer

__all__ = ["ImagesCall"]

log = logging.getLogger("imagecall")

T = TypeVar("T")

_LARGE = 1 << 20
"""Bytes above which parsing and decoding would hold up the other streams and go to a thread."""

_ANY_SIZE = 1 << 62
"""The middleware has the say on pixels."""


@dataclass(slots=True, kw_only=True)
class ImagesCall:
    """One call of `generate`.

    Attributes:
        server: where to ask.
        dialect: what the server takes.
        patience: how often to ask.
        plain: the endpoints and models that refused `response_format`; all calls of a backend share it.
        max_bytes: of one picture.
        request: what to draw.
        on_partial: takes the previews.
        deadline: bounds the call; it stands still while a preview is shown.
        shown: how many previews were.
    """

    server: ImagesServer
    dialect: Dialect
    patience: Patience
    plain: set[tuple[str, str | None]]
    max_bytes: int
    request: ImageRequest
    on_partial: OnPartial
    deadline: asyncio.Timeout
    shown: int = 0

    async def make(self) -> Image:
        """Make the picture.

        Raises:
            ImageError: there is none.
        """
        found = await self.patience.until(self._ask, self.deadline)
        data = found.data
        if found.url:
            data = await self.server.fetch(found.url)
        elif found.base64:
            data = await _aside(partial(decode_base64, max_bytes=self.max_bytes), found.base64)
        return read_image(data, max_bytes=self.max_bytes, max_pixels=_ANY_SIZE, **found.facts)

    @property
    def _longest(self) -> int:
        """Bytes of an answer: one picture in base64, and words."""
        return self.max_bytes * 4 // 3 + (1 << 20)

    async def _ask(self) -> Found:
        """Ask once; and once more without `response_format` if that is what the server refuses."""
        path = "images/edits" if self.request.images else "images/generations"
        place = (path, self.dialect.model_for(self.request.model))
        base64 = self.dialect.asks_base64(self.request) and place not in self.plain
        try:
            return await self._post(path, base64=base64)
        except AnswerError as error:
            if not base64 or not error.names("response_format"):
                raise
        self.plain.add(place)
        return await self._post(path, base64=False)

    async def _post(self, path: str, *, base64: bool) -> Found:
        async with self.server.post(path, **await self._body(base64=base64)) as response:
            content_type = response.content_type.lower()
            if content_type == "text/event-stream":
                return await self._stream(partial(self.server.read_piece, response))
            body = await self.server.read_body(response, self._longest, self.max_bytes)
        return await _aside(partial(read_answer, content_type=content_type, errors=self.server.errors), body)

    async def _body(self, *, base64: bool) -> dict[str, Any]:
        fields = self.dialect.fields(self.request, base64=base64)
        if self.request.images and self.dialect.edits == "multipart":
            return {"data": form_of(fields, self.request)}
        if self.request.images:
            data = await asyncio.to_thread(json_of, fields, self.request)
        else:
            data = json_of(fields, self.request)
        return {"data": data, "content_type": "application/json"}

    async def _stream(self, read: Callable[[], Any]) -> Found:
        """Read events until one holds the finished picture; what comes after it is of no interest."""
        decoder = SSEDecoder(max_event=self._longest)
        try:
            piece = b"\n"
            while piece:
                piece = await read()
                for event in decoder.feed(piece) if piece else decoder.close():
                    if found := await self._event(event):
                        return found
        except RemoteProtocolError:
            message = (
                f"An event of the image server is longer than a picture of the {self.max_bytes:,} bytes that "
                "max_image allows."
            )
            raise ImageError(message, code="image_too_large") from None
        raise ImageError("The image server's stream ended without a picture.", code="no_image")

    async def _event(self, event: ServerSentEvent) -> Found | None:
        try:
            payload = await _aside(loads, event.data)
        except ValueError:  # `[DONE]`, or words
            payload = event.data.decode(errors="replace")
        name = (event.event or b"").decode(errors="replace")
        kind = payload.get("type", name) if isinstance(payload, dict) else name
        if isinstance(payload, dict) and payload.get("error"):
            raise self.server.errors.answered(payload)
        if "error" in (kind, name):
            raise self.server.errors.answered({"error": payload})
        if str(kind).endswith(".partial_image"):
            await self._show(payload)
            return None
        return find_picture(payload)

    async def _show(self, payload: object) -> None:
        """Show a preview. A slow client uses up none of the picture's time."""
        encoded = payload.get("b64_json") if isinstance(payload, dict) else None
        if self.shown >= self.request.partial_images or not isinstance(encoded, str):
            return
        try:
            preview = await _aside(partial(decode_base64, max_bytes=self.max_bytes), encoded)
        except ImageError as error:  # the picture itself may still be good
            log.info("A preview was dropped: %s", error.code)
            return
        self.shown += 1
        clock = asyncio.get_running_loop().time
        when = self.deadline.when()
        assert when is not None
        left = when - clock()
        self.deadline.reschedule(None)
        try:
            await self.on_partial(preview)
        finally:
            self.deadline.reschedule(clock() + left)


async def _aside(function: Callable[[Any], T], data: bytes | str) -> T:
    """Call a function of `data`, in a thread if there is much of it."""
    if len(data) < _LARGE:
        return function(data)
    return await asyncio.to_thread(function, data)
