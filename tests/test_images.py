"""Pictures from outside: what headers say, what is refused, how formats are turned into one another."""

from __future__ import annotations

import base64
import io
import random
import struct
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import PIL.Image
import PIL.ImageCms
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.image_headers import MalformedError, read_header
from imagecall.middleware.images import (
    conform,
    decode_base64,
    decode_image,
    encode_image,
    read_image,
    transcode,
)
from PIL.PngImagePlugin import PngInfo

LIMITS = {"max_bytes": 1 << 20, "max_pixels": 1 << 20}

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def drawn(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> PIL.Image.Image:
    """Make a red left half and a half-transparent blue right one, as far as the mode can hold it."""
    picture = PIL.Image.new("RGBA", size, (220, 30, 40, 255))
    picture.paste((20, 60, 200, 128), (size[0] // 2, 0, *size))
    return picture.convert(mode)


def encoded(picture: PIL.Image.Image, output_format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, output_format, **options)
    return file.getvalue()


def read(data: bytes, **facts: Any) -> Image:
    return read_image(data, **LIMITS, **facts)


def chunk(name: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png_header(width: int, height: int, *chunks: bytes) -> bytes:
    body = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_MAGIC + chunk(b"IHDR", body) + b"".join(chunks)


def noise() -> PIL.Image.Image:
    grain = random.Random(7).randbytes(32 * 32 * 3)
    return PIL.Image.frombytes("RGB", (32, 32), grain).resize((64, 64))


@pytest.fixture
def refusal() -> Callable[..., ImageError]:
    """Call something that must be refused, and give the refusal."""

    def call(function: Callable[..., object], *args: Any, **kwargs: Any) -> ImageError:
        with pytest.raises(ImageError) as caught:
            function(*args, **kwargs)
        assert caught.value.message == str(caught.value)
        return caught.value

    return call


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
    data = b"GIF87a" + struct.pack("<HHBBB", 5, 4, 0, 0, 0) + frame
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
def test_anything_else_is_not_an_image(data: bytes, refusal: Callable[..., ImageError]) -> None:
    error = refusal(read, data)
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
def test_a_broken_header_is_not_an_image(data: bytes, refusal: Callable[..., ImageError]) -> None:
    error = refusal(read, data)
    assert error.code == "not_an_image"
    assert error.message.startswith("The picture's header is broken. ")


def test_a_picture_without_pixels_is_not_an_image(refusal: Callable[..., ImageError]) -> None:
    assert refusal(read, png_header(0, 9, chunk(b"IDAT"))).message == "The picture has no pixels."


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


def test_the_limits_hold_before_anything_is_decoded(refusal: Callable[..., ImageError]) -> None:
    bomb = png_header(60_000, 60_000, chunk(b"IDAT"))
    error = refusal(read, bomb)
    assert error.code == "image_too_large"
    assert error.message == "The picture is 60000x60000; at most 1048576 pixels are allowed."
    error = refusal(read_image, bytes(3_000_000), max_bytes=2_000_000, max_pixels=9)
    assert error.code == "image_too_large"
    assert error.message == "The picture has 3.0 MB; at most 2.0 MB are allowed."


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
def test_base64_is_validated_strictly(text: str, message: str, refusal: Callable[..., ImageError]) -> None:
    error = refusal(decode_base64, text, max_bytes=1000)
    assert (error.code, error.message) == ("invalid_base64_image", message)


def test_base64_is_measured_before_it_is_decoded(refusal: Callable[..., ImageError]) -> None:
    assert refusal(decode_base64, "!" * 4000, max_bytes=2999).code == "image_too_large"
    assert refusal(decode_base64, "!" * 4000, max_bytes=3000).code == "invalid_base64_image"


def test_damaged_pixels_are_refused(refusal: Callable[..., ImageError]) -> None:
    image = read(encoded(noise(), "PNG")[:-2000])
    error = refusal(decode_image, image)
    assert (error.code, error.message) == (
        "image_parse_error",
        "The picture is damaged and cannot be decoded.",
    )
    assert error.__cause__ is not None


def test_a_picture_that_contradicts_its_header_is_refused(refusal: Callable[..., ImageError]) -> None:
    image = Image(encoded(drawn(), "PNG"), "png", 4, 4)
    assert refusal(decode_image, image).message == "The picture contradicts its own header."


def test_only_the_announced_format_is_tried(refusal: Callable[..., ImageError]) -> None:
    assert refusal(decode_image, Image(encoded(drawn(), "JPEG"), "png", 48, 32)).code == "image_parse_error"


def test_pillows_own_bound_is_an_error_and_not_a_warning(
    monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., ImageError]
) -> None:
    image = read(encoded(drawn(), "PNG"))
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert refusal(decode_image, image).code == "image_too_large"
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", None)
    assert decode_image(image).size == (48, 32)


def test_pictures_of_all_kinds_decode_to_rgb_or_rgba() -> None:
    red, blue = (220, 30, 40), (20, 60, 200, 128)
    assert decode_image(read(encoded(drawn("RGBA"), "PNG"))).getpixel((40, 9)) == blue
    assert decode_image(read(encoded(drawn("P"), "PNG", transparency=0))).mode == "RGBA"
    assert decode_image(read(encoded(PIL.Image.new("RGBA", (8, 8)), "GIF"))).mode == "RGBA"
    assert decode_image(read(encoded(drawn("RGB"), "PNG"))).getpixel((0, 0)) == red
    assert decode_image(read(encoded(drawn("1"), "PNG"))).mode == "RGB"
    ink = decode_image(read(encoded(PIL.Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"))).getpixel(
        (4, 4)
    )
    assert isinstance(ink, tuple)
    assert ink[0] > 200
    assert max(ink[1:]) < 60


def test_sixteen_bits_of_grey_are_scaled_and_not_clipped() -> None:
    picture = PIL.Image.new("I;16", (8, 8), 0x8000)
    assert decode_image(read(encoded(picture, "PNG"))).getpixel((0, 0)) == (128, 128, 128)


def test_a_photograph_is_turned_upright() -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    image = read(encoded(drawn(), "JPEG", exif=exif, quality=95))
    upright = decode_image(image)
    assert (image.width, image.height, upright.size) == (48, 32, (32, 48))
    top = upright.getpixel((16, 4))
    assert isinstance(top, tuple)
    assert top[0] > 180 > top[2]
    assert transcode(image, output_format="png", compression=None).height == 48


@pytest.mark.parametrize("output_format", ["png", "webp", "gif"])
def test_a_transparent_picture_keeps_its_alpha_channel(output_format: str) -> None:
    picture = PIL.Image.new("RGBA", (16, 16), (0, 0, 0, 0))
    picture.paste("red", (0, 0, 8, 16))
    image = read(encode_image(picture, output_format=output_format, compression=100))
    assert (image.output_format, image.transparent) == (output_format, True)
    again = decode_image(image).getchannel("A")
    assert (again.getpixel((4, 8)), again.getpixel((12, 8))) == (255, 0)


def test_a_jpeg_is_flattened_on_white() -> None:
    picture = PIL.Image.new("RGBA", (16, 16), (0, 0, 0, 0))
    image = read(encode_image(picture, output_format="jpeg", compression=100))
    assert decode_image(image).getpixel((8, 8)) == (255, 255, 255)


@pytest.mark.parametrize("output_format", ["jpeg", "webp"])
def test_compression_counts_like_a_quality(output_format: str) -> None:
    sizes = [
        len(encode_image(noise(), output_format=output_format, compression=compression))
        for compression in (-5, 0, 1, 30, 60, None, 100, 400)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[1] == sizes[2] < sizes[3] < sizes[4] < sizes[5] < sizes[6] == sizes[7]


@pytest.mark.parametrize("output_format", ["png", "gif"])
def test_compression_means_nothing_to_lossless_formats(output_format: str) -> None:
    picture = noise()
    plain = encode_image(picture, output_format=output_format, compression=None)
    assert encode_image(picture, output_format=output_format, compression=10) == plain


def test_an_unknown_format_cannot_be_written(refusal: Callable[..., ImageError]) -> None:
    error = refusal(encode_image, drawn(), output_format="svg", compression=None)
    assert (error.code, error.param) == ("invalid_output_format", "output_format")
    assert error.message == "The format 'svg' is not one of png, jpeg, webp, gif."


def test_a_picture_too_large_for_a_format_is_refused(refusal: Callable[..., ImageError]) -> None:
    error = refusal(encode_image, PIL.Image.new("RGB", (20_000, 1)), output_format="webp", compression=None)
    assert (error.code, error.message) == ("image_encode_error", "The picture cannot be written as webp.")


@pytest.mark.parametrize("output_format", ["png", "jpeg", "webp", "gif"])
def test_a_comment_is_written_into_the_file(output_format: str) -> None:
    data = encode_image(drawn("RGB"), output_format=output_format, compression=None, comment="made by hand")
    assert b"made by hand" in data
    assert read(data).width == 48


def test_transcoding_drops_metadata_and_keeps_the_colour_profile_and_the_facts() -> None:
    profile = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
    text = PngInfo()
    text.add_text("parameters", "a secret prompt")
    text.add_itxt("XML:com.adobe.xmp", "a secret prompt")
    exif = PIL.Image.Exif()
    exif[0x010E] = "a secret prompt"
    data = encoded(drawn("RGB"), "PNG", pnginfo=text, exif=exif, icc_profile=profile)
    assert data.count(b"a secret prompt") == 3
    image = read(data, revised_prompt="a kite", quality="high", usage={"total_tokens": 1})
    for output_format in ("png", "jpeg", "webp"):
        made = transcode(image, output_format=output_format, compression=80)
        assert (made.output_format, made.width, made.height) == (output_format, 48, 32)
        assert b"secret" not in made.data
        with PIL.Image.open(io.BytesIO(made.data)) as picture:
            assert picture.info["icc_profile"] == profile
        assert (made.revised_prompt, made.quality, made.usage) == ("a kite", "high", {"total_tokens": 1})


@pytest.mark.parametrize("output_format", ["jpeg", "gif"])
def test_a_comment_does_not_survive_transcoding(output_format: str) -> None:
    image = read(encoded(drawn("RGB"), output_format, comment=b"a secret prompt"))
    assert b"secret" in image.data
    for wanted in ("png", "jpeg", "webp", "gif"):
        assert b"secret" not in transcode(image, output_format=wanted, compression=None).data


def request(**options: Any) -> ImageRequest:
    return ImageRequest(prompt="a kite", **options)


@pytest.mark.parametrize(
    ("backend_made", "options"),
    [
        ("PNG", {}),
        ("PNG", {"output_format": "png"}),
        ("PNG", {"output_format": "png", "output_compression": 20}),
        ("PNG", {"output_compression": 20}),
        ("PNG", {"output_format": "svg"}),
        ("JPEG", {"output_format": "jpg"}),
        ("JPEG", {"output_format": "jpeg", "output_compression": 100}),
        ("GIF", {"output_format": "gif"}),
    ],
)
def test_a_picture_that_fits_is_returned_as_it_is(backend_made: str, options: dict[str, Any]) -> None:
    image = read(encoded(noise(), backend_made))
    assert conform(image, request(**options)) is image


def test_another_format_is_transcoded_with_the_compression_that_was_asked_for() -> None:
    image = read(encoded(noise(), "PNG"), quality="low")
    best = conform(image, request(output_format="jpeg", output_compression=95))
    small = conform(image, request(output_format="jpg", output_compression=10))
    assert (best.output_format, small.output_format, best.quality) == ("jpeg", "jpeg", "low")
    assert len(small.data) < len(best.data) / 2
    assert conform(image, request(output_format="webp")).output_format == "webp"


@pytest.mark.parametrize("output_format", ["jpeg", "webp"])
def test_a_backend_that_ignored_the_compression_is_corrected_and_one_that_obeyed_is_not_compressed_twice(
    output_format: str,
) -> None:
    wanted = request(output_format=output_format, output_compression=30)
    ignored = read(encoded(noise(), output_format, quality=95))
    obeyed = read(encoded(noise(), output_format, quality=30))
    corrected = conform(ignored, wanted)
    assert corrected.output_format == output_format
    assert len(corrected.data) < len(ignored.data) / 2
    assert conform(obeyed, wanted) is obeyed


def test_a_damaged_picture_that_must_be_transcoded_is_an_error(refusal: Callable[..., ImageError]) -> None:
    image = read(encoded(noise(), "PNG")[:-2000])
    assert refusal(conform, image, request(output_format="webp")).code == "image_parse_error"
    assert conform(image, request()) is image
