"""WebSocket mode of the Responses endpoint: `response.create` in, the same events out, one text message each.

```
client ── response.create ──▶ reader ──▶ Creation ──▶ Exchange: turns are POSTs to the inner application
  ▲                             │            └──────▶ or one POST, when nothing is ours ──┐      │
  ├── text messages ◀───────────┼─── WebSocketAnswer ◀────────────────────────────────────┴──────┘
  │                             ▼
  └── its own messages ◀── the inner application's WebSocket, if it accepts one, for all that is not ours
```

The inner application is first offered the WebSocket as it came. If it accepts, so do we; messages that do
not concern the product travel to it and back untouched, the others are answered here over its HTTP
endpoint. If it refuses (closes, denies, raises, returns), we accept, and each `response.create` becomes a
POST. What it would have refused the handshake for, such as a wrong key, it says to that POST. Only pages
of a foreign origin that `cors_origins` does not name are refused: they could not make that POST either.

Rules of ours, where it is for us to answer:

- one response at a time: a `response.create` before the last one's terminal event gets an error (409), and
  the running one goes on;
- invalid JSON, other message types, steering, warm-ups, `background` get an error (400), messages larger
  than `max_body` one (413); the connection stays open;
- a binary message closes the connection with 1003, since the protocol has none;
- when the client leaves, what runs is cancelled exactly as over HTTP, where the same is an `http.disconnect`;
- when it takes nothing any more and its response's time is up, the connection is left as it is: a close frame
  would only wait behind the rest;
- when the server stops, what runs ends at once, as failed, and the connection is closed with 1012.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...events.errors import RequestError
from ...events.wire import NestingError, dumps
from ..answers import is_foreign
from ..body import with_body
from ..clock import StalledError
from ..creation import Creation, Prepared
from ..settings import Settings
from ..shutdown import STOPPING, Shutdown
from ..stored.safe import StoreError
from ..turns import rewritten_scope
from .answer import WebSocketAnswer
from .inner import InnerSocket
from .messages import Create, http_scope, read_create

__all__ = ["ResponsesSocket"]

log = logging.getLogger("imagecall")

_FAILED = "Something went wrong here; the log of the server tells what."
_UNSUPPORTED_DATA = 1003
_SERVICE_RESTART = 1012


class ResponsesSocket:
    """Serves one WebSocket of the Responses endpoint.

    Args:
        app: the inner application.
        creation: answers requests that concern the product.
        settings: the limits.
        shutdown: tells when the server stops.
        concerns: whether a message holds a word of ours at all.
        scope: of the WebSocket.
        receive: the server's.
        send: the server's.
    """

    def __init__(
        self,
        app: ASGIApp,
        creation: Creation,
        settings: Settings,
        shutdown: Shutdown,
        concerns: Callable[[bytes], bool],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._app = app
        self._creation = creation
        self._settings = settings
        self._shutdown = shutdown
        self._concerns = concerns
        self._scope = scope
        self._receive = receive
        self._send = send
        self._lock = asyncio.Lock()
        self._gone = asyncio.Event()
        self._closed = False
        self._answer: WebSocketAnswer | None = None
        self._exchanging = False
        self._inner = InnerSocket(app, scope, self._hear)

    async def run(self) -> None:
        """Serve the connection to its end. What the inner application raises comes out as it was."""
        try:
            await self._serve()
        except* StalledError:
            log.debug("a WebSocket is left whose client takes nothing")
        if self._inner.error is not None:
            raise self._inner.error

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            inner = self._group.create_task(self._inner.run())
            reader = self._group.create_task(self._read())
            await self._inner.answered.wait()
            if self._inner.accepted:
                await asyncio.wait((inner, reader), return_when=asyncio.FIRST_COMPLETED)
                await self._idle()
            elif is_foreign(self._scope, self._settings.cors_origins):
                await self._refuse()
            else:
                await self._accept()
                with self._shutdown.holding(lambda: self._stop(reader), at_once=True):
                    await asyncio.wait((reader,))
            reader.cancel()
            self._gone.set()

    def _stop(self, reader: asyncio.Task[None]) -> None:
        self._group.create_task(self._say_farewell(reader))

    async def _say_farewell(self, reader: asyncio.Task[None]) -> None:
        """Close the connection because the server stops, once the client knows how its response ended."""
        answer = self._answer
        if answer is not None and self._exchanging:
            await answer.over.wait()
        elif answer is not None and not answer.over.is_set():
            await answer.stop()
        await self._close(_SERVICE_RESTART, STOPPING)
        reader.cancel()

    # -- from the client -----------------------------------------------------------------------

    async def _read(self) -> None:
        """Take the client's messages as they come, until it leaves or is told to."""
        while not self._closed:
            message = await self._receive()
            if message["type"] == "websocket.receive":
                await self._take(message)
            else:  # the connection's beginning, which is for the inner application alone, or its end
                await self._inner.hear(message)
                if message["type"] == "websocket.disconnect":
                    self._gone.set()
                    return

    async def _take(self, message: Message) -> None:
        text = message.get("text")
        data = b"" if text is None else text.encode()
        limit = self._settings.max_body
        if len(data) > limit:
            words = f"The message is larger than the {limit} bytes that max_body allows."
            error = RequestError(words, status=413)
            await self._new_answer(None).refuse(error)
        elif self._inner.accepted and not self._concerns(data):
            await self._inner.hear(message)
        elif text is None:
            await self._close(_UNSUPPORTED_DATA, "Send JSON in text messages.")
        else:
            try:
                create = read_create(data)
            except NestingError as error:  # which no application must be troubled with
                deep = RequestError(f"The message is {error}.", code="invalid_json")
                await self._new_answer(None).refuse(deep)
            except RequestError as error:
                if self._inner.accepted:  # which says it better
                    await self._inner.hear(message)
                else:
                    await self._new_answer(None).refuse(error)
            else:
                await self._begin(create, message, data)

    async def _begin(self, create: Create, message: Message, data: bytes) -> None:
        """Decide who answers a request, and begin."""
        answer = self._new_answer(create.stream_id)
        scope = http_scope(self._scope)
        try:
            prepared = await self._creation.prepare(scope, create.body) if self._concerns(data) else None
            if prepared is None and self._inner.accepted:
                await self._inner.hear(message)
                return
            create.check()
            self._check_free()
        except RequestError as error:
            await answer.refuse(error)
        except StoreError as error:
            await answer.fail(503, str(error), error.code)
        except Exception:
            log.exception("a message on a WebSocket could not be read")
            await answer.fail(500, _FAILED)
        else:
            self._answer = answer
            self._exchanging = _exchanges(prepared)
            self._group.create_task(self._respond(create, prepared, scope, answer))

    def _check_free(self) -> None:
        if self._answer is not None and not self._answer.over.is_set():
            raise RequestError(
                "A response is running on this connection; wait for its end, or open another connection.",
                code="response_in_progress",
                status=409,
            )

    async def _respond(
        self, create: Create, prepared: Prepared | None, scope: Scope, answer: WebSocketAnswer
    ) -> None:
        try:
            if prepared is not None:
                await self._creation.run(prepared, scope, self._until_gone, answer.send, answer)
            else:
                body = dumps(create.body)
                receive = with_body(body, self._until_gone)
                await self._app(rewritten_scope(scope, len(body)), receive, answer.send)
        except Exception:
            log.exception("a response to a WebSocket failed")
        if _exchanges(prepared) and answer.held_up:
            raise StalledError
        await answer.end()

    # -- the inner application's end -----------------------------------------------------------

    async def _hear(self, message: Message) -> None:
        """Hand on what the inner application says; it may only hang up when no response of ours runs."""
        if message["type"] == "websocket.close":
            await self._idle()
        await self._say(message, must=True)

    async def _idle(self) -> None:
        if self._answer is not None:
            await self._answer.over.wait()

    async def _until_gone(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    # -- to the client -------------------------------------------------------------------------

    def _new_answer(self, stream_id: str | None) -> WebSocketAnswer:
        return WebSocketAnswer(self._say_text, stream_id, self._settings.max_event)

    async def _say_text(self, text: str) -> None:
        await self._say({"type": "websocket.send", "text": text})

    async def _say(self, message: Message, *, must: bool = False) -> None:
        """Send a message, one sender at a time; if the client has gone, raise only if it `must` arrive."""
        async with self._lock:
            try:
                if must or not self._gone.is_set():
                    await self._send(message)
            except OSError:  # how servers tell that the client has gone
                self._gone.set()
                if must:
                    raise

    async def _accept(self) -> None:
        offered = self._scope.get("subprotocols") or (None,)
        # Browsers that offered any give the connection up when none is taken.
        await self._say({"type": "websocket.accept", "subprotocol": offered[0]})

    async def _refuse(self) -> None:
        """Refuse the handshake of a page that may not ask. Servers answer such an end with a 403."""
        log.warning("A page of another origin wanted a WebSocket; name it in cors_origins to allow it.")
        await self._say({"type": "websocket.close"})

    async def _close(self, code: int, reason: str) -> None:
        await self._say({"type": "websocket.close", "code": code, "reason": reason})
        self._closed = True
        self._gone.set()  # at once: what still runs may say no more


def _exchanges(prepared: Prepared | None) -> bool:
    """Tell whether an exchange answers a request: it has limits, the inner application has its own."""
    return prepared is not None and prepared.lowered.tool is not None
