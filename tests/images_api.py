"""A server with an Images API, on a real socket: what all dialects of it share."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from serving import serve
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

__all__ = ["KEY", "Asked", "File", "ImagesAPI", "Scripted", "b64", "b64_json"]

Json = dict[str, Any]

KEY = "sk-canary-8a1f0c3de9"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a form."""

    field: str
    name: str | None
    content_type: str | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a server reads it; form fields that come twice are a list."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    fields: Json
    files: tuple[File, ...] = ()

    @property
    def is_form(self) -> bool:
        return self.headers.get("content-type", "").startswith("multipart/form-data")

    @property
    def prompt(self) -> str:
        return str(self.fields.get("prompt", ""))


class ImagesAPI:
    """What all dialects share.

    Attributes:
        asked: the requests, in order.
        url: the base URL to configure, while it is served.
        was_left: set when a client went in the midst of its stream.
        config: what else a backend must be told to get on with this server.
    """

    base = "/v1"
    config: ClassVar[Json] = {}

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.origin = ""
        self._gate: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = True
        self.was_left = threading.Event()

    @property
    def url(self) -> str:
        return self.origin + self.base

    @contextmanager
    def served(self) -> Iterator[str]:
        app = Starlette(routes=[Route("/{path:path}", self._serve, methods=["GET", "POST"])])
        with serve(app) as self.origin:
            yield self.url

    def hold(self) -> None:
        """Let nobody pass `passage` until `release`."""
        self._is_open = False

    def release(self) -> None:
        """Let those go on who wait; may be called in any thread."""
        self._is_open = True
        if self._loop is not None and self._gate is not None:
            self._loop.call_soon_threadsafe(self._gate.set)

    async def passage(self) -> None:
        self._loop, self._gate = asyncio.get_running_loop(), asyncio.Event()
        if not self._is_open:
            await self._gate.wait()

    async def _serve(self, request: Request) -> Response:
        asked = await _read(request)
        self.asked.append(asked)
        if asked.method == "GET":
            return self.download(asked)
        if asked.path == f"{self.base}/images/generations":
            return self.generations(asked)
        if asked.path == f"{self.base}/images/edits":
            return self.edits(asked)
        return Response(status_code=404)

    def generations(self, asked: Asked) -> Response:
        raise NotImplementedError

    def edits(self, asked: Asked) -> Response:
        return Response(status_code=404)

    def download(self, asked: Asked) -> Response:
        return Response(status_code=404)


async def _read(request: Request) -> Asked:
    headers = dict(request.headers)
    place = (request.method, request.url.path, request.url.query, headers)
    if not headers.get("content-type", "").startswith("multipart/form-data"):
        body = await request.body()
        return Asked(*place, json.loads(body) if body else {})
    fields: Json = {}
    files = []
    async with request.form() as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                files.append(File(name, value.filename, value.content_type, await value.read()))
            elif name in fields:
                fields[name] = [fields[name], value]
            else:
                fields[name] = value
    return Asked(*place, fields, tuple(files))


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def b64_json(data: bytes, **more: Any) -> JSONResponse:
    return JSONResponse({"created": 1, "data": [{"b64_json": b64(data)}], **more})


class Scripted(ImagesAPI):
    """Gives the n-th request the n-th answer; the last one again and again."""

    def __init__(self, *answers: Response | Callable[[Asked], Response]) -> None:
        super().__init__()
        self.answers = answers

    def generations(self, asked: Asked) -> Response:
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return answer if isinstance(answer, Response) else answer(asked)

    edits = download = generations
