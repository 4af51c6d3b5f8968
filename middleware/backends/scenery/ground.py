"""The grounds of the offline scene, in flat layers from far to near, and where things stand on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from PIL import Image, ImageDraw

from .land import RGB, Land, Point, Sky, mix, paint_sky

__all__ = ["GROUNDS", "Ground", "paint_land"]


@dataclass(frozen=True, slots=True)
class Ground:
    """What is below the sky.

    Attributes:
        paint: paints it.
        near: where small things stand, as a fraction of the height.
        far: where big things stand.
        solid: whether anything can stand there at all.
        wet: whether boats swim on it.
    """

    paint: Callable[[Land], None]
    near: float = 0.89
    far: float = 0.8
    solid: bool = True
    wet: bool = False


def paint_land(size: tuple[int, int], sky: Sky, ground: str, seed: str, smooth: int = 2) -> Image.Image:
    """Paint a landscape without figures.

    Args:
        size: width and height in pixels.
        sky: the air above it.
        ground: a name of `GROUNDS`.
        seed: the same one gives the same landscape.
        smooth: how many times bigger it is painted, for smooth edges.
    """
    picture = Image.new("RGB", (size[0] * smooth, size[1] * smooth))
    land = Land(picture, sky, Random(seed))  # noqa: S311  a picture, not a secret  # nosec B311
    paint_sky(land)
    GROUNDS[ground].paint(land)
    return picture.reduce(smooth) if smooth > 1 else picture


def _hills(land: Land, far: str, middle: str, near: str) -> None:
    land.ridge(0.6, 0.035, 0.9, land.lit(far, 0.5))
    land.ridge(0.67, 0.028, 0.7, land.lit(middle, 0.16))
    land.ridge(0.76, 0.02, 0.5, land.lit(near))


def _sprinkle(land: Land, count: int, top: float, radius: float, *colours: str) -> None:
    """Scatter dots over the foreground, bigger ones nearer."""
    for _ in range(count):
        y = land.rng.uniform(top, 0.985)
        size = radius * (0.5 + 0.7 * (y - top) / (1 - top))
        land.dot(land.rng.random(), y, size, land.lit(land.rng.choice(colours)))


def _flowers(land: Land) -> None:
    _sprinkle(land, 26, 0.82, 0.009, "#ffffff", "#ffe45c", "#ff9bb5", "#fff3c9")


def _grass(land: Land) -> None:
    _hills(land, "#8cc486", "#74bb5c", "#5aa845")
    _flowers(land)


def _autumn(land: Land) -> None:
    _hills(land, "#e0b070", "#d98f45", "#c9772f")
    _sprinkle(land, 40, 0.8, 0.01, "#e8552f", "#f6b03a", "#a8481f", "#ffd25a")


def _mountains(land: Land) -> None:
    for i in range(6):
        x = (i + land.rng.uniform(0.2, 0.8)) / 6
        _peak(land, (x, 0.62), land.rng.uniform(0.16, 0.28), 0.16, "#7f93b8", 0.55)
    x = land.rng.choice((0.36, 0.42, 0.58, 0.64))
    _peak(land, (x - 0.34, 0.68), land.rng.uniform(0.2, 0.28), 0.26, "#6c80aa", 0.25)
    _peak(land, (x + 0.36, 0.68), land.rng.uniform(0.2, 0.28), 0.26, "#6c80aa", 0.25)
    _peak(land, (x, 0.68), 0.46, 0.36, "#60739c", 0.06)
    land.ridge(0.7, 0.02, 0.9, land.lit("#5d9a63", 0.1))
    _conifers(land, 0.72, 26, 0.05, "#3d7a56", 0.05)
    land.ridge(0.78, 0.015, 0.5, land.lit("#5aa845"))
    _flowers(land)


def _peak(land: Land, foot: Point, rise: float, half: float, colour: str, distance: float) -> None:
    """Raise one mountain: a lit flank, a shaded flank, a cap of snow with a ragged hem."""
    x, top, base = foot[0], foot[1] - rise, 0.8
    lean = land.rng.uniform(-0.12, 0.12) * half
    half *= (base - top) / rise
    rock = land.lit(colour, distance)
    land.polygon([(x, top), (x - half, base), (x + half, base)], rock)
    edge = [(x + lean, top + 0.3 * rise), (x - lean, top + 0.62 * rise), (x + 2 * lean, base)]
    land.polygon([(x, top), *edge, (x + half, base)], mix(rock, (25, 30, 70), 0.24))
    cap, slope = 0.3 * rise, half / (base - top)
    hem = ((-1, 1), (-0.5, 0.72), (-0.22, 1.02), (0.1, 0.68), (0.36, 1.0), (0.56, 0.74), (1, 1))
    snow = [(x + u * cap * slope, top + v * cap) for u, v in hem]
    land.polygon([(x, top), *snow], land.lit("#f7fbff", distance * 0.5))
    shade = [(x, top), (x + lean * 0.5, top + 0.75 * cap), *snow[3:]]
    land.polygon(shade, land.lit("#ccdcf0", distance * 0.5))


def _conifers(land: Land, y: float, count: int, size: float, colour: str, distance: float) -> None:
    for i in range(count):
        x = (i + land.rng.random()) / count
        high = size * land.rng.uniform(0.7, 1.3) * land.unit / land.height
        half, foot = 0.3 * high * land.height / land.width, y + land.rng.uniform(0, 0.02)
        needles = mix(land.lit(colour, distance), (12, 40, 40), land.rng.uniform(0, 0.16))
        for k in range(3):
            low, tip, wide = foot - k * high * 0.27, foot - (0.48 + k * 0.27) * high, half * (1 - 0.25 * k)
            land.polygon([(x - wide, low), (x + wide, low), (x, tip)], needles)


def _forest(land: Land) -> None:
    land.ridge(0.6, 0.03, 0.9, land.lit("#6ea878", 0.45))
    _conifers(land, 0.63, 22, 0.2, "#4c8a63", 0.42)
    land.ridge(0.66, 0.01, 0.9, land.lit("#4c8a63", 0.25))
    _conifers(land, 0.71, 15, 0.32, "#357550", 0.15)
    land.ridge(0.72, 0.015, 0.6, land.lit("#5fa34f"))
    land.ridge(0.83, 0.012, 0.5, land.lit("#4f9445"))
    _flowers(land)


def _snow(land: Land) -> None:
    land.ridge(0.58, 0.04, 0.9, land.lit("#c4d8ea", 0.4))
    _conifers(land, 0.66, 18, 0.13, "#5d8a8c", 0.35)
    land.ridge(0.67, 0.025, 0.7, land.lit("#e3eef7"))
    land.ridge(0.77, 0.018, 0.5, land.lit("#f8fbfe"))


def _desert(land: Land) -> None:
    land.ridge(0.6, 0.05, 0.8, land.lit("#e3b878", 0.4))
    land.ridge(0.68, 0.045, 0.55, land.lit("#e2ac5e", 0.05))
    land.ridge(0.78, 0.03, 0.4, land.lit("#eebd6c"))


def _sea(land: Land) -> None:
    """Lay out the water; a low sun or a moon glitters on it."""
    land.band(0.6, ("#7cc8e6", "#2f8fc9", "#1b66a6"))
    glitter = {"low sun": (255, 226, 166), "moon": (223, 230, 255)}.get(land.sky.disc)
    for i in range(60):
        y = 0.62 + 0.37 * land.rng.random() ** 1.3
        long = (0.02 + 0.3 * (y - 0.6)) * land.squeeze
        x, colour = land.rng.random(), land.lit("#a5d8ee", 0.15)
        if glitter and i % 2:
            x, colour = land.disc_x + land.rng.gauss(0, 0.03 + 0.1 * (y - 0.6)) - long / 2, glitter
        thick = 0.0018 + 0.006 * (y - 0.6)
        land.polygon([(x, y), (x + long / 2, y - thick), (x + long, y), (x + long / 2, y + thick)], colour)


def _beach(land: Land) -> None:
    _sea(land)
    shore = land.rng.getstate()
    for y, colour in ((0.785, "#f4fbff"), (0.8, "#d9bc86"), (0.815, "#f2d9a0")):
        land.rng.setstate(shore)  # foam, wet sand and dry sand follow one line
        land.ridge(y, 0.014, 0.5, land.lit(colour))
    _sprinkle(land, 50, 0.84, 0.003, "#d9bc86")


def _coast(land: Land) -> None:
    """Put a headland into the sea."""
    _sea(land)
    for y, colour, reach in ((0.74, "#5f6b5a", 0.62), (0.8, "#4f5850", 0.8), (0.87, "#6f9a58", 1.2)):
        steps = [i / 5 for i in range(-5, 6)]
        edge = [(0.5 + reach * u, y + 0.42 * abs(u) ** 1.6 + land.rng.uniform(-0.012, 0.012)) for u in steps]
        land.polygon([(edge[0][0], 1.2), *edge, (edge[-1][0], 1.2)], land.lit(colour))


def _city(land: Land) -> None:
    for base, count, colour, distance in ((0.76, 13, "#6c7f9c", 0.5), (0.8, 9, "#4d5e7c", 0.12)):
        for i in range(-1, count + 1):
            _tower(land, i / count, base, 1 / count, land.lit(colour, distance))
    land.ridge(0.8, 0.004, 0.5, land.lit("#5c9a52"))
    _lane(land, 0.86, 1.0)


def _tower(land: Land, x: float, base: float, wide: float, colour: RGB) -> None:
    lamps = land.sky.stars > 0
    high = land.rng.uniform(0.14, 0.42)
    x += land.rng.uniform(-0.2, 0.2) * wide
    wide *= land.rng.uniform(0.75, 1.05)
    top, low = base - high, base + 0.05
    land.polygon([(x, low), (x, top), (x + wide, top), (x + wide, low)], colour)
    pane = mix(colour, (255, 226, 140), 0.85) if lamps else mix(colour, (255, 255, 255), 0.28)
    for row in range(int(high / 0.035)):
        for column in range(4):
            if land.rng.random() < (0.45 if lamps else 0.7):
                left, sill = x + wide * (0.14 + 0.2 * column), top + 0.018 + row * 0.035
                corners = (*land.at(left, sill), *land.at(left + wide * 0.1, sill + 0.015))
                land.draw.rectangle(corners, fill=pane)


def _lane(land: Land, top: float, bottom: float) -> None:
    """Lay a road across, with its dashes."""
    land.band(top, ("#6d737c", "#5a6068"), bottom)
    for i in range(-1, 7):
        x, y = i / 6 + 0.03, (top + bottom) / 2
        dash = [(x, y), (x + 0.08, y), (x + 0.075, y + 0.01), (x - 0.005, y + 0.01)]
        land.polygon(dash, land.lit("#f5efdc"))


def _road(land: Land) -> None:
    _hills(land, "#8cc486", "#74bb5c", "#5aa845")
    _lane(land, 0.8, 0.95)


def _table(land: Land) -> None:
    land.band(0.68, ("#c98a54", "#b57642", "#a5683a"))
    land.band(0.68, ("#dfa76e", "#d79d64"), 0.695)
    for _ in range(16):
        x, y = land.rng.uniform(-0.2, 1), land.rng.uniform(0.72, 0.98)
        long = land.rng.uniform(0.1, 0.4)
        grain = [(x, y), (x + long / 2, y - 0.002), (x + long, y), (x + long / 2, y + 0.002)]
        land.polygon(grain, land.lit("#96592f"))


def _room(land: Land) -> None:
    land.band(0.72, ("#bf8a5c", "#d9a878"))
    land.band(0.7, ("#fffaf0", "#f3e6cf"), 0.725)
    for i in range(-4, 15):
        far, near = i / 10, 0.5 + (i / 10 - 0.5) * 1.9
        land.polygon([(far, 0.725), (far + 0.003, 0.725), (near + 0.006, 1), (near, 1)], land.lit("#a87548"))


def _seabed(land: Land) -> None:
    for x in (0.18, 0.42, 0.7, 0.92):
        ray, wide = Image.new("L", land.picture.size), land.rng.uniform(0.05, 0.1)
        corners = ((x, -0.02), (x + wide, -0.02), (x + wide - 0.1, 0.85), (x - wide - 0.16, 0.85))
        ImageDraw.Draw(ray).polygon([land.at(*corner) for corner in corners], fill=22)
        land.picture.paste((255, 255, 255), (0, 0), ray)
    land.ridge(0.82, 0.03, 0.7, land.lit("#3f86a0", 0.3))
    for _ in range(9):
        _weed(land, land.rng.random(), land.rng.uniform(0.84, 0.93), land.rng.uniform(0.12, 0.3))
    land.ridge(0.89, 0.018, 0.5, land.lit("#d8c490"))
    for _ in range(22):
        x, y, r = land.rng.random(), land.rng.uniform(0.05, 0.8), land.rng.uniform(0.004, 0.013)
        land.dot(x, y, r, (170, 225, 240))
        land.dot(x, y, r * 0.72, (90, 180, 212))


def _weed(land: Land, x: float, foot: float, high: float) -> None:
    phase, half = land.rng.uniform(0, math.tau), 0.011 * land.squeeze
    sway = [x + 0.018 * land.squeeze * math.sin(phase + t * 0.7) for t in range(12)]
    left = [(sx - half * (1 - t / 12), foot - high * t / 11) for t, sx in enumerate(sway)]
    right = [(sx + half * (1 - t / 12), foot - high * t / 11) for t, sx in enumerate(sway)]
    land.polygon([*left, *reversed(right)], land.lit(land.rng.choice(("#2f8f6b", "#3aa578", "#257a66"))))


def _moonscape(land: Land) -> None:
    land.ridge(0.66, 0.02, 0.9, land.lit("#777c8c"))
    land.ridge(0.74, 0.015, 0.5, land.lit("#a3a7b5"))
    for _ in range(11):
        x, y = land.at(land.rng.random(), land.rng.uniform(0.79, 0.97))
        r = (0.018 + 0.3 * (y / land.height - 0.75) * land.rng.uniform(0.3, 0.7)) * land.unit
        land.draw.ellipse((x - r, y - 0.3 * r, x + r, y + 0.3 * r), fill=land.lit("#7f8494"))
        land.draw.ellipse((x - r, y - 0.18 * r, x + 0.94 * r, y + 0.3 * r), fill=land.lit("#8f94a4"))


def _nothing(land: Land) -> None:
    """Leave the sky as it is."""


GROUNDS = {
    "grass": Ground(_grass),
    "mountains": Ground(_mountains),
    "sea": Ground(_sea, near=0.84, wet=True),
    "beach": Ground(_beach, near=0.9, far=0.85, wet=True),
    "coast": Ground(_coast, near=0.88, far=0.79, wet=True),
    "snow": Ground(_snow),
    "desert": Ground(_desert),
    "city": Ground(_city, near=0.92, far=0.86),
    "road": Ground(_road, near=0.9, far=0.79),
    "forest": Ground(_forest),
    "autumn": Ground(_autumn),
    "table": Ground(_table, near=0.86),
    "room": Ground(_room, near=0.9, far=0.82),
    "seabed": Ground(_seabed, near=0.94, far=0.92),
    "moonscape": Ground(_moonscape),
    "plain": Ground(_nothing, near=0.86, far=0.84),
    "none": Ground(_nothing, solid=False),
}
