"""What a picture's bytes say, and turning one format into another.

A picture from outside is a file of unknown origin: its magic bytes alone decide what it is, its header is
measured before any decoder sees it, and Pillow may then only try the format that the bytes announced.
SVG and HTML are programs rather than pictures and are never one here.
"""

from __future__ import annotations

import binascii
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import PIL.Image
import PIL.ImageOps
from PIL.PngImagePlugin import PngInfo

from .backends.base import Image, ImageError, ImageRequest
from .image_headers import MalformedError, is_whole, read_header
from .metadata import strip_metadata

__all__ = [
    "ENCODABLE",
    "conform",
    "decode_base64",
    "decode_image",
    "encode_image",
    "read_image",
    "transcode",
    "without_metadata",
]

ENCODABLE = ("png", "jpeg", "webp", "gif")
"""The formats that can be read and written."""

_QUALITY = 90
"""The quality of lossy formats where nobody asked for a compression."""

_WORTHWHILE = 0.75
"""Compressing once more must save a quarter; else the picture came as compressed as it was asked for."""


def read_image(data: bytes, *, max_bytes: int, max_pixels: int, **facts: Any) -> Image:
    """Measure an encoded picture by its header; its pixels are not decoded.

    Args:
        data: a PNG, JPEG, WebP or GIF file.
        max_bytes: the longest file allowed.
        max_pixels: the largest width times height allowed.
        facts: what the bytes cannot say: revised_prompt, quality, usage, keep_metadata.

    Raises:
        ImageError: it is none of these (`not_an_image`), breaks off (`image_truncated`), or is too long
            or too large (`image_too_large`).
    """
    if len(data) > max_bytes:
        raise _too_many_bytes(len(data), max_bytes)
    try:
        header = read_header(data)
    except MalformedError as error:
        raise ImageError(f"The picture's header is broken. {error}", code="not_an_image") from error
    if header is None:
        raise ImageError("The data is not a PNG, JPEG, WebP or GIF picture.", code="not_an_image")
    if not header.width * header.height:
        raise ImageError("The picture has no pixels.", code="not_an_image")
    if header.width * header.height > max_pixels:
        size = f"{header.width}x{header.height}"
        raise ImageError(
            f"The picture is {size}; max_pixels allows {max_pixels:,} pixels.", code="image_too_large"
        )
    if not is_whole(data, header.output_format):
        raise ImageError("The picture breaks off before its end.", code="image_truncated")
    return Image(
        data=data,
        output_format=header.output_format,
        width=header.width,
        height=header.height,
        transparent=header.transparent,
        **facts,
    )


