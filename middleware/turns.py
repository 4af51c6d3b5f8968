"""One request to the inner application: its scope, its `receive`, its `send`, and its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Scope

from ..events.actions import Action
from ..events.translator import Translator
from ..events.turn_events import TurnEnded
from .headers import DIGESTS, Headers, header
from .request_id import forwarded

__all__ = ["InnerTurn", "TurnReader", "rewritten_scope", "turn_scope"]

_OF_THE_BODY = {b"content-length", b"transfer-encoding", b"content-encoding", b"trailer", *DIGESTS}
_REQUEST_DROPPED = {
    b"accept-encoding",
    # Names the image deployment to Azure; the tool it speaks of does not travel on.
    b"x-ms-oai-image-generation-deployment",
}
_EXTENSIONS_DROPPED = {"http.response.pathsend", "http.response.zerocopysend", "http.response.trailers"}
"""Ways to send a body past the translator."""
_PACKED = {b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"compress"}
_REFUSAL = 64 << 10
"""Bytes kept of a refused follow-up's body: enough for the log, whatever the server sends."""


def rewritten_scope(scope: Scope, length: int) -> Scope:
    """Make the scope of a request whose body was rewritten to `length` bytes."""
    headers = [pair for pair in forwarded(scope["headers"]) if pair[0].lower() not in _OF_THE_BODY]
    return {**scope, "headers": [*headers, (b"content-length", str(length).encode())]}


def turn_scope(scope: Scope, length: int, number: int) -> Scope:
    """Make a turn's own scope: the body's new length, no compression, a state of its own."""
    own: dict[str, Any] = dict(rewritten_scope(scope, length))
    headers: Headers = []
    for name, value in own["headers"]:
        if name.lower() in _REQUEST_DROPPED:
            continue
        if name == b"idempotency-key" and number > 1:
            # The same key with another body would be answered with turn one's response, or refused.
            value = b"%b-%d" % (value, number)  # noqa: PLW2901  the same header
        headers.append((name, value))
    own["headers"] = [*headers, (b"accept-encoding", b"identity")]
    if "state" in scope:
        own["state"] = dict(scope["state"])
    if scope.get("extensions"):
        extensions = scope["extensions"].items()
        own["extensions"] = {name: value for name, value in extensions if name not in _EXTENSIONS_DROPPED}
    return own


class TurnReader:
    """Reads one turn's answer, and tells the translator.

    Args:
        translator: joins the turns.
        number: 1 for the client's own request.
        max_body: bytes of an answer that is read when it is whole.

    Attributes:
        status: of the answer; 0 before its head.
        mode: what becomes of the body: `passed` on as it is, kept for the log (`refused`), read as a
            `stream`, or read when it is `whole`.
        ended: the answer was complete, or no more is expected of it.
        ended_at: nanoseconds since the epoch; 0 before that.
        heard: how the model server ended the turn; None if it did not, or refused it.
    """

    def __init__(self, translator: Translator, number: int, max_body: int) -> None:
        self._translator = translator
        self._max_body = max_body
        self._pieces: list[bytes] = []
        self._size = 0
        self.number = number
        self.status = 0
        self.headers: Headers = []
        self.mode: Literal["", "passed", "refused", "stream", "whole"] = ""
        self.ended = False
        self.ended_at = 0
        self.heard: TurnEnded | None = None

    def begin(self, status: int, headers: Headers) -> None:
        """Take the head, and decide by it what becomes of the body."""
        self.status, self.headers = status, headers
        if not 200 <= status < 300:
            self.mode = "passed" if self.number == 1 else "refused"
            return
        if header(headers, b"content-encoding").lower() in _PACKED:  # or only said to be so
            self._translator.notes.append(
                "the model server's answer is compressed, though it was asked not to compress"
            )
        if header(headers, b"content-type").lower().startswith(b"text/event-stream"):
            self.mode = "stream"
        else:
            self.mode = "whole"

    def take(self, piece: bytes, *, last: bool) -> list[Action]:
        """Take a piece of the body."""
        actions = self._translator.receive(piece) if self.mode == "stream" else self._keep(piece)
        return actions + self.end() if last else actions

    def end(self) -> list[Action]:
        """Learn that no more will come; once is enough."""
        if self.ended:
            return []
        self.ended = True
        self.ended_at = time.time_ns()
        body = b"".join(self._pieces)
        self._pieces.clear()
        if not self.status:
            return self._translator.abandon("the inner application gave no answer")
        if self.mode == "refused":
            return self._translator.turn_refused(self.status, body, self._retry_after())
        actions = self._translator.receive_json(body) if self.mode == "whole" else []
        actions += self._translator.turn_ended()
        self.heard = self._translator.last_turn
        return actions

    def _keep(self, piece: bytes) -> list[Action]:
        limit = _REFUSAL if self.mode == "refused" else self._max_body
        self._size += len(piece)
        if self._size <= limit:
            self._pieces.append(piece)
        elif self.mode == "whole":
            told = f"The model server's answer is larger than the {limit} bytes that max_event allows."
            return self._translator.abandon(f"the answer is larger than {limit} bytes", told=told)
        return []

    def _retry_after(self) -> float | None:
        try:
            return max(0.0, float(header(self.headers, b"retry-after")))
        except ValueError:  # a date, or nothing
            return None


class InnerTurn:
    """Runs the inner application once.

    Args:
        app: the inner application.
        scope: the turn's own scope.
        body: the request body.
        reader: what is made of the answer.
        on_message: takes what the application sends, in the application's own task.
        on_chunk: takes the chunks of its event stream instead, but for the last one.

    Attributes:
        over: set once the application's response is complete or nobody wants the rest of it; from
            then on its `receive` tells it that the client has gone, and what it sends is dropped.
        error: what the application raised.
        task: the task that runs it.
    """

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        body: bytes,
        reader: TurnReader,
        on_message: Callable[[InnerTurn, Message], Awaitable[None]],
        on_chunk: Callable[[bytes], Coroutine[Any, Any, None]],
    ) -> None:
        self._app = app
        self._scope = scope
        self._body: bytes | None = body
        self._on_message = on_message
        self._on_chunk = on_chunk
        self._now = asyncio.get_running_loop().time
        self._heard = self._now()
        self._speaking = False
        self._streaming = False
        self.reader = reader
        self.over = asyncio.Event()
        self.error: BaseException | None = None
        self.task: asyncio.Task[None]

    async def run(self) -> None:
        """Call the application; what it raises is kept in `error` for whoever waits for it."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001  it is raised again, unwrapped, by the exchange
            self.error = error
        except asyncio.CancelledError as error:
            if self.task.cancelling():
                raise
            self.error = error  # of the application's own making: nobody cancelled this task

    def leave(self) -> None:
        """Learn that its response is complete, or that nobody wants the rest of it."""
        self._streaming = False
        self.over.set()

    def silent_since(self, now: float) -> float:
        """Tell when it last said something; `now` while that is taken in, or when it need say no more."""
        return now if self._speaking or self.over.is_set() else self._heard

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.over.wait()
        return {"type": "http.disconnect"}

    def _send(self, message: Message) -> Coroutine[Any, Any, None]:
        """Take a message; the chunks of an event stream go straight to the client's end."""
        if self._streaming and message.get("more_body"):
            return self._on_chunk(message.get("body", b""))
        return self._tell(message)

    async def _tell(self, message: Message) -> None:
        if self.over.is_set():
            return
        self._speaking = True
        try:
            await self._on_message(self, message)
            self._streaming = self.reader.mode == "stream" and not self.over.is_set()
        finally:
            self._speaking = False
            self._heard = self._now()
