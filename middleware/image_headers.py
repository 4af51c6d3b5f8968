"""What the first bytes of a picture say, its format, size and transparency, and whether its end is there.

Nothing is decoded, so nothing can be made to allocate what a forged header promises.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Header", "MalformedError", "is_whole", "read_header"]

_PNG_END = b"IEND\xaeB`\x82"
_JPEG_END = b"\xff\xd9"
_GIF_END = b"\x3b"

_MAX_PARTS = 4096
"""How many parts may stand before the pixels: real files have a dozen, and a forged one must end, too."""


class MalformedError(ValueError):
    """The bytes begin like a picture and do not go on like one."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a picture is; both sides in pixels."""

    output_format: str
    width: int
    height: int
    transparent: bool


def read_header(data: bytes) -> Header | None:
    """Measure a PNG, JPEG, WebP or GIF file, recognised by its magic bytes; None if it is none of these.

    Raises:
        MalformedError: the header is cut off or contradicts its format.
    """
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return _png(data)
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(data)
        if data.startswith((b"GIF87a", b"GIF89a")):
            return _gif(data)
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
    except (struct.error, IndexError):
        raise MalformedError("The header is cut off.") from None
    return None


def is_whole(data: bytes, output_format: str) -> bool:
    """Tell a whole file from one that breaks off; WebP says its length at its beginning."""
    if output_format == "webp":
        return int.from_bytes(data[4:8], "little") + 8 <= len(data)
    if output_format == "gif":
        return data.rstrip(b"\0").endswith(_GIF_END)
    return (_PNG_END if output_format == "png" else _JPEG_END) in data  # some programs add more behind it


def _png(data: bytes) -> Header:
    """PNG, 11.2.1 and 11.3.1: alpha is bit 2 of the colour type, or a tRNS chunk before the pixels."""
    name, width, height, colour_type = struct.unpack_from(">4sIIxB", data, 12)
    if name != b"IHDR":
        raise MalformedError("A PNG begins with IHDR.")
    transparent, offset = bool(colour_type & 4), 8
    for _ in range(_MAX_PARTS):
        length, name = struct.unpack_from(">I4s", data, offset)
        transparent = transparent or name == b"tRNS"
        if name == b"IDAT":
            return Header("png", width, height, transparent)
        offset += 12 + length
    raise MalformedError("A PNG has pixels.")


def _jpeg(data: bytes) -> Header:
    """ITU-T T.81, annex B: the size stands in the frame header, SOF0 to SOF15 without DHT, JPG and DAC."""
    offset = 2
    for _ in range(_MAX_PARTS):
        prefix, marker = struct.unpack_from(">BB", data, offset)
        if prefix != 0xFF or marker in (0xD9, 0xDA):
            break
        if marker in (0x01, 0xFF) or 0xD0 <= marker <= 0xD7:  # fill bytes, markers without a length
            offset += 1 if marker == 0xFF else 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, offset + 5)
            return Header("jpeg", width, height, transparent=False)
        else:
            offset += 2 + struct.unpack_from(">H", data, offset + 2)[0]
    raise MalformedError("A JPEG has a frame header before its scan.")


def _gif(data: bytes) -> Header:
    """GIF89a, 18–23: the first frame may exceed the screen, and says whether it has a transparent colour."""
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    offset = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    transparent = False
    for _ in range(_MAX_PARTS):
        if data[offset] == 0x2C:
            left, top, wide, high = struct.unpack_from("<HHHH", data, offset + 1)
            return Header("gif", max(width, left + wide), max(height, top + high), transparent)
        if data[offset] != 0x21:
            break
        if data[offset + 1] == 0xF9:
            transparent = bool(data[offset + 3] & 1)
        offset = _after_blocks(data, offset + 2)
    raise MalformedError("A GIF has a frame.")


def _after_blocks(data: bytes, offset: int) -> int:
    for _ in range(_MAX_PARTS):
        if not data[offset]:
            return offset + 1
        offset += 1 + data[offset]
    raise MalformedError("A GIF extension ends.")


def _webp(data: bytes) -> Header:
    """RFC 9649, 2.5–2.7 and 3.4: one of three first chunks, each with the size in its own packing."""
    kind = data[12:16]
    if kind == b"VP8X":
        flags, wide, wider, high, higher = struct.unpack_from("<B3xHBHB", data, 20)
        return Header("webp", 1 + wide + (wider << 16), 1 + high + (higher << 16), bool(flags & 0x10))
    if kind == b"VP8L":
        signature, bits = struct.unpack_from("<BI", data, 20)
        if signature == 0x2F:
            return Header("webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), bool(bits >> 28 & 1))
    if kind == b"VP8 ":
        start, width, height = struct.unpack_from("<3sHH", data, 23)
        if start == b"\x9d\x01\x2a":
            return Header("webp", width & 0x3FFF, height & 0x3FFF, transparent=False)
    raise MalformedError("A WebP begins with VP8, VP8L or VP8X.")
