"""`imagecall ask` on a terminal: the real process on a pseudo-terminal, and the same in this process."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from commands import run
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.embedded.scripted import scripted_app
from kite import painted, stream, usage
from painters import Painter, png
from pseudo_terminal import KITTY, PLAIN, SIXEL, Terminal, terminal
from serving import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp
from transcript import encode, message, picture, preview_event

KITE = painted("ig_1")
SSE = "text/event-stream"
BLOCK = "▀".encode()
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\r")
COMMAND = str(Path(sys.executable).with_name("imagecall"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """An endpoint that paints what it is asked for."""
    with serve(ImageGenerationMiddleware(scripted_app(), Painter())) as url:
        yield url


def endpoint(answer: Callable[[], Response]) -> ASGIApp:
    """An endpoint that gives each request such an answer."""

    async def respond(request: Request) -> Response:
        return answer()

    return Starlette(routes=[Route("/v1/responses", respond, methods=["POST"])])


def lines(output: bytes) -> list[str]:
    """Tell what stands on each line that a terminal was sent, after the last time it was wiped out."""
    told = (line.rpartition(b"\x1b[2K")[2] for line in output.split(b"\n"))
    return [ESCAPES.sub(b"", line).decode() for line in told]


# -- the process -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "drawn"), [(SIXEL, b"\x1bP"), (KITTY, "\U0010eeee".encode()), (PLAIN, BLOCK)]
)
def test_the_picture_is_shown_as_the_terminal_can(
    typed: bytes, drawn: bytes, url: str, tmp_path: Path
) -> None:
    file = tmp_path / "cat.png"
    with terminal(typed) as screen:
        assert screen.ask("a red cat", "--url", url, "-o", str(file)) == 0
    assert file.read_bytes() == png("a red cat")
    told, _, shown = screen.output.partition(b"\x1b[c")
    assert lines(told)[-3].startswith("✓ picture: completed, ")
    assert lines(told)[-2] == "Here it is: a red cat."
    stays = told[told.rindex("✓".encode()) :]
    assert b"\x1b[1A" not in stays  # nothing is wiped out any more
    assert drawn in shown
    assert [kind in shown for kind in (b"\x1bP", "\U0010eeee".encode(), BLOCK)].count(True) == 1
    assert shown.endswith(f"{file}\r\n".encode())


def test_without_inline_pictures_there_are_only_words(url: str, tmp_path: Path) -> None:
    file = tmp_path / "cat.png"
    with terminal(SIXEL) as screen:
        assert screen.ask("a red cat", "--url", url, "-o", str(file), "--partials", "3", "--no-inline") == 0
    assert b"\x1bP" not in screen.output
    assert BLOCK not in screen.output
    told = lines(screen.output)
    assert told[-4].startswith("✓ picture: completed, 3 partial pictures, ")
    assert told[-3:] == ["Here it is: a red cat.", str(file), ""]


@pytest.mark.parametrize("json_too", [False, True])
def test_standard_output_that_is_no_terminal_gets_no_picture_even_where_colours_are_forced(
    url: str, tmp_path: Path, json_too: bool
) -> None:
    file = tmp_path / "cat.png"
    words = ("ask", "a red cat", "--url", url, "-o", str(file), *(["--json"] if json_too else []))
    with terminal(SIXEL) as screen:
        forced = {"FORCE_COLOR": "1"}
        with screen.run(COMMAND, *words, stdout=subprocess.PIPE, env=forced) as process:
            out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"picture: completed" in screen.output
    assert b"\x1b[c" not in screen.output
    if json_too:
        assert json.loads(out)["file"] == str(file)
        assert out.count(b"\n") == 1
    else:
        assert out == f"{file}\n".encode()


def test_nothing_at_all_is_shown_where_neither_stream_is_a_terminal(url: str, tmp_path: Path) -> None:
    file = tmp_path / "cat.png"
    words = (COMMAND, "ask", "a red cat", "--url", url, "-o", str(file), "--partials", "1")
    with terminal(SIXEL) as screen:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with screen.run(*words, env={"FORCE_COLOR": "1"}, **streams) as process:
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err, screen.output) == (0, f"{file}\n".encode(), b"", b"")


def test_ctrl_c_stops_it_with_one_line(tmp_path: Path) -> None:
    asked = threading.Event()
    left = threading.Event()

    async def never(request: Request) -> Response:
        await request.body()
        asked.set()
        assert (await request.receive())["type"] == "http.disconnect"
        left.set()
        return Response()

    file = tmp_path / "cat.png"
    app = Starlette(routes=[Route("/v1/responses", never, methods=["POST"])])
    with (
        serve(app) as url,
        terminal() as screen,
        screen.run(COMMAND, "ask", "a cat", "--url", url, "-o", str(file)) as process,
    ):
        assert asked.wait(60)
        screen.wait_for(b"asking the model")
        screen.type(b"\x03")
        assert process.wait(60) == 130
        assert left.wait(60)
    wiped, _, rest = screen.output.rpartition(b"\x1b[2K")
    assert b"asking the model" in wiped
    assert lines(rest) == ["imagecall: stopped", ""]
    assert not file.exists()


def test_an_error_is_one_line_and_the_progress_is_wiped_out(tmp_path: Path) -> None:
    failed = {**KITE, "status": "failed", "result": "", "error": {"message": "Too dry."}}
    body = encode(stream(picture(0, failed), message(1, "m", "Sorry."), spent=usage(1, 1)))

    with serve(endpoint(lambda: PlainTextResponse(body, media_type=SSE))) as url, terminal() as screen:
        assert screen.ask("a cat", "--url", url) == 1
    _, _, rest = screen.output.rpartition(b"\x1b[2K")
    assert lines(rest) == ["imagecall: the picture failed: Too dry.", ""]


# -- in this process -------------------------------------------------------------------------------


def ask(endpoint: ASGIApp, screen: Terminal, file: Path) -> list[str]:
    """Ask on a terminal that is this process's own; return the last lines that it was sent."""
    with serve(endpoint) as url, screen.attached() as patch:
        assert run(patch, "ask", "a cat", "--url", url, "-o", str(file)) == 0
    screen.wait_for(f"{file}\r\n".encode())
    return lines(screen.output)


def test_partial_pictures_are_drawn_while_the_picture_is_made(tmp_path: Path) -> None:
    *begun, completed, done = picture(0, KITE, preview_event(0, KITE["result"]))
    file = tmp_path / "cat.png"
    with terminal() as screen:

        async def pieces() -> AsyncIterator[bytes]:
            yield encode(begun)
            await asyncio.to_thread(screen.wait_for, BLOCK)
            yield encode([completed, done])
            yield encode(stream(picture(0, KITE), spent=usage(1, 1)))

        told = ask(endpoint(lambda: StreamingResponse(pieces(), media_type=SSE)), screen, file)
    assert file.read_bytes() == base64.b64decode(KITE["result"])
    assert told[-2:] == [str(file), ""]


def test_a_picture_that_is_damaged_is_a_file_and_is_not_shown(tmp_path: Path) -> None:
    data = bytearray(base64.b64decode(KITE["result"]))
    at = data.index(b"IDAT") + 6
    data[at : at + 9] = b"not zlib!"
    item = {**KITE, "result": base64.b64encode(data).decode()}
    body = encode(stream(picture(0, item), spent=usage(1, 1)))
    file = tmp_path / "cat.png"
    with terminal() as screen:
        told = ask(endpoint(lambda: PlainTextResponse(body, media_type=SSE)), screen, file)
    assert file.read_bytes() == data
    assert BLOCK not in screen.output
    assert told[-2:] == [str(file), ""]
