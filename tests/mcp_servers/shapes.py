"""Results of image tools as they are seen in the wild, as they stand on the wire."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from typing import Any

__all__ = ["DOT", "DOT_BASE64", "SHAPES", "WITHOUT_PICTURE", "large_png"]

DOT_BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGM4oaHxHwAE7AIY0raoogAAAABJRU5ErkJggg=="
)
DOT = base64.b64decode(DOT_BASE64)
"""A PNG of one pixel."""

_BLOCK = {"type": "image", "data": DOT_BASE64, "mimeType": "image/png"}


def _text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}


SHAPES: dict[str, dict[str, Any]] = {
    "an image block": {"content": [_BLOCK]},
    "JSON in a text": {"content": [_text({"result": DOT_BASE64, "revised_prompt": "a kite"})]},
    "the Images API in a text": {"content": [_text({"data": [{"b64_json": DOT_BASE64}]})]},
    "a block and its mirror": {
        "content": [_BLOCK, _text("done")],
        "structuredContent": {"result": [_BLOCK]},
    },
    "base64 in a text beside a block": {
        "content": [_text(f"ok {DOT_BASE64 * 3}"), _BLOCK],
        "structuredContent": {"image": DOT_BASE64},
    },
    "structured content alone": {"content": [], "structuredContent": {"images": [{"url": "no"}, _BLOCK]}},
    "an embedded resource": {
        "content": [
            {
                "type": "resource",
                "resource": {"uri": "image://dot", "mimeType": "image/png", "blob": DOT_BASE64},
            }
        ]
    },
    "a link to a resource": {
        "content": [
            _text("Here it is."),
            {"type": "resource_link", "uri": "image://dot", "name": "dot", "mimeType": "image/png"},
        ]
    },
    "a data URL in a text": {"content": [_text(f"![dot](data:image/png;base64,{DOT_BASE64}) Enjoy!")]},
    "nothing but base64": {"content": [_text(DOT_BASE64)]},
}
"""Results that hold the dot."""

WITHOUT_PICTURE: dict[str, dict[str, Any]] = {
    "a path": {"content": [_text("Image saved to /models/local")]},
    "an excuse": {"content": [_text("❌ The quota is used up.")]},
    "nothing": {"content": []},
    "other kinds": {
        "content": [
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "hello"}},
        ]
    },
}
"""Results that hold none."""


def large_png(megabytes: float) -> bytes:
    """Make a PNG of so many megabytes, which no compression makes smaller."""
    width = 1000
    height = int(megabytes * 1e6 / (3 * width))
    grain = random.Random(7).randbytes(3 * width)
    rows = b"".join(b"\0" + grain[row % width :] + grain[: row % width] for row in range(height))
    body = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", body), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
