"""Edits with the offline scene: new words over a given picture."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import PIL.Image
import pytest
from imagecall.middleware.backends.base import Image, ImageError
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.images import read_image
from scene_pictures import CAT, as_image, difference, paint, pixels, previews, reddish, share


@pytest.fixture(scope="module")
def backend() -> SceneBackend:
    return SceneBackend()


Edit = Callable[..., Awaitable[PIL.Image.Image]]


@pytest.fixture
def plain() -> Image:
    return as_image(PIL.Image.new("RGB", (160, 120), (150, 150, 150)))


@pytest.fixture
def edit(backend: SceneBackend) -> Edit:
    async def call(prompt: str, *images: Image, size: str | None = None, **options: Any) -> PIL.Image.Image:
        image = await paint(backend, prompt, size, images=images, **options)
        return pixels(image, "RGBA" if image.transparent else "RGB")

    return call


async def test_an_edit_draws_new_things_onto_the_last_picture(edit: Edit, plain: Image) -> None:
    other = as_image(PIL.Image.new("RGB", (80, 80), "white"))
    picture = await edit("add a red balloon", other, plain)
    assert picture.size == (160, 120)
    assert picture.getpixel((2, 2)) == picture.getpixel((157, 117)) == (150, 150, 150)
    assert share(picture, reddish) > 0.02


async def test_an_edit_of_what_is_there_already_draws_it_no_second_time(edit: Edit, plain: Image) -> None:
    picture = await edit("put the cat at the centre", plain)
    assert picture.getextrema() == ((150, 150),) * 3


async def test_a_colour_alone_tints_the_picture(edit: Edit, plain: Image) -> None:
    picture = await edit("make the cat blue", plain)
    r, g, b = picture.getextrema()
    assert r[0] == r[1] < g[0] == g[1] < b[0] == b[1]


async def test_a_sky_word_puts_the_picture_into_its_light(edit: Edit, plain: Image) -> None:
    assert (await edit("at night", plain)).getextrema()[0][1] < 80
    assert (await edit("in the rain", plain)).getextrema()[0][1] > (
        await edit("in a storm", plain)
    ).getextrema()[0][0]


async def test_only_the_transparent_pixels_of_a_mask_change(edit: Edit, plain: Image) -> None:
    mask = PIL.Image.new("RGBA", (160, 120), "black")
    mask.paste((0, 0, 0, 0), (80, 0, 160, 120))
    picture = await edit("make it red", plain, mask=as_image(mask))
    assert picture.crop((0, 0, 79, 120)).getextrema() == ((150, 150),) * 3
    assert share(picture.crop((81, 0, 160, 120)), lambda r, g, b: r > 180 > 120 > max(g, b)) == 1


async def test_a_mask_without_transparency_is_refused(edit: Edit, plain: Image) -> None:
    with pytest.raises(ImageError) as caught:
        await edit("make it red", plain, mask=plain)
    assert (caught.value.code, caught.value.param) == ("invalid_mask", "input_image_mask")


async def test_a_picture_is_cut_to_cover_another_size(edit: Edit) -> None:
    halves = PIL.Image.new("RGB", (200, 100), "white")
    halves.paste("black", (100, 0, 200, 100))
    picture = await edit("keep it", as_image(halves), size="100x100")
    assert picture.size == (100, 100)
    assert (picture.getpixel((10, 50)), picture.getpixel((90, 50))) == ((255, 255, 255), (0, 0, 0))


@pytest.mark.parametrize(
    ("given", "made"), [((160, 120), (160, 120)), ((20, 400), (64, 400)), ((4000, 1000), (3840, 960))]
)
async def test_without_a_size_a_picture_keeps_its_own_within_the_bounds(
    edit: Edit, given: tuple[int, int], made: tuple[int, int]
) -> None:
    assert (await edit("keep it", as_image(PIL.Image.new("RGB", given)))).size == made


async def test_a_transparent_picture_stays_transparent_unless_opacity_is_asked_for(edit: Edit) -> None:
    cutout = PIL.Image.new("RGBA", (100, 100))
    cutout.paste("red", (30, 30, 70, 70))
    kept = await edit("keep it", as_image(cutout))
    assert (kept.getpixel((50, 50)), kept.getpixel((2, 2))) == ((255, 0, 0, 255), (0, 0, 0, 0))
    flat = await edit("keep it", as_image(cutout), background="opaque")
    assert (flat.mode, flat.getpixel((2, 2))) == ("RGB", (255, 255, 255))
    jpeg = await edit("keep it", as_image(cutout), output_format="jpeg")
    assert jpeg.getpixel((2, 2)) == (255, 255, 255)


async def test_the_first_preview_of_an_edit_is_the_given_picture(backend: SceneBackend, plain: Image) -> None:
    taken, final = await previews(backend, "add a dog", 3, size=None, images=(plain,))
    assert pixels(taken[0]).getextrema() == ((150, 150),) * 3
    blurred, sharper = [difference(pixels(image), pixels(final)) for image in taken[1:]]
    assert blurred > sharper > 0


async def test_a_damaged_or_oversized_picture_is_refused(plain: Image) -> None:
    noise = PIL.Image.frombytes("RGB", (64, 64), Random(1).randbytes(64 * 64 * 3))
    data = as_image(noise).data
    data = data[:-5000] + data[-1000:]
    damaged = read_image(data, max_bytes=len(data), max_pixels=4096)
    for image, code in ((damaged, "image_parse_error"), (plain, "image_too_large")):
        with pytest.raises(ImageError) as caught:
            await paint(SceneBackend(max_pixels=10_000), CAT, "64x64", images=(image,))
        assert caught.value.code == code
