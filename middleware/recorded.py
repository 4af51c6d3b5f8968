"""What a recording knows and chance would decide otherwise: the pictures, the ids, the clock, the order."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..events.sse import SSEDecoder
from ..events.wire import loads, strings_of
from .backends.base import Image, ImageError, ImageRequest, OnPartial
from .images import read_image
from .replay import Recording

__all__ = ["RecordedBackend", "RecordedOrder", "recorded_clock", "recorded_ids"]

Json = dict[str, Any]

_CALL = "image_generation_call"
_PARTIAL = f"response.{_CALL}.partial_image"
_COMPLETED = f"response.{_CALL}.completed"
_ITEM_DONE = "response.output_item.done"
_ANY_SIZE = 1 << 40
"""Pixels: the picture was within some limit when it was recorded."""
_ID_KEYS = ("id", "item_id", "call_id")
_STEPS = 20
"""Rounds of the event loop within which a picture that the model asked for has begun; it takes two."""


def recorded_ids(recording: Recording) -> Callable[[str], str]:
    """Return an id factory that gives the ids which were made up when this was recorded, in that order.

    These are the client's ids that no model server's turn holds. When they are used up, or never
    reached the client, it counts: `call_00000000000000000000000000000001`.
    """
    upstream = b"\n".join(turn.body for turn in recording.turns)
    made_up: dict[str, deque[str]] = {}
    for identifier in dict.fromkeys(strings_of(_events(recording.client), _ID_KEYS)):
        if identifier.encode() not in upstream:
            made_up.setdefault(identifier.rpartition("_")[0], deque()).append(identifier)
    counter = itertools.count(1)

    def new_id(prefix: str) -> str:
        waiting = made_up.get(prefix)
        return waiting.popleft() if waiting else f"{prefix}_{next(counter):032d}"

    return new_id


def recorded_clock(recording: Recording) -> Callable[[], float]:
    """Return a clock that stands still at the recorded response's `created_at`; at 0 if it has none."""
    responses = (event.get("response") for event in _events(recording.client))
    created = (response.get("created_at") for response in responses if isinstance(response, dict))
    now = float(next((moment for moment in created if moment is not None), 0))
    return lambda: now


