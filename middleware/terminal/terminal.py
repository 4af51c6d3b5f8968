"""What the terminal commands do: ask for a picture and watch it grow, record an exchange."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from ...events.wire import dumps, loads
from ..asgi import ImageGenerationMiddleware
from ..backends.base import ImageError
from ..demo import demo_app
from ..headers import Headers
from ..images import read_image
from ..local import lifespan, post
from ..proxy import ProxyApp, UpstreamCutError
from ..recording import write_recording
from ..replay import Recorder
from .picture_answer import PictureAnswer, Problem
from .saved_picture import MAX_FILE

__all__ = ["NoPictureError", "ask_for_picture", "picture_request", "record_exchange"]

_PATH = "/v1/responses"


class NoPictureError(RuntimeError):
    """No picture came. `code` is a word for machines, where somebody gave one."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.code = problem.code


def picture_request(prompt: str, *, model: str, tool: Mapping[str, Any], edit: Path | None) -> dict[str, Any]:
    """Make a request for a picture.

    Args:
        prompt: what the picture shows, or what to change in it.
        model: the model to ask for.
        tool: options of the tool, such as `size`; None stands for one that is left out.
        edit: a picture to change.

    Raises:
        ValueError: the picture cannot be read, or is none.
    """
    declaration = {"type": "image_generation", **{k: v for k, v in tool.items() if v is not None}}
    request = {"model": model, "input": prompt, "stream": True, "tools": [declaration]}
    if edit is not None:
        declaration["action"] = "edit"
        part = {"type": "input_image", "image_url": _data_url(edit), "detail": "auto"}
        content = [{"type": "input_text", "text": prompt}, part]
        request["input"] = [{"type": "message", "role": "user", "content": content}]
    return {**request, "tool_choice": {"type": "image_generation"}}


def _data_url(file: Path) -> str:
    try:
        data = file.read_bytes()
        image = read_image(data, max_bytes=MAX_FILE, max_pixels=MAX_FILE)
    except OSError as error:
        raise ValueError(f"the picture {file} cannot be read: {error.strerror}") from error
    except ImageError as error:
        raise ValueError(f"{file} cannot be changed: {error}") from error
    return f"data:image/{image.output_format};base64,{base64.b64encode(data).decode()}"


async def ask_for_picture(request: dict[str, Any], answer: PictureAnswer, *, url: str | None) -> None:
    """Ask for a picture.

    Args:
        request: see `picture_request`.
        answer: reads what comes.
        url: an endpoint that has the tool; None asks the embedded model in this process.

    Raises:
        NoPictureError: no picture came, and why. What went wrong after a picture came is told by
            `answer.problem`.
        ValueError: IMAGECALL_API_KEY holds what no key can have.
    """
    headers = _key(url)
    async with _endpoint(url) as app:
        try:
            told = await post(app, _PATH, dumps(request), headers=headers, on_bytes=answer.feed)
        except UpstreamCutError as error:
            answer.problem = Problem(str(error))
        else:
            if told.status == 200:
                answer.end(told.body)
            else:
                message = f"the endpoint answered with status {told.status}: {_message(told.body)}"
                answer.problem = Problem(message, _code(told.body))
    if not answer.pictures:
        raise NoPictureError(answer.failure)


async def record_exchange(upstream: str, request: Any, out: Path, settings: dict[str, Any]) -> int:
    """Send a request through the middleware to a model server and write a recording.

    Returns:
        The number of turns the model server was asked for.
    """
    proxy = ProxyApp(upstream)
    recorder = Recorder(proxy)
    async with lifespan(proxy):
        answer = await post(ImageGenerationMiddleware(recorder, **settings), _PATH, dumps(request))
    if answer.status >= 400:
        raise RuntimeError(f"the model server answered with status {answer.status}: {_message(answer.body)}")
    meta = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "server": upstream}
    write_recording(out, request, recorder.turns, answer.body, meta)
    return len(recorder.turns)


@contextlib.asynccontextmanager
async def _endpoint(url: str | None) -> AsyncIterator[ASGIApp]:
    app: ASGIApp = demo_app("auto") if url is None else ProxyApp(url)
    async with lifespan(app):
        yield app


def _key(url: str | None) -> Headers:
    """Return the header with the endpoint's key; on a command line everybody on the machine could read it."""
    key = os.environ.get("IMAGECALL_API_KEY", "")
    if url and not (key.isascii() and key.isprintable()):
        raise ValueError(
            "IMAGECALL_API_KEY holds a line break or another character that a key cannot have; "
            "set it to the key alone"
        )
    return [(b"authorization", b"Bearer " + key.encode())] if url and key else []


def _message(body: bytes) -> str:
    message = body[:300].decode(errors="replace")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        message = str(loads(body)["error"]["message"] or "")
    return message.strip() or "no reason given"


def _code(body: bytes) -> str | None:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        code = loads(body)["error"]["code"]
        return code if isinstance(code, str) else None
    return None
