"""Servers in processes of their own that are told to stop while clients read from them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from faulty_server import CALL, cut_at
from images_api import b64
from loopback import STREAM, json_answer, piece, raw_server, read_request
from model_server import HOSTED, KITE_TURNS, whole
from painters import png
from raw_client import KEY, RawClient
from waiting import News, no_hanging

__all__ = ["GRACE", "MOUNTED", "SERVED", "PictureServer", "Stopped", "draw", "model_server", "running"]

Json = dict[str, Any]

GRACE = "1"
"""Seconds, as a setting."""

SERVED = ["-c", "from imagecall.middleware.cli import main; main()", "serve"]
MOUNTED = ["-m", "uvicorn", "stopping_app:app"]


def draw(how: str, *, stream: bool = True) -> Json:
    """Ask for a picture, of a model server that behaves as the model's name says."""
    return {"model": how, "input": "Draw a kite.", "tools": [HOSTED], "stream": stream}


async def model_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Go as far as the model's name says, and then say nothing more until the connection is closed.

    `head`: says nothing; `text`: stops amid a text; `between`: in turn two; `text whole`: as `text`, and
    has no tool; anything else: answers well.
    """
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while request := await read_request(reader):
            if not request.startswith(b"POST"):  # it has no WebSocket
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            body = json.loads(request.partition(b"\r\n\r\n")[2])
            second = isinstance(body["input"], list)
            text = b"".join(KITE_TURNS[1])
            amid = cut_at(b'e you asked for."', text)
            match body["model"]:
                case "head":
                    said = b""
                case "text":
                    said = STREAM + piece(amid[: amid.rindex(b"event:")])
                case "between" if second:
                    said = b""
                case _ if body["stream"]:
                    said = STREAM + piece(text if second else CALL) + b"0\r\n\r\n"
                case _:
                    said = json_answer(whole(KITE_TURNS[second]))
            writer.write(said)
            await writer.drain()


class PictureServer:
    """An Images API that paints once it may; only those pictures that `between` is asked for come at once.

    Attributes:
        asked: how many pictures it was asked for, of those that have to wait.
        left: how many of those nobody waits for any more.
        may_paint: lets all others come.
    """

    def __init__(self) -> None:
        self.asked = self.left = 0
        self.may_paint = asyncio.Event()
        self.quick = True
        self._news = News()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await read_request(reader):
                if not self.quick:
                    await self._wait(reader)
                body = json.dumps({"created": 1, "data": [{"b64_json": b64(png("kite"))}]}).encode()
                writer.write(json_answer(body))
                await writer.drain()

    async def _wait(self, reader: asyncio.StreamReader) -> None:
        self.asked += 1
        self._news.tell()
        painting = asyncio.ensure_future(self.may_paint.wait())
        leaving = asyncio.ensure_future(reader.read(1))
        done, _ = await asyncio.wait((painting, leaving), return_when=asyncio.FIRST_COMPLETED)
        painting.cancel()
        leaving.cancel()
        await asyncio.gather(painting, leaving, return_exceptions=True)
        if leaving in done:
            self.left += 1
            self._news.tell()
            raise ConnectionResetError

    async def was_asked(self, times: int) -> None:
        await self._news.until(lambda: self.asked >= times)

    async def was_left(self, times: int) -> None:
        await self._news.until(lambda: self.left >= times)


class Stopped:
    """A server that runs in a process of its own, and its clients.

    Attributes:
        url: its URL.
        code: its exit code, once it has ended; a signal's number below zero if it died of that.
        log: all lines that it has written.
    """

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.url = url
        self.log: list[str] = []
        self.code: int | None = None
        self._process = process
        self._news = News()
        self.tasks: list[asyncio.Task[Any]] = []
        self._clients: list[RawClient] = []

    async def read(self) -> None:
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            self.log.append(line.decode())
            self._news.tell()
        self.code = await self._process.wait()
        self._news.tell()

    async def logged(self, words: str, times: int = 1) -> None:
        await self._news.until(
            lambda: sum(words in line for line in self.log) >= times or self.code is not None
        )
        assert self.code is None, "".join(self.log)

    async def ended(self) -> None:
        await self._news.until(lambda: self.code is not None)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ask(self, request: Json, **how: Any) -> RawClient:
        client = await RawClient.connect(self.url)
        self._clients.append(client)
        self.tasks.append(asyncio.create_task(client.read()))
        client.ask(request, **how)
        return client

    def kill(self) -> None:
        for client in self._clients:
            client.leave()
        for task in self.tasks:
            task.cancel()
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def running(
    command: Sequence[str], port: int, painter: PictureServer, *options: str, grace: str = GRACE
) -> AsyncIterator[Stopped]:
    """Run one of the commands in front of `model_server`; kill it at the end if it still runs."""
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(raw_server(model_server))
        backend = await stack.enter_async_context(raw_server(painter.serve))
        own = {"UPSTREAM": upstream, "IMAGECALL_UPSTREAM": upstream, "IMAGECALL_SHUTDOWN_GRACE": grace}
        own |= {"IMAGECALL_BACKEND": "openai", "IMAGECALL_BACKEND_URL": f"{backend}/v1"}
        own |= {"IMAGECALL_BACKEND_API_KEY": KEY, "IMAGECALL_BACKEND_STREAM": "false"}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            "--port",
            str(port),
            *options,
            cwd=Path(__file__).parent,
            env={**os.environ, **own},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        server = Stopped(process, f"http://127.0.0.1:{port}")
        server.tasks.append(asyncio.create_task(server.read()))
        try:
            with no_hanging() as deadline:
                async with deadline:
                    await server.logged("Uvicorn running" if "uvicorn" in command else "startup complete")
                    yield server
        finally:
            server.kill()
            await process.wait()
            await asyncio.gather(*server.tasks, return_exceptions=True)