def decode_base64(text: str | bytes, *, max_bytes: int) -> bytes:
    """Decode base64 in either alphabet, padded or not, in lines or not, bare or as a `data:…;base64,` URL.

    Its length is checked before anything is decoded.

    Raises:
        ImageError: it is not clean base64 (`invalid_base64_image`), or holds more than `max_bytes`
            (`image_too_large`).
    """
    try:
        raw = text.encode("ascii") if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise _not_base64() from None
    raw = raw.strip()
    if raw[:5].lower() == b"data:":
        head, _, raw = raw.partition(b",")
        if not head.lower().endswith(b";base64"):
            raise ImageError("The data URL is not in base64.", code="invalid_base64_image")
    if b"\n" in raw:
        raw = raw.translate(None, b"\r\n")
    body = raw.rstrip(b"=")
    if len(body) * 3 // 4 > max_bytes:
        raise _too_many_bytes(len(body) * 3 // 4, max_bytes)
    padding = -len(body) % 4
    if not body or len(raw) - len(body) not in (0, padding):
        raise _not_base64()
    try:
        return binascii.a2b_base64(body.translate(_URL_SAFE) + b"=" * padding, strict_mode=True)
    except binascii.Error:
        raise _not_base64() from None


def decode_image(image: Image) -> PIL.Image.Image:
    """Decode a picture's first frame to upright RGB, or RGBA where it has transparency.

    Only its colour profile is kept besides the pixels.

    Raises:
        ImageError: the pixels are damaged, or are not what the header said (`image_parse_error`).
    """
    bound = PIL.Image.MAX_IMAGE_PIXELS  # Pillow itself only warns, and warnings are the whole process's
    if bound is not None and image.width * image.height > bound:
        raise ImageError("The picture has too many pixels to be decoded.", code="image_too_large")
    with (
        _pillow_errors("The picture is damaged and cannot be decoded.", "image_parse_error"),
        io.BytesIO(image.data) as file,
    ):
        picture: PIL.Image.Image = PIL.Image.open(file, formats=(image.output_format.upper(),))
        if picture.size != (image.width, image.height):
            raise ImageError("The picture contradicts its own header.", code="image_parse_error")
        profile = picture.info.get("icc_profile") if picture.mode in ("RGB", "RGBA", "P") else None
        picture = PIL.ImageOps.exif_transpose(picture)
        if picture.mode.startswith("I"):  # 16 bits of grey
            picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    picture.info = {"icc_profile": profile} if profile else {}
    return picture


def encode_image(
    picture: PIL.Image.Image, *, output_format: str, compression: int | None, comment: str | None = None
) -> bytes:
    """Encode an RGB or RGBA picture.

    Args:
        picture: its colour profile is kept, all other metadata is dropped.
        output_format: one of `ENCODABLE`. For jpeg, transparency is flattened on white.
        compression: the Images API's `output_compression`, which counts like a quality: 0 gives the smallest
            jpeg or webp, 100 the best. Means nothing to png and gif.
        comment: written into the file's metadata.

    Raises:
        ImageError: the format is unknown, or cannot hold this picture.
    """
    options: dict[str, Any] = {"icc_profile": picture.info.get("icc_profile")}
    if output_format not in ENCODABLE:
        formats = ", ".join(ENCODABLE)
        raise ImageError(
            f"The format {output_format[:20]!r} is not one of {formats}.",
            code="invalid_output_format",
            param="output_format",
        )
    if output_format == "jpeg":
        picture = _flatten(picture)
    if output_format in ("jpeg", "webp"):
        quality = _QUALITY if compression is None else max(1, min(100, compression))  # to Pillow, 0 is unset
        options["quality"] = quality
        options["subsampling"] = 0 if quality >= _QUALITY else 2  # whole colour for crisp edges; jpeg only
    if comment:
        options |= _comment(output_format, comment)
    with (
        _pillow_errors(f"The picture cannot be written as {output_format}.", "image_encode_error"),
        io.BytesIO() as file,
    ):
        picture.save(file, format=output_format.upper(), **options)
        return file.getvalue()


def transcode(image: Image, *, output_format: str, compression: int | None) -> Image:
    """Decode and encode again, which also drops the metadata. Takes its time: run it in a thread.

    Raises:
        ImageError: the picture is damaged, or the format unknown.
    """
    picture = decode_image(image)
    data = encode_image(picture, output_format=output_format, compression=compression)
    return read_image(
        data,
        max_bytes=len(data),
        max_pixels=picture.width * picture.height,
        revised_prompt=image.revised_prompt,
        quality=image.quality,
        usage=image.usage,
    )


def conform(image: Image, request: ImageRequest) -> Image:
    """Give the client the format and compression it asked for, whatever the backend made of them.

    What already fits is returned as it is, and so is everything if the client asked for a format that
    cannot be written here: the picture's true format is then told. May take its time: run it in a thread.

    Raises:
        ImageError: the picture must be transcoded and is damaged.
    """
    wanted = {None: image.output_format, "jpg": "jpeg"}.get(request.output_format, request.output_format)
    if wanted not in ENCODABLE:
        return image
    if wanted != image.output_format:
        return transcode(image, output_format=wanted, compression=request.output_compression)
    if request.output_compression in (None, 100) or wanted not in ("jpeg", "webp"):
        return image
    smaller = transcode(image, output_format=wanted, compression=request.output_compression)
    return smaller if len(smaller.data) < _WORTHWHILE * len(image.data) else image


def without_metadata(image: Image) -> Image:
    """Drop what programs wrote into the file beside the picture: prompts, workflows, places, comments.

    The pixels are not encoded again, unless they lie on their side and only the metadata says so, or the
    file is built so oddly that nobody can tell what is metadata. Colour profiles stay. A picture without
    metadata is returned as it is.

    Raises:
        ImageError: the picture must be encoded again and is damaged.
    """
    try:
        data, orientation = strip_metadata(image.data, image.output_format)
    except MalformedError:
        return transcode(image, output_format=image.output_format, compression=None)
    if orientation != 1:
        return transcode(image, output_format=image.output_format, compression=None)
    return image if data is image.data else replace(image, data=data)


_URL_SAFE = bytes.maketrans(b"-_", b"+/")


@contextmanager
def _pillow_errors(message: str, code: str) -> Iterator[None]:
    """Translate whatever Pillow raises. Fed with broken data, its decoders raise nearly anything."""
    try:
        yield
    except ImageError:
        raise
    except Exception as error:
        raise ImageError(message, code=code) from error


def _not_base64() -> ImageError:
    return ImageError("The picture is not valid base64.", code="invalid_base64_image")


def _too_many_bytes(found: int, allowed: int) -> ImageError:
    message = f"The picture has {found:,} bytes; max_image allows {allowed:,}."
    return ImageError(message, code="image_too_large")


def _flatten(picture: PIL.Image.Image) -> PIL.Image.Image:
    if picture.mode != "RGBA":
        return picture
    flat = PIL.Image.new("RGB", picture.size, "white")
    flat.paste(picture, mask=picture.getchannel("A"))
    flat.info = picture.info
    return flat


def _comment(output_format: str, comment: str) -> dict[str, Any]:
    if output_format == "png":
        chunks = PngInfo()
        chunks.add_text("Comment", comment)
        return {"pnginfo": chunks}
    if output_format == "gif":
        return {"comment": comment.encode()}
    exif = PIL.Image.Exif()
    exif[0x010E] = comment  # ImageDescription
    return {"exif": exif}
