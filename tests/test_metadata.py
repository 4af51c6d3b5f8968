"""Metadata: what is dropped from a file, what stays, and that its pixels are the same bytes."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import PIL.Image
import PIL.ImageCms
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.image_headers import MalformedError
from imagecall.middleware.images import decode_image, read_image, without_metadata
from imagecall.middleware.metadata import strip_metadata
from picture_files import PNG_MAGIC, chunk, drawn, encoded, png_header, read, refused
from PIL.PngImagePlugin import PngInfo

SECRET = b"a secret prompt"
PROFILE = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
FORMATS = ("png", "jpeg", "webp", "gif")


def exif(orientation: int = 1, order: str = "<") -> bytes:
    """Write an Exif block with a description and an orientation."""
    magic = {"<": b"II*\0", ">": b"MM\0*"}[order]
    described = struct.pack(f"{order}HHII", 0x010E, 2, len(SECRET), 38)
    turned = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return magic + struct.pack(f"{order}IH", 8, 2) + described + turned + bytes(4) + SECRET


def after_ihdr(png: bytes, *chunks: bytes) -> bytes:
    return png[:33] + b"".join(chunks) + png[33:]


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def after_soi(jpeg: bytes, *segments: bytes) -> bytes:
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def part(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def container(*parts: bytes) -> bytes:
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def extension(label: int, *blocks: bytes) -> bytes:
    return b"!" + bytes([label]) + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def moving(output_format: str) -> bytes:
    frames = [drawn("RGB"), drawn("RGB").rotate(180)]
    return encoded(frames[0], output_format, save_all=True, append_images=frames[1:], loop=0, duration=90)


PNG = encoded(drawn("RGBA"), "PNG", icc_profile=PROFILE, dpi=(300, 300))
JPEG = encoded(drawn("RGB"), "JPEG", icc_profile=PROFILE, progressive=True)
CMYK = encoded(drawn("CMYK"), "JPEG")
WEBP = encoded(drawn("RGBA"), "WEBP", icc_profile=PROFILE)
PLAIN_WEBP = encoded(drawn("RGB"), "WEBP")
GIF = moving("GIF")

_TEXTS = [
    chunk(b"tEXt", b"parameters\0" + SECRET),
    chunk(b"zTXt", b"workflow\0\0" + zlib.compress(SECRET)),
    chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + SECRET),
    chunk(b"eXIf", exif()),
    chunk(b"tIME", bytes(7)),
    chunk(b"comf", b"prompt\0" + SECRET),
]
_SEGMENTS = [
    segment(0xE0, b"JFXX\0\x10" + SECRET),
    segment(0xE1, b"Exif\0\0" + exif()),
    segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + SECRET),
    segment(0xE2, b"MPF\0" + SECRET),
    segment(0xED, b"Photoshop 3.0\0" + SECRET),
    segment(0xEF, SECRET),
    segment(0xFE, SECRET),
]
_COMMENT = extension(0xFE, SECRET)
_XMP = extension(0xFF, b"XMP DataXMP", SECRET)
_TEXT = extension(0xF9, b"\x04\0\0\0") + extension(0x01, bytes(12), SECRET)
_PALETTE = 13 + (3 << (GIF[10] & 7) + 1)


def webp_of(data: bytes, *more: bytes, flags: int = 0) -> bytes:
    """Put chunks behind those of a WebP that begins with VP8X."""
    body = bytearray(data[12:])
    body[8] |= flags
    return container(bytes(body), *more)


@pytest.mark.parametrize(
    ("clean", "told"),
    [
        *((PNG, after_ihdr(PNG, one)) for one in _TEXTS),
        (PNG, after_ihdr(PNG, *_TEXTS)),
        (PNG, PNG[:-12] + b"".join(_TEXTS) + PNG[-12:]),
        (PNG, PNG + SECRET),
        *((JPEG, after_soi(JPEG, one)) for one in _SEGMENTS),
        (JPEG, after_soi(JPEG, *_SEGMENTS)),
        (JPEG, JPEG[:-2] + segment(0xFE, SECRET) + JPEG[-2:]),
        (JPEG, JPEG + SECRET),
        (CMYK, after_soi(CMYK, *_SEGMENTS)),
        (WEBP, webp_of(WEBP, part(b"EXIF", exif()), part(b"XMP ", SECRET), flags=0x0C)),
        (WEBP, webp_of(WEBP, part(b"note", SECRET))),
        (WEBP, WEBP + SECRET),
        (PLAIN_WEBP, container(PLAIN_WEBP[12:], part(b"XMP ", SECRET))),
        (GIF, GIF[:_PALETTE] + _COMMENT + _XMP + _TEXT + GIF[_PALETTE:]),
        (GIF, GIF[:-1] + _COMMENT + GIF[-1:]),
        (GIF, GIF + bytes(2)),
    ],
)
def test_metadata_is_dropped_and_every_other_byte_stays(clean: bytes, told: bytes) -> None:
    image = read(told, revised_prompt="a kite")
    stripped = without_metadata(image)
    assert stripped.data == clean
    assert stripped == read(clean, revised_prompt="a kite")
    assert without_metadata(stripped) is stripped


@pytest.mark.parametrize(
    "data",
    [
        *(PNG, JPEG, CMYK, WEBP, PLAIN_WEBP, GIF, moving("PNG"), moving("WEBP")),
        encoded(drawn("P"), "PNG", transparency=0),
        encoded(drawn("RGB"), "WEBP", lossless=True),
        encoded(drawn("P"), "GIF"),
        encoded(drawn("RGB"), "JPEG", restart_marker_blocks=1),
        after_soi(CMYK, b"\xff\xff\xff\x01\xff\xd0"),
    ],
)
def test_a_picture_without_metadata_is_not_copied(data: bytes) -> None:
    image = read(data)
    assert without_metadata(image) is image


@pytest.mark.parametrize("output_format", ["png", "webp"])
def test_a_moving_picture_goes_on_moving(output_format: str) -> None:
    data = moving(output_format)
    told = (
        after_ihdr(data, *_TEXTS) if output_format == "png" else webp_of(data, part(b"XMP ", SECRET), flags=4)
    )
    assert without_metadata(read(told)).data == data
    with PIL.Image.open(io.BytesIO(data)) as picture:
        assert getattr(picture, "n_frames", 1) == 2


def test_what_pillow_and_other_programs_write_is_gone_and_the_pixels_are_the_same() -> None:
    text = PngInfo()
    text.add_text("parameters", SECRET.decode())
    text.add_text("workflow", SECRET.decode(), zip=True)
    text.add_itxt("XML:com.adobe.xmp", SECRET.decode())
    made = [
        encoded(drawn("RGB"), "PNG", pnginfo=text, exif=exif(), icc_profile=PROFILE),
        encoded(
            drawn("RGB"), "JPEG", comment=SECRET, exif=b"Exif\0\0" + exif(), xmp=SECRET, icc_profile=PROFILE
        ),
        encoded(drawn("RGB"), "WEBP", exif=exif(), xmp=SECRET, icc_profile=PROFILE),
        encoded(drawn("P"), "GIF", comment=SECRET),
    ]
    for data in made:
        image = read(data)
        stripped = without_metadata(image)
        assert SECRET in data
        assert SECRET not in stripped.data
        assert decode_image(stripped).tobytes() == decode_image(image).tobytes()
        with PIL.Image.open(io.BytesIO(stripped.data)) as picture:
            assert picture.info.get("icc_profile") == (None if image.output_format == "gif" else PROFILE)
            assert not {"exif", "xmp", "comment", "parameters", "workflow"} & set(picture.info)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("output_format", ["png", "jpeg", "webp"])
def test_a_picture_that_lies_on_its_side_is_turned_upright(output_format: str, order: str) -> None:
    block = exif(6, order)
    if output_format == "png":
        data = after_ihdr(PNG, chunk(b"eXIf", block))
    elif output_format == "jpeg":
        data = after_soi(JPEG, segment(0xE1, b"Exif\0\0" + block))
    else:
        data = webp_of(WEBP, part(b"EXIF", b"Exif\0\0" + block), flags=8)
    image = read(data, quality="high")
    upright = without_metadata(image)
    assert (image.width, image.height, upright.width, upright.height) == (48, 32, 32, 48)
    assert (upright.output_format, upright.quality) == (output_format, "high")
    assert SECRET not in upright.data
    top, bottom = (decode_image(upright).convert("RGB").getpixel((16, y)) for y in (4, 44))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[0] > 180 > top[2]
    assert bottom[2] > 180 > bottom[0]


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"junk" + exif(6)[4:],
        exif(6)[:6],
        exif(6)[:12],
        exif(6)[:30],
        exif(0),
        exif(9),
        exif(6)[:4] + b"\xff\xff\xff\xff" + exif(6)[8:],
        exif(6)[:8] + bytes(2),
    ],
)
def test_a_damaged_exif_block_turns_nothing(block: bytes) -> None:
    assert strip_metadata(after_ihdr(PNG, chunk(b"eXIf", block)), "png") == (PNG, 1)


@pytest.mark.parametrize(
    ("sealed", "add"),
    [
        (after_ihdr(PNG, chunk(b"caBX", b"c2pa")), lambda data: after_ihdr(data, _TEXTS[0])),
        (after_soi(JPEG, segment(0xEB, b"JP\0\x01c2pa")), lambda data: after_soi(data, _SEGMENTS[-1])),
        (webp_of(WEBP, part(b"C2PA", b"c2pa")), lambda data: webp_of(data, part(b"XMP ", SECRET))),
        (
            GIF[:_PALETTE] + extension(0xFF, b"C2PA_GIF\1\0\0", b"c2pa") + GIF[_PALETTE:],
            lambda data: data[:_PALETTE] + _COMMENT + data[_PALETTE:],
        ),
    ],
    ids=FORMATS,
)
def test_content_credentials_stay_with_a_file_that_stays_as_it_is_and_go_with_one_that_changes(
    sealed: bytes, add: Callable[[bytes], bytes]
) -> None:
    image = read(sealed)
    assert without_metadata(image) is image
    assert b"c2pa" not in without_metadata(read(add(sealed))).data


@pytest.mark.parametrize(
    ("output_format", "data"),
    [
        ("png", PNG[:-20]),
        ("png", after_ihdr(PNG, b"\0\0\0\0te\1t\0\0\0\0")),
        ("png", after_ihdr(PNG, b"\x7f\xff\xff\xfftEXt")),
        ("png", after_ihdr(PNG, chunk(b"IEND", SECRET))),
        ("png", after_ihdr(PNG, chunk(b"tEXt") * 200_000)),
        ("jpeg", after_soi(JPEG, b"\xff\xbf\0\2")),
        ("jpeg", after_soi(JPEG, b"\xff\0")),
        ("jpeg", after_soi(JPEG, b"no marker")),
        ("jpeg", after_soi(JPEG, b"\xff\xfe\xff\xff")),
        ("jpeg", JPEG[:-2]),
        ("jpeg", CMYK[:-2]),
        ("webp", webp_of(WEBP, b"XMP \xff\xff\xff\x7f")),
        ("webp", webp_of(WEBP, b"XMP ")),
        ("webp", container(b"VP8X\0\0\0\0", part(b"XMP ", SECRET))),
        ("webp", container()),
        ("gif", GIF[:-1]),
        ("gif", GIF[:_PALETTE] + b"?" + GIF[_PALETTE:]),
        ("gif", b"GIF89a"),
    ],
)
def test_a_file_whose_parts_cannot_be_told_apart_is_malformed(output_format: str, data: bytes) -> None:
    with pytest.raises(MalformedError):
        strip_metadata(data + SECRET, output_format)


def test_an_odd_file_is_written_anew_and_a_damaged_one_refused() -> None:
    odd = after_ihdr(PNG, _TEXTS[0])[:-12] + b"\0\0\0\0no\1no\0\0\0" + PNG[-12:]
    anew = without_metadata(read(odd))
    assert decode_image(anew).tobytes() == decode_image(read(PNG)).tobytes()
    assert SECRET not in anew.data
    broken = png_header(48, 32, chunk(b"IDAT", b"no pixels"), b"\xff" * 12) + PNG[-12:]
    assert refused(without_metadata, read(broken)).code == "image_parse_error"


def test_a_last_chunk_that_lacks_its_padding_is_still_read() -> None:
    data = container(PLAIN_WEBP[12:], part(b"XMP ", b"odd"))[:-1]
    data = data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
    assert strip_metadata(data, "webp") == (PLAIN_WEBP, 1)


_FILES = [
    after_ihdr(PNG, *_TEXTS),
    after_soi(JPEG, *_SEGMENTS),
    webp_of(WEBP, part(b"EXIF", exif()), part(b"XMP ", SECRET), flags=0x0C),
    GIF[:_PALETTE] + _COMMENT + _XMP + _TEXT + GIF[_PALETTE:],
    PNG_MAGIC,
]


@given(
    st.sampled_from(_FILES),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 6), st.binary(max_size=6)), max_size=4),
)
def test_no_damage_makes_it_fail_otherwise_or_spoils_a_picture(
    data: bytes, damages: list[tuple[int, int, bytes]]
) -> None:
    for place, length, put in damages:
        place %= len(data) or 1  # noqa: PLW2901  the same place, within the data
        data = data[:place] + put + data[place + length :]
    try:
        image = read(data)
        stripped = without_metadata(image)
    except ImageError:
        return
    again = read_image(stripped.data, max_bytes=1 << 24, max_pixels=1 << 24)
    assert again.output_format == image.output_format
    assert {again.width, again.height} == {image.width, image.height}
    assert without_metadata(again) is again
