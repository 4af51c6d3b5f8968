"""Small inputs with large effects: pictures that unpack to gigabytes, words that make a pattern crawl."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_HOPELESS = 120.0
"""Seconds after which what should take a moment was not going to end."""


def run(code: str) -> str:
    """Run code in a process of its own, which must end; give what it printed."""
    path = [str(Path(__file__).parent), *filter(None, sys.path)]
    told = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        timeout=_HOPELESS,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


MEMORY = 200 << 20
"""Bytes that one picture may take beside what the process has anyway."""

BOMBS = """
import io, json, resource, struct, zlib
from PIL import Image as Pillow
from imagecall.middleware.backends.base import ImageError, ImageRequest
from imagecall.middleware.images import conform, read_image, without_metadata
from painters import png

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def packed(size):
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()

def with_chunk(kind, data):
    whole = png("a")
    return whole[:33] + chunk(kind, data) + whole[33:]

def header(width, height, depth=8, colour=2):
    ihdr = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", ihdr)

def animated(kind):
    file = io.BytesIO()
    frames = [Pillow.new("RGB", (1024, 1024), (n, 0, 0)) for n in range(3)]
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    return file.getvalue()

GIANT = packed(512 << 20)
bombs = {
    "a text": with_chunk(b"zTXt", b"Comment\\0\\0" + GIANT),
    "an international text": with_chunk(b"iTXt", b"Comment\\0\\1\\0\\0\\0" + GIANT),
    "a profile": with_chunk(b"iCCP", b"x\\0\\0" + GIANT),
    "pixels beyond the header's": header(8, 8) + chunk(b"IDAT", GIANT) + chunk(b"IEND", b""),
    "more pixels than are allowed": header(60_000, 60_000) + chunk(b"IDAT", GIANT) + chunk(b"IEND", b""),
    "one bit each": header(20_000, 20_000, 1, 0) + chunk(b"IDAT", GIANT) + chunk(b"IEND", b""),
    "an animated GIF": animated("GIF"),
    "an animated WebP": animated("WEBP"),
    "an animated PNG": animated("PNG"),
}
del GIANT
resource.setrlimit(resource.RLIMIT_DATA, (MEMORY + used(), -1))
told = {}
for name, data in bombs.items():
    try:
        image = read_image(data, max_bytes=32 << 20, max_pixels=7680 * 4320)
        image = without_metadata(conform(image, ImageRequest("a", output_format="jpeg")))
        told[name] = f"{image.output_format} {image.width}x{image.height}"
    except ImageError as error:
        told[name] = error.code
print(json.dumps(told))
"""
USED = """
def used():
    for line in open("/proc/self/status"):
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory that is really asked for")
def test_a_picture_takes_no_more_memory_than_its_pixels() -> None:
    told = json.loads(run(f"MEMORY = {MEMORY}\n{USED}\n{BOMBS}"))
    parsed = {"jpeg 48x32", "image_parse_error"}
    assert told.pop("a text") in parsed
    assert told.pop("an international text") in parsed
    assert told.pop("a profile") in parsed
    assert told.pop("pixels beyond the header's") in {"jpeg 8x8", "image_parse_error"}
    assert told == {
        "more pixels than are allowed": "image_too_large",
        "one bit each": "image_too_large",
        "an animated GIF": "jpeg 1024x1024",
        "an animated WebP": "jpeg 1024x1024",
        "an animated PNG": "jpeg 1024x1024",
    }


WORDS = r"""
from imagecall.events.arguments import parse_arguments
from imagecall.events.tools import feedback
from imagecall.middleware.asgi import _concerns
from imagecall.middleware.backends.images_api.errors import ErrorReader, is_html
from imagecall.middleware.backends.images_api.request import plain_prompt
from imagecall.middleware.backends.images_api.reset_time import find_reset
from imagecall.middleware.backends.mcp_client import results, sizes
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.scenery.prompt import read_prompt
from imagecall.middleware.backends.secret_values import Secrets
from imagecall.middleware.backends.words import Words
from imagecall.middleware.edits.artifacts import file_name
from imagecall.middleware.terminal.printable import one_line, printable
from imagecall.events.sse import SSEDecoder

secrets = Secrets(["canary-key-5f2e81"], ["canary-header-77a0"])
errors = ErrorReader(secrets, lambda: 0.0)
readers = {
    "secrets": secrets.strike,
    "words": Words(secrets).show,
    "errors": lambda text: errors.refusal(429, {"retry-after": text}, text.encode()),
    "reset": lambda text: find_reset({"x-ratelimit-reset-a": text}, {}, 0.0),
    "answers": lambda text: errors.answered({"error": {"message": text, "code": text, "type": text}}),
    "html": lambda text: is_html(text.encode()),
    "prompt": lambda text: plain_prompt(text + " a kite"),
    "arguments": parse_arguments,
    "concerns": lambda text: _concerns(text.encode()),
    "encoded": lambda text: feedback._ENCODED.sub("", text),
    "sides": lambda text: sizes._SIDES.search(text),
    "ratio": lambda text: sizes._RATIO.search(text),
    "name": file_name,
    "line": one_line,
    "text": printable,
    "events": lambda text: SSEDecoder(max_event=1 << 30).feed(text.encode()),
    "scene": lambda text: read_prompt(text[:32_000]),
}
LENGTH = 1 << 18
pieces = ["a", " ", "1", "0.", "1ms", "<sd_cpp_extra_args>", "</sd_cpp_extra_args>", "data:a", "sk-"]
pieces += ["data:image/png;base64,", "{", "[", '{"a":', '"', "\\", "\\u00", "and a ", "red and "]
pieces += ["1x", "Bearer ", "1:", "a_", "=", "rate_limit", "\n", "\r", ":", "data: \n", "\x00", "\u00e9"]
pieces += ["-", "/", "../"]
for name, read in readers.items():
    for piece in pieces:
        text = piece * (LENGTH // len(piece))
        try:
            read(text + "!")
        except (ImageError, ValueError):
            pass
print("done")
"""


def test_no_text_makes_a_pattern_crawl() -> None:
    """Much of anything is read in a moment; a pattern that is quadratic would take an hour."""
    assert run(WORDS) == "done\n"


DELTA = """
from exchanges import Steps, ask, turn
from rules import read_events
from transcript import message

text = "A word. " * (4 << 20)
steps = Steps(ask())
steps.take(steps.translator.receive(turn(message(0, 'msg_a', text))))
print(sum(len(event["delta"]) for event in read_events(steps.body) if "delta" in event))
"""


def test_a_long_text_in_one_event_holds_nobody_up() -> None:
    assert run(DELTA) == f"{4 << 23}\n"
