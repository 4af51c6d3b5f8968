"""One client: how it asks, reads at its own pace, and leaves."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from typing import Any

import aiohttp

from .verdict import Heard

__all__ = ["LEAVINGS", "Client", "open_session"]

Json = dict[str, Any]

LEAVINGS = {
    "at once": b"",
    "before the first event": b"",
    "in a text": b'"type":"response.output_text.delta"',
    "in a picture": b"event: response.image_generation_call.generating",
    "anywhere": b"",
    "at the end": b"event: response.completed",
}
"""Where clients leave, and what they have just read then."""

_ENDS = ("response.completed", "response.failed", "response.incomplete", "error")
_FARTHEST = 100_000
"""Bytes after which those have left who leave anywhere."""
_SIP = 8_192
_SIP_PAUSE = 0.05
"""Bytes that a slow reader takes at a time, and the seconds from one to the next."""


def open_session(*, slow: bool = False) -> aiohttp.ClientSession:
    """Open connections for many clients, a new one for each request; slow ones have no room to hoard."""

    def small(address: Any) -> socket.socket:
        made = socket.socket(address[0], address[1], address[2])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SIP)
        return made

    connector = aiohttp.TCPConnector(limit=0, force_close=True, socket_factory=small if slow else None)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
    return aiohttp.ClientSession(
        connector=connector, timeout=timeout, read_bufsize=_SIP if slow else 65_536, auto_decompress=False
    )


class Client:
    """A client with a credential of its own.

    Args:
        session: for most requests.
        slow: for those that are read slowly.
        origin: of the server.
        credential: tells it from the other ones.
        chance: decides what it does.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        slow: aiohttp.ClientSession,
        origin: str,
        credential: str,
        chance: random.Random,
    ) -> None:
        self._session = session
        self._slow = slow
        self._url = f"{origin}/v1/responses"
        self._headers = {"authorization": f"Bearer {credential}"}
        self.credential = credential
        self.chance = chance

    async def post(self, body: Json, leaving: str = "", *, slow: bool = False) -> Heard:
        """Ask for a response."""
        session = self._slow if slow else self._session
        asking = session.post(self._url, json=body, headers=self._headers)
        stream = bool(body.get("stream"))
        try:
            async with asyncio.timeout(self.chance.uniform(0, 0.3) if leaving == "at once" else None):
                response = await asking
        except TimeoutError:
            return Heard(0, b"", leaving)
        return await self._read(response, leaving, slow=slow, stream=stream)

    async def get(self, tail: str, *, method: str = "GET", stream: bool = False) -> Heard:
        """Ask something of a response that is there."""
        response = await self._session.request(method, self._url + tail, headers=self._headers)
        return await self._read(response, "", slow=False, stream=stream)

    async def _read(
        self, response: aiohttp.ClientResponse, leaving: str, *, slow: bool, stream: bool
    ) -> Heard:
        body = bytearray()
        mark = LEAVINGS.get(leaving, b"")
        farthest = self.chance.randrange(1, _FARTHEST) if leaving == "anywhere" else None
        try:
            if leaving in ("at once", "before the first event"):
                return Heard(response.status, b"", leaving, stream)
            while piece := await (response.content.read(_SIP) if slow else response.content.readany()):
                body += piece
                if slow:
                    await asyncio.sleep(_SIP_PAUSE)
                if mark and mark in body[-len(piece) - len(mark) :]:
                    if leaving == "in a picture":
                        await asyncio.sleep(self.chance.uniform(0, 0.6))
                    return Heard(response.status, bytes(body), leaving, stream)
                if farthest is not None and len(body) >= farthest:
                    return Heard(response.status, bytes(body[:farthest]), leaving, stream)
            leaving = ""  # the mark never came
            return Heard(response.status, bytes(body), "", stream)
        finally:
            if leaving:
                self._reset_perhaps(response.connection)
            response.close()

    def _reset_perhaps(self, connection: Any) -> None:
        """Let every other client leave with a reset instead of a farewell."""
        if connection is not None and connection.transport is not None and self.chance.random() < 0.5:
            own = connection.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def socket(self) -> Any:
        """Open a WebSocket, to be entered."""
        return self._session.ws_connect(
            self._url.replace("http", "ws", 1), headers=self._headers, max_msg_size=0
        )

    async def over_socket(self, socket: aiohttp.ClientWebSocketResponse, body: Json, leaving: str) -> Heard:
        """Ask for a response over a WebSocket; what came is put down as the same stream over HTTP."""
        await socket.send_json({"type": "response.create", **body})
        frames = bytearray()
        mark = LEAVINGS.get(leaving, b"")
        while True:
            if leaving and not mark and self.chance.random() < 0.1:
                return Heard(200, bytes(frames), leaving)
            message = await socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise aiohttp.ClientError(f"the WebSocket ended: {message}")
            event = json.loads(message.data)
            frame = f"event: {event['type']}\ndata: {message.data}\n\n".encode()
            frames += frame
            if mark and mark in frame:
                return Heard(200, bytes(frames), leaving)
            if event["type"] in _ENDS:
                return Heard(200, bytes(frames))
