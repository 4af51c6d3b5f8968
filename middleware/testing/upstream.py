"""A recorded model server for an application's tests: it answers as recorded and checks what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Protocol

from starlette.types import Message, Receive, Scope, Send

from ..recorded import RecordedBackend, recorded_clock, recorded_ids
from ..replay import Chunks, Recording, ReplayApp, byte_by_byte, frame_by_frame, whole
from .served import serve
from .wanted import objections

__all__ = ["Pace", "ReplayUpstream", "ReplayedUpstream"]

Pace = float | Callable[[], Awaitable[object]]
"""Seconds before each piece of a body, or what is awaited before each."""

_CHUNKS: dict[str, Chunks] = {"whole": whole, "frames": frame_by_frame, "bytes": byte_by_byte}


class ReplayUpstream(Protocol):
    """What the fixture `replay_upstream` is."""

    def __call__(
        self, folder: str, *, chunks: str | Chunks = "frames", pace: Pace = 0, check: bool = True
    ) -> ReplayedUpstream:
        """Serve the recording in this folder, which is relative to pytest's rootdir."""
        ...


class ReplayedUpstream:
    """An ASGI app that answers the n-th POST with the n-th recorded turn; on demand a server, too.

    Args:
        recording: what is replayed.
        name: what it is called in `problems`.
        chunks: how bodies are cut: `whole`, `frames` (each server-sent event alone), `bytes` (each byte),
            or a function of your own.
        pace: seconds before each piece, or an awaitable's maker: await your own event to hold the stream.
        check: whether requests are compared with what the recording wants.

    Attributes:
        recording: `request` is what the client sent then, `client` the bytes that it got.
        problems: what was asked wrongly so far, one sentence each. The fixture fails the test with them.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        name: str = "recording",
        chunks: str | Chunks = "frames",
        pace: Pace = 0,
        check: bool = True,
    ) -> None:
        if isinstance(chunks, str) and chunks not in _CHUNKS:
            raise ValueError(f"chunks={chunks!r} is none of {', '.join(_CHUNKS)}")
        self.recording = recording
        self.problems: list[str] = []
        self._name = name
        self._replay = ReplayApp(
            recording.turns, chunks=_CHUNKS[chunks] if isinstance(chunks, str) else chunks
        )
        self._pace = pace
        self._check = check
        self._servers = ExitStack()

    @property
    def requests(self) -> list[Any]:
        """The parsed bodies of all POSTs so far, in order."""
        return self._replay.requests

    @cached_property
    def url(self) -> str:
        """Where the model server listens, without `/v1`; it is started when this is first read."""
        return self._servers.enter_context(serve(self))

    @cached_property
    def options(self) -> dict[str, Any]:
        """Arguments for `ImageGenerationMiddleware` that make pictures, ids and time the recorded ones."""
        return {
            "backend": RecordedBackend(self.recording),
            "new_id": recorded_ids(self.recording),
            "now": recorded_clock(self.recording),
            "keepalive": 0,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: `http` or `lifespan`."""
        is_turn = scope["type"] == "http" and scope["method"] == "POST"
        asked = len(self.requests)

        async def send_in_time(message: Message) -> None:
            if is_turn and message["type"] == "http.response.start" and self._check:
                self._compare(scope["path"], asked)
            if message.get("body"):
                await (self._pace() if callable(self._pace) else asyncio.sleep(self._pace))
            await send(message)

        await self._replay(scope, receive, send_in_time)

    def close(self) -> None:
        """Stop the server, if there is one, and note the turns that nobody asked for."""
        self._servers.close()
        asked, recorded = len(self.requests), len(self.recording.turns)
        if self._check and asked < recorded:
            self._note(f"{asked} of {recorded} turns were asked for")

    def _compare(self, path: str, before: int) -> None:
        if len(self.requests) == before:
            self._note(f"a request to {path} was no JSON")
            return
        for objection in objections(self.recording.turns, self.requests):
            self._note(f"request {len(self.requests)} {objection}")
        if not path.rstrip("/").endswith("/responses"):
            self._note(f"request {len(self.requests)} went to {path}, not to /v1/responses")

    def _note(self, problem: str) -> None:
        self.problems.append(f"{self._name}: {problem}.")