class RecordedOrder:
    """Makes pictures and model server speak in the recorded order.

    Pictures are made beside the stream, so by chance their frames come a little earlier or later.
    Here the recording's next frame decides: if a picture made it, and that picture has begun, the
    model server waits; a picture waits until its own frame is next. A stream that has come to
    differ from the recording may leave everybody waiting: then the order is given up.

    Args:
        recording: a recorded stream; without one (the client got one JSON object) nobody waits.
        patience: seconds after which nothing more is expected to happen.
    """

    def __init__(self, recording: Recording, *, patience: float = 1.0) -> None:
        streamed = not _is_json(recording.client)
        self._makers = [_maker(event) for event in _events(recording.client)] if streamed else []
        self._patience = patience
        self._sent = 0
        self._begun: set[str] = set()
        self._moved = asyncio.Event()

    def sent(self, _status: int, piece: bytes) -> None:
        """Learn what the client has been sent."""
        self._sent += piece.count(b"\n\n")
        self._moved.set()

    async def picture(self, item_id: str) -> None:
        """Wait until the picture of this item may speak."""
        self._begun.add(item_id)
        await self._until(lambda: self._next() in (item_id, None))

    def pace(self, app: ASGIApp) -> ASGIApp:
        """Return the model server `app`, which waits before each message while a picture is to speak."""

        async def paced(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_in_turn(message: Message) -> None:
                await self._upstream()
                await send(message)

            await app(scope, receive, send_in_turn)

        return paced

    async def _upstream(self) -> None:
        for _ in range(_STEPS):
            if not self._next() or self._next() in self._begun:
                break
            await asyncio.sleep(0)
        await self._until(lambda: self._next() not in self._begun)

    def _next(self) -> str | None:
        """Return the id of the picture that made the next frame, "" for the server's, None at the end."""
        return self._makers[self._sent] if self._sent < len(self._makers) else None

    async def _until(self, may_speak: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                while not may_speak():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            self._makers = []


class RecordedBackend:
    """An image backend that hands out the recorded pictures, their previews and their failures.

    A call gets the picture that was recorded for its prompt, else the first that is left.

    Args:
        recording: whose pictures.
        order: when they may be handed out; at once if there is none.
    """

    def __init__(self, recording: Recording, order: RecordedOrder | None = None) -> None:
        self._left = _pictures(recording.client)
        self._order = order

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image:
        """Hand out one recorded picture.

        Raises:
            ImageError: as it was recorded, or because there are no more pictures.
        """
        if not self._left:
            raise ImageError("The recording holds no further picture.", code="not_recorded")
        picture = min(self._left, key=lambda other: (other.prompt != request.prompt, not other.prompt))
        self._left.remove(picture)
        for preview in picture.previews:
            await self._wait(picture)
            await on_partial(_image(preview["partial_image_b64"], quality=preview.get("quality")))
        await self._wait(picture)
        return picture.image()

    async def _wait(self, picture: _Picture) -> None:
        if self._order is not None:
            await self._order.picture(picture.item["id"])


@dataclass(slots=True, eq=False)
class _Picture:
    """One recorded call: its finished item, its partial-image events, and what it cost."""

    item: Json
    previews: list[Json]
    usage: Json | None = None

    @property
    def prompt(self) -> str | None:
        prompt: str | None = self.item.get("revised_prompt")
        return prompt

    def image(self) -> Image:
        if not self.item.get("result"):
            error = dict(self.item.get("error") or {})
            message = error.pop("message", "The picture failed when this was recorded.")
            known = {key: error.pop(key) for key in ("code", "type", "param") if key in error}
            raise ImageError(message, **known, details=error or None)
        facts = {"revised_prompt": self.prompt, "quality": self.item.get("quality"), "usage": self.usage}
        return _image(self.item["result"], **facts)


def _image(encoded: str, **facts: Any) -> Image:
    data = base64.b64decode(encoded)
    # Whatever is in the file, the client got it.
    return read_image(data, max_bytes=len(data), max_pixels=_ANY_SIZE, keep_metadata=True, **facts)


def _pictures(client: bytes) -> list[_Picture]:
    """List the recorded calls in the order of the output."""
    items: list[tuple[int, Json]] = []
    previews: dict[str, list[Json]] = {}
    usage = None
    for event in _events(client):
        if event.get("type") == _PARTIAL:
            previews.setdefault(event["item_id"], []).append(event)
        elif _is_call_done(event):
            items.append((event["output_index"], event["item"]))
        elif response := event.get("response"):
            usage = (response.get("tool_usage") or {}).get("image_gen")
    items.sort(key=lambda pair: pair[0])
    pictures = [_Picture(item, previews.get(item["id"], [])) for _, item in items]
    for made in [picture for picture in pictures if picture.item.get("result")][:1]:
        made.usage = usage  # only the sum was recorded, and one summand will do
    return pictures


def _maker(event: Json) -> str:
    """Return the id of the picture that made an event, "" if the model server did."""
    if _is_call_done(event):
        return str(event["item"]["id"])
    return str(event["item_id"]) if event.get("type") in (_PARTIAL, _COMPLETED) else ""


def _is_call_done(event: Json) -> bool:
    return event.get("type") == _ITEM_DONE and event["item"]["type"] == _CALL


def _is_json(client: bytes) -> bool:
    return client.lstrip().startswith(b"{")


def _events(client: bytes) -> list[Json]:
    """Parse what a client got; one JSON object counts as the events that end its items and itself."""
    if _is_json(client):
        response = loads(client)
        items = enumerate(response.get("output") or ())
        ends = [{"type": _ITEM_DONE, "output_index": index, "item": item} for index, item in items]
        return [*ends, {"response": response}]
    decoder = SSEDecoder()
    frames = decoder.feed(client) + decoder.close()
    return [{} if frame.data == b"[DONE]" else loads(frame.data) for frame in frames]
