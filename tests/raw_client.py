"""A client on a raw socket, which takes each byte of the answer as it comes and judges the whole."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import Any, Literal

from loopback import reset
from model_server import HOSTED
from rules import check_response, check_stream, read_events
from waiting import News

__all__ = ["KEY", "RawClient"]

Json = dict[str, Any]

KEY = "sk-canary-77c1"
"""The client's own key for the model server: nobody else may ever see it."""


class RawClient:
    """A client that writes a request onto a socket and takes each byte of the answer as it comes.

    Attributes:
        raw: all bytes of the answer so far.
        ended: whether the connection was closed, in whatever manner.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.raw = b""
        self.ended = False
        self.reading = asyncio.Event()
        self.reading.set()
        self.writer = writer
        self._reader = reader
        self._news = News()

    @classmethod
    async def connect(cls, url: str) -> RawClient:
        host, port = url.removeprefix("http://").split(":")
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.setblocking(False)
        await asyncio.get_running_loop().sock_connect(link, (host, int(port)))
        return cls(*await asyncio.open_connection(sock=link))

    def ask(
        self, request: Json, *, path: str = "/v1/responses", method: str = "POST", close: bool = True
    ) -> None:
        body = json.dumps(request).encode()
        own = ["Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        own += [f"Authorization: Bearer {KEY}", *(["Connection: close"] if close else [])]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *own, "", ""])
        self.writer.write(head.encode() + body)

    async def read(self) -> None:
        """Take what comes until the connection ends."""
        with suppress(ConnectionResetError):
            while True:
                await self.reading.wait()
                data = await self._reader.read(1 << 16)
                if not data:
                    break
                self.raw += data
                self._news.tell()
        self.ended = True
        self._news.tell()

    async def heard(self, needle: bytes) -> None:
        await self._news.until(lambda: needle in self.raw)

    async def heard_all(self) -> None:
        await self._news.until(lambda: self.ended)

    def leave(self, how: Literal["close", "reset"] = "close") -> None:
        if how == "reset":
            reset(self.writer)
        else:
            self.writer.transport.abort()

    # -- what it was told ----------------------------------------------------------------------

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ", 2)[1])

    @property
    def headers(self) -> dict[bytes, bytes]:
        lines = self.raw.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}

    @property
    def body(self) -> bytes:
        """The body so far, without its chunks."""
        rest = self.raw.partition(b"\r\n\r\n")[2]
        if self.headers.get(b"transfer-encoding") != b"chunked":
            return rest
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size or b"0", 16)
            body, rest = body + rest[:length], rest[length + 2 :]
        return body

    @property
    def whole(self) -> bool:
        """Whether the body was ended as HTTP demands."""
        if self.headers.get(b"transfer-encoding") == b"chunked":
            return self.raw.endswith(b"\r\n0\r\n\r\n")
        return len(self.body) == int(self.headers[b"content-length"])

    def verdict(self) -> str:
        """Tell how it ended: exactly one end that any client of OpenAI's understands.

        Returns:
            the status of the final response and the number of its pictures, such as "failed 1", or
            the code or type of the error envelope behind its HTTP status, such as "502 server_error".
        """
        assert self.whole, self.raw[-300:]
        for secret in (KEY.encode(), b"Traceback", b"127.0.0.1"):
            assert secret not in self.raw
        if self.status != 200:
            error = json.loads(self.body)["error"]
            assert list(error) == ["message", "type", "param", "code"]
            assert error["message"]
            return f"{self.status} {error['code'] or error['type']}"
        if self.headers[b"content-type"].startswith(b"text/event-stream"):
            assert check_stream(self.body, tools=[HOSTED], tool_choice="auto") == []
            response = read_events(self.body)[-1]["response"]
        else:
            response = json.loads(self.body)
            assert check_response(response, tools=[HOSTED], tool_choice="auto") == []
        pictures = sum(1 for item in response["output"] if item.get("result"))
        return f"{response['status']} {pictures}"
