"""The demo's last exchanges, which its page can save in the form that `imagecall replay` reads."""

from __future__ import annotations

import asyncio
import io
import tempfile
import zipfile
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...events.wire import loads
from ..recording import write_recording
from ..replay import RecordedTurn, Recorder

__all__ = ["DemoRecordings"]

_current: ContextVar[Recorder] = ContextVar("recorder of the model server's turns")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One exchange: the request as it came, the model server's turns, and what the client got."""

    request: bytes
    turns: tuple[RecordedTurn, ...]
    client: bytes
    date: str

    @property
    def size(self) -> int:
        return len(self.request) + sum(len(turn.body) for turn in self.turns) + len(self.client)


class DemoRecordings:
    """Takes down what goes through the demo and hands it out as zipped recordings.

    It listens in two places: `around` the API, where the client speaks, and `below` it, where the
    model server does. Answers that broke off are not kept.

    Args:
        most: how many exchanges are kept, the newest.
        max_bytes: how much they may hold together.
    """

    def __init__(self, *, most: int = 16, max_bytes: int = 256 << 20) -> None:
        self._most = most
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, _Exchange] = OrderedDict()
        self._upstream: ASGIApp | None = None

    def below(self, upstream: ASGIApp) -> ASGIApp:
        """Return the model server, overheard."""
        self._upstream = upstream

        async def overheard(scope: Scope, receive: Receive, send: Send) -> None:
            await _current.get(upstream)(scope, receive, send)

        return overheard

    def around(self, api: ASGIApp) -> ASGIApp:
        """Return the API, overheard; its model server is the one that was given to `below`."""

        async def overheard(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["method"] == "POST":
                await self._record(api, scope, receive, send)
            else:
                await api(scope, receive, send)

        return overheard

    async def download(self, request: Request) -> Response:
        """Answer a request for a recording by the response's id, in `response_id` of the path."""
        identifier = request.path_params["response_id"]
        exchange = self._kept.get(identifier)
        if exchange is None:
            message = f"There is no recording of this answer any more; the newest {self._most} are kept."
            return JSONResponse({"error": {"message": message}}, 404)
        content = await asyncio.to_thread(_zipped, exchange, f"imagecall-{identifier}")
        return Response(content, media_type="application/zip")

    async def _record(self, api: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._upstream is not None, "below() comes before around()"
        pieces: list[bytes] = []
        client, upstream = Recorder(api), Recorder(self._upstream)

        async def hear() -> Message:
            message = await receive()
            pieces.append(message.get("body", b""))
            return message

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                # Before the client learns that the answer is whole: it may ask at once.
                self._keep(b"".join(pieces), upstream.turns, client.turns[0])
            await send(message)

        token = _current.set(upstream)
        try:
            await client(scope, hear, tell)
        finally:
            _current.reset(token)

    def _keep(self, request: bytes, turns: list[RecordedTurn], client: RecordedTurn) -> None:
        identifier = _response_id(client.body)
        compressed = not request.lstrip().startswith(b"{")
        if identifier is None or compressed or not turns:
            return
        date = datetime.now(UTC).isoformat(timespec="seconds")
        self._kept[identifier] = _Exchange(request, tuple(turns), client.body, date)
        while len(self._kept) > self._most or sum(one.size for one in self._kept.values()) > self._max_bytes:
            self._kept.popitem(last=False)


def _response_id(client: bytes) -> str | None:
    """Read the id off an answer: a response, or the events of one, the first of which holds it."""
    streamed = not client.startswith(b"{")
    try:
        told = loads(client.partition(b"data: ")[2].partition(b"\n")[0] if streamed else client)
    except ValueError:
        return None
    response = told.get("response", told) if isinstance(told, dict) else {}
    identifier = response.get("id") if isinstance(response, dict) else None
    return identifier if isinstance(identifier, str) else None


def _zipped(exchange: _Exchange, name: str) -> bytes:
    """Zip a recording; unzipped, it is a folder of this name."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        meta = {"date": exchange.date, "server": "imagecall demo"}
        write_recording(Path(folder), loads(exchange.request), exchange.turns, exchange.client, meta)
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for file in sorted(Path(folder).iterdir()):
                archive.write(file, f"{name}/{file.name}")
    return content.getvalue()
