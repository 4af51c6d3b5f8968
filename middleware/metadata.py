"""Dropping a picture file's metadata and leaving its pixels as they were encoded.

Image servers write prompts and whole workflows into their files, cameras write places and names. Each
format is a row of parts that name their kind; the file is written anew without the parts that are neither
pixels nor colours. What stays is listed and the rest goes: programs invent new kinds of metadata.

Content credentials (C2PA) are the one exception. They sign the rest of the file, so they stay with a file
that holds no other metadata, and go with one that is changed anyway: a broken seal would be a false one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import islice
from typing import NamedTuple

from .image_headers import MalformedError, is_whole

__all__ = ["strip_metadata"]

_MAX_PARTS = 200_000
"""How many parts a file may have: those of 32 MB are ten times fewer, and a forged one must end, too."""

_PNG_KEPT = frozenset(
    b"tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT acTL fcTL fdAT".split()
)
_JPEG_KEPT = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
_WEBP_KEPT = frozenset([b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"])
_GIF_KEPT = frozenset([b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012"])

_EXIF = b"Exif\0\0"
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
"""What ends the entropy-coded data of a JPEG scan: any marker but a restart."""


class _Kind(Enum):
    KEPT = "kept"
    METADATA = "metadata"
    SEAL = "seal"


class _Part(NamedTuple):
    """The bytes from the part before to `end`; `exif` is where an Exif block begins in them, if one does."""

    end: int
    kind: _Kind = _Kind.KEPT
    exif: int | None = None


def strip_metadata(data: bytes, output_format: str) -> tuple[bytes, int]:
    """Drop the metadata of a PNG, JPEG, WebP or GIF file. Takes milliseconds for megabytes.

    Args:
        data: a file that `read_header` can read.
        output_format: what it is.

    Returns:
        The file without metadata, which is `data` itself if there was none; and how the metadata said that
        the picture must be turned, 1–8 as in Exif, 1 for upright.

    Raises:
        MalformedError: its parts cannot be told from each other.
    """
    try:
        parts = list(islice(_WALKS[output_format](data), _MAX_PARTS))
        if len(parts) == _MAX_PARTS:
            raise MalformedError("The file has too many parts.")
        if parts[-1].end == len(data) and all(part.kind is not _Kind.METADATA for part in parts):
            return data, 1
        pieces = list(_kept(data, parts))
        if output_format == "webp":
            pieces[:2] = _webp_start(pieces)
    except (struct.error, IndexError):
        raise MalformedError("A part of the file is cut off.") from None
    stripped = b"".join(pieces)
    if not is_whole(stripped, output_format):
        raise MalformedError("The file's end is not where it should be.")
    return stripped, next((_orientation(data, part) for part in parts if part.exif is not None), 1)


def _kept(data: bytes, parts: list[_Part]) -> Iterator[memoryview | bytes]:
    view, start = memoryview(data), 0
    for part in parts:
        if part.kind is _Kind.KEPT:
            yield view[start : part.end]
        start = part.end


def _png(data: bytes) -> Iterator[_Part]:
    """PNG, 5.3: a chunk has a length, a name, data and a checksum; capital letters begin critical ones."""
    offset, name = 8, b""
    yield _Part(offset)
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, offset)
        if not name.isalpha():
            raise MalformedError("A PNG chunk has a name.")
        exif = offset + 8 if name == b"eXIf" else None
        offset = _within(data, offset + 12 + length)
        if name[:1].isupper() or name in _PNG_KEPT:
            yield _Part(offset)
        else:
            yield _Part(offset, _Kind.SEAL if name == b"caBX" else _Kind.METADATA, exif)


def _jpeg(data: bytes) -> Iterator[_Part]:
    """ITU-T T.81, B.1: markers, most of them with a length; APP0 to APP15 and COM are for applications."""
    offset, marker = 2, 0
    yield _Part(offset)
    while marker != 0xD9:
        prefix, marker = data[offset], data[offset + 1]
        if prefix != 0xFF or 0x02 <= marker <= 0xBF or not marker:
            raise MalformedError("A JPEG segment begins with a marker.")
        if marker in (0x01, 0xFF) or 0xD0 <= marker <= 0xD9:  # markers without a length, fill bytes
            offset += 1 if marker == 0xFF else 2
            yield _Part(offset)
            continue
        start = offset + 4
        offset = _within(data, offset + 2 + max(2, *struct.unpack_from(">H", data, offset + 2)))
        if marker == 0xDA:
            offset = _scan_end(data, offset)
        yield _Part(offset, *_segment(data, marker, start))


def _segment(data: bytes, marker: int, start: int) -> tuple[_Kind, int | None]:
    if not (0xE0 <= marker <= 0xEF or marker == 0xFE):
        return _Kind.KEPT, None
    if marker in _JPEG_KEPT and data.startswith(_JPEG_KEPT[marker], start):
        return _Kind.KEPT, None
    if marker == 0xEB and data.startswith(b"JP", start):
        return _Kind.SEAL, None
    return _Kind.METADATA, start if marker == 0xE1 and data.startswith(_EXIF, start) else None


def _scan_end(data: bytes, offset: int) -> int:
    marker = _MARKER.search(data, offset)
    if marker is None:
        raise MalformedError("A JPEG scan ends.")
    return marker.start()


def _webp(data: bytes) -> Iterator[_Part]:
    """RFC 9649, 2.3 and 2.4: chunks, each padded to an even length, in a container that says its own."""
    total, offset = int.from_bytes(data[4:8], "little") + 8, 12
    yield _Part(offset)
    while offset < total:
        name, length = struct.unpack_from("<4sI", data, offset)
        exif = offset + 8 if name == b"EXIF" else None
        offset += 8 + length
        if offset > total:
            raise MalformedError("A WebP chunk ends within the file.")
        offset = min(total, offset + length % 2)
        if name in _WEBP_KEPT:
            yield _Part(offset)
        else:
            yield _Part(offset, _Kind.SEAL if name == b"C2PA" else _Kind.METADATA, exif)


def _webp_start(pieces: list[memoryview | bytes]) -> list[memoryview | bytes]:
    """Correct the container's length and, in VP8X, the flags of what is no longer there."""
    length = sum(len(piece) for piece in pieces) - 8
    first = bytearray(pieces[1])
    if first.startswith(b"VP8X"):
        first[8] &= ~0x0C  # XMP and Exif
    return [b"RIFF" + length.to_bytes(4, "little") + b"WEBP", bytes(first)]


