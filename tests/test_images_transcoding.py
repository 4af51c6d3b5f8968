"""Decoding, encoding, and turning one format into another."""

from __future__ import annotations

import io
import warnings
from typing import Any

import PIL.Image
import PIL.ImageCms
import pytest
from imagecall.middleware.backends.base import Image, ImageRequest
from imagecall.middleware.images import conform, decode_image, encode_image, transcode
from picture_files import drawn, encoded, noise, read, refused
from PIL.PngImagePlugin import PngInfo


def _damaged() -> bytes:
    data = encoded(noise(), "PNG")
    return data[:-3000] + data[-1000:]


def test_damaged_pixels_are_refused() -> None:
    image = read(_damaged())
    error = refused(decode_image, image)
    assert (error.code, error.message) == (
        "image_parse_error",
        "The picture is damaged and cannot be decoded.",
    )
    assert error.__cause__ is not None


def test_a_picture_that_contradicts_its_header_is_refused() -> None:
    image = Image(encoded(drawn(), "PNG"), "png", 4, 4)
    assert refused(decode_image, image).message == "The picture contradicts its own header."


def test_only_the_announced_format_is_tried() -> None:
    assert refused(decode_image, Image(encoded(drawn(), "JPEG"), "png", 48, 32)).code == "image_parse_error"


def test_pillows_own_bound_is_an_error_and_not_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    image = read(encoded(drawn(), "PNG"))
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert refused(decode_image, image).code == "image_too_large"
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


def test_an_unknown_format_cannot_be_written() -> None:
    error = refused(encode_image, drawn(), output_format="svg", compression=None)
    assert (error.code, error.param) == ("invalid_output_format", "output_format")
    assert error.message == "The format 'svg' is not one of png, jpeg, webp, gif."


def test_a_picture_too_large_for_a_format_is_refused() -> None:
    error = refused(encode_image, PIL.Image.new("RGB", (20_000, 1)), output_format="webp", compression=None)
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


def test_a_damaged_picture_that_must_be_transcoded_is_an_error() -> None:
    image = read(_damaged())
    assert refused(conform, image, request(output_format="webp")).code == "image_parse_error"
    assert conform(image, request()) is image
