"""Pictures from outside: what headers say, what is refused."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.middleware.backends.base import Image
from imagecall.middleware.image_headers import MalformedError, read_header
from imagecall.middleware.images import decode_base64, decode_image, read_image
from picture_files import PNG_MAGIC, chunk, drawn, encoded, png_header, read, refused


@pytest.mark.parametrize(
    ("data", "output_format", "transparent"),
    [
        (encoded(drawn("RGB"), "PNG"), "png", False),
        (encoded(drawn("RGBA"), "PNG"), "png", True),
        (encoded(drawn("LA"), "PNG"), "png", True),
        (encoded(drawn("P"), "PNG", transparency=0), "png", True),
        (encoded(drawn("RGB").convert("P"), "PNG"), "png", False),
        (encoded(drawn("RGB"), "PNG", transparency=(1, 2, 3)), "png", True),
        (encoded(drawn("RGB"), "JPEG"), "jpeg", False),
        (encoded(drawn("RGB"), "JPEG", progressive=True, comment=b"x" * 300), "jpeg", False),
        (encoded(drawn("CMYK"), "JPEG"), "jpeg", False),
        (encoded(drawn("RGB"), "WEBP"), "webp", False),
        (encoded(drawn("RGBA"), "WEBP"), "webp", True),
        (encoded(drawn("RGB"), "WEBP", lossless=True), "webp", False),
        (encoded(drawn("RGBA"), "WEBP", lossless=True), "webp", True),
        (encoded(drawn("P"), "GIF"), "gif", False),
        (encoded(drawn("P"), "GIF", transparency=0, comment=b"hello"), "gif", True),
        (encoded(drawn("P"), "GIF", append_images=[drawn("L")], save_all=True), "gif", False),
    ],
)
def test_the_header_tells_format_size_and_transparency(
    data: bytes, output_format: str, transparent: bool
) -> None:
    assert read(data) == Image(data, output_format, 48, 32, transparent)


def test_what_the_bytes_cannot_say_is_taken_from_the_caller() -> None:
    data = encoded(drawn(), "PNG")
    usage = {"total_tokens": 3}
    image = read(data, revised_prompt="a kite", quality="low", usage=usage)
    assert image == Image(data, "png", 48, 32, revised_prompt="a kite", quality="low", usage=usage)
    assert image.data is data


def test_padding_and_bare_markers_before_a_jpeg_frame_header_are_skipped() -> None:
    data = encoded(drawn(), "JPEG")
    padded = data[:2] + b"\xff\x01" + b"\xff\xff\xff" + b"\xff\xd0" + data[2:]
    assert read_header(b"\xff\xd8" + padded[2:]) == read_header(data)


def test_a_gif_is_as_large_as_its_first_frame_even_if_that_exceeds_the_screen() -> None:
    data = bytearray(encoded(drawn("P"), "GIF"))
    data[6:10] = struct.pack("<HH", 8, 8)
    image = read(bytes(data))
    assert (image.width, image.height) == (48, 32)
    assert decode_image(image).size == (48, 32)


def test_a_gif_without_a_global_palette_is_measured() -> None:
    frame = b"," + struct.pack("<HHHH", 0, 0, 5, 4) + b"\0"
    data = b"GIF87a" + struct.pack("<HHBBB", 5, 4, 0, 0, 0) + frame + b";"
    assert read(data) == Image(data, "gif", 5, 4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
        b"<!doctype html><img src=x onerror=alert(1)>",
        b"%PDF-1.7",
        b"BM" + bytes(60),
        b"RIFF\x10\0\0\0WAVEfmt ",
        b"II*\0" + bytes(60),
    ],
)
def test_anything_else_is_not_an_image(data: bytes) -> None:
    error = refused(read, data)
    assert error.code == "not_an_image"
    assert error.message == "The data is not a PNG, JPEG, WebP or GIF picture."


@pytest.mark.parametrize(
    "data",
    [
        PNG_MAGIC,
        PNG_MAGIC + chunk(b"IDAT", bytes(13)),
        png_header(4, 4),
        png_header(4, 4, *[chunk(b"tEXt")] * 5000, chunk(b"IDAT")),
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xe0\0\x04ab",
        b"\xff\xd8\xff\xda\0\x02",
        b"\xff\xd8\xff\xe0\0\x02not a marker",
        b"\xff\xd8" + b"\xff\xe0\0\x02" * 5000,
        b"GIF89a",
        b"GIF89a" + struct.pack("<HHBBB", 5, 4, 0, 0, 0) + b";",
        b"GIF89a" + struct.pack("<HHBBB", 5, 4, 0, 0, 0) + b"!\xfe\0" * 5000,
        b"GIF89a" + struct.pack("<HHBBB", 5, 4, 0, 0, 0) + b"!\xfe" + b"\x01." * 5000,
        b"RIFF\x04\0\0\0WEBP",
        b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0",
        b"RIFF\x20\0\0\0WEBPVP8 " + bytes(40),
        b"RIFF\x20\0\0\0WEBPVP8L" + bytes(40),
        b"RIFF\x20\0\0\0WEBPALPH" + bytes(40),
    ],
)
def test_a_broken_header_is_not_an_image(data: bytes) -> None:
    error = refused(read, data)
    assert error.code == "not_an_image"
    assert error.message.startswith("The picture's header is broken. ")


def test_a_picture_without_pixels_is_not_an_image() -> None:
    assert refused(read, png_header(0, 9, chunk(b"IDAT"))).message == "The picture has no pixels."


@given(
    st.sampled_from(
        [PNG_MAGIC, b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X", b"RIFF\0\0\0\0WEBPVP8L"]
    ),
    st.binary(max_size=200),
)
def test_no_bytes_make_the_header_reader_fail_otherwise(magic: bytes, rest: bytes) -> None:
    try:
        header = read_header(magic + rest)
    except MalformedError:
        return
    assert header is not None


@pytest.mark.parametrize("output_format", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_that_breaks_off_is_refused_and_one_with_more_behind_it_is_not(output_format: str) -> None:
    data = encoded(drawn(), output_format)
    padding = b"\0\0" if output_format == "GIF" else b"tail"
    assert read(data + padding).output_format == output_format.lower()
    assert refused(read, data[:-2]).code == "image_truncated"


def test_the_limits_hold_before_anything_is_decoded() -> None:
    bomb = png_header(60_000, 60_000, chunk(b"IDAT"))
    error = refused(read, bomb)
    assert error.code == "image_too_large"
    assert error.message == "The picture is 60000x60000; max_pixels allows 1,048,576 pixels."
    error = refused(read_image, bytes(3_000_000), max_bytes=2_000_000, max_pixels=9)
    assert error.code == "image_too_large"
    assert error.message == "The picture has 3,000,000 bytes; max_image allows 2,000,000."


DATA = bytes(range(256)) * 2 + b"\xfb\xff"


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(DATA).decode(),
        base64.b64encode(DATA),
        base64.urlsafe_b64encode(DATA).decode(),
        base64.b64encode(DATA).decode().rstrip("="),
        "data:image/png;base64," + base64.b64encode(DATA).decode(),
        "DATA:;BASE64," + base64.urlsafe_b64encode(DATA).decode().rstrip("="),
        "\n " + base64.b64encode(DATA).decode() + "\n",
        base64.encodebytes(DATA),
        "data:image/png;base64,\r\n" + base64.encodebytes(DATA).decode().replace("\n", "\r\n"),
    ],
)
def test_base64_is_read_in_all_its_dialects(text: str | bytes) -> None:
    assert decode_base64(text, max_bytes=len(DATA)) == DATA


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The picture is not valid base64."),
        ("data:image/png;base64,", "The picture is not valid base64."),
        ("aGVs@@bG8=", "The picture is not valid base64."),
        ("aGVs bG8=", "The picture is not valid base64."),
        ("aGVsbG8==", "The picture is not valid base64."),
        ("aGVsb", "The picture is not valid base64."),
        ("aGV=sbG8", "The picture is not valid base64."),
        ("aGVsbG8é", "The picture is not valid base64."),
        ("data:image/svg+xml,<svg/>", "The data URL is not in base64."),
        ("data:image/png;base64", "The picture is not valid base64."),
    ],
)
def test_base64_is_validated_strictly(text: str, message: str) -> None:
    error = refused(decode_base64, text, max_bytes=1000)
    assert (error.code, error.message) == ("invalid_base64_image", message)


def test_base64_is_measured_before_it_is_decoded() -> None:
    assert refused(decode_base64, "!" * 4000, max_bytes=2999).code == "image_too_large"
    assert refused(decode_base64, "!" * 4000, max_bytes=3000).code == "invalid_base64_image"