def _gif(data: bytes) -> Iterator[_Part]:
    """GIF89a, 17–27: frames and extensions, both of them ended by an empty sub-block."""
    offset = 13 + _palette(data[10])
    yield _Part(offset)
    while (introducer := data[offset]) != 0x3B:
        if introducer == 0x2C:
            offset = _after_blocks(data, offset + 11 + _palette(data[offset + 9]))
            yield _Part(offset)
        elif introducer == 0x21:
            start = offset + 1
            offset = _after_blocks(data, offset + 2)
            yield _Part(offset, _extension(data, start, offset))
        else:
            raise MalformedError("A GIF block begins with an introducer.")
    yield _Part(offset + 1)


def _extension(data: bytes, start: int, end: int) -> _Kind:
    """Judge an extension from its label at `start` on. Plain text is drawn, yet no browser draws it."""
    label, name = data[start], data[start + 2 : start + 13]
    if label == 0xF9:  # it is about the next block, and goes with a plain text
        return _Kind.METADATA if data.startswith(b"!\x01", end) else _Kind.KEPT
    if label == 0xFF and name in _GIF_KEPT:
        return _Kind.KEPT
    return _Kind.SEAL if label == 0xFF and name.startswith(b"C2PA_GIF") else _Kind.METADATA


def _palette(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_blocks(data: bytes, offset: int) -> int:
    while size := data[offset]:
        offset += 1 + size
    return offset + 1


def _within(data: bytes, offset: int) -> int:
    if offset > len(data):
        raise MalformedError("A part of the file is cut off.")
    return offset


def _orientation(data: bytes, part: _Part) -> int:
    """TIFF 6.0, section 2: tag 274 of the first directory, a short number. A damaged block says nothing."""
    exif = data[part.exif : part.end].removeprefix(_EXIF)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        return 1
    try:
        (directory,) = struct.unpack_from(f"{order}I", exif, 4)
        (entries,) = struct.unpack_from(f"{order}H", exif, directory)
        for entry in range(entries):
            tag, value = struct.unpack_from(f"{order}H6xH", exif, directory + 2 + 12 * entry)
            if tag == 274:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1


_WALKS: dict[str, Callable[[bytes], Iterator[_Part]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "webp": _webp,
    "gif": _gif,
}
