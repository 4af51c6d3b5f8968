"""What the offline scene draws: landscapes, figures, colours, weather."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import PIL.Image
import pytest
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.backends.scenery.figures import Glyphs, Placed, dye, layout, set_down
from imagecall.middleware.backends.scenery.ground import GROUNDS, paint_land
from imagecall.middleware.backends.scenery.land import SKIES, paint_falling, studio
from imagecall.middleware.backends.scenery.prompt import read_prompt
from imagecall.middleware.backends.scenery.words import SPRITES
from PIL import ImageChops, ImageStat, features
from scene_pictures import CAT, difference, paint, pixels, reddish, share


@pytest.fixture(scope="module")
def backend() -> SceneBackend:
    return SceneBackend()


@pytest.fixture(scope="module")
def glyphs() -> Glyphs:
    return Glyphs()


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
    too_wide = [glyph for glyph, picture in pictures.items() if picture.width > 66 and glyph != "lighthouse"]
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
            assert min(b - a for a, b in pairwise(xs)) > 0.08


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
