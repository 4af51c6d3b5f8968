"""The air of the offline scene: its canvas, the skies with what hangs in them, and what falls from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from PIL import Image, ImageChops, ImageColor, ImageDraw

__all__ = [
    "RGB",
    "SKIES",
    "Land",
    "Point",
    "Sky",
    "gradient",
    "mix",
    "paint_falling",
    "paint_sky",
    "rgb",
    "studio",
]

RGB = tuple[int, int, int]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sky:
    """The air of a landscape.

    Attributes:
        stops: its colours, from the zenith down to the horizon.
        light: what this light multiplies everything by.
        haze: the colour that distance fades into.
        disc: `sun`, `low sun`, `moon` or nothing.
        clouds: how many; more than four hang together as one cover.
        cloud: their colour.
        stars: how many.
        falling: `rain`, `snow`, `fog` or nothing.
    """

    stops: tuple[str, ...]
    light: str = "#ffffff"
    haze: str = "#dceefa"
    disc: str = ""
    clouds: int = 0
    cloud: str = "#ffffff"
    stars: int = 0
    falling: str = ""


SKIES = {
    "day": Sky(("#3f9fe6", "#8fd0f6", "#e3f5ff"), disc="sun", clouds=3),
    "dawn": Sky(
        ("#6d9bd8", "#c9b8dc", "#ffd3b8", "#fff0c9"),
        "#fff0e0",
        "#f6d9cf",
        "low sun",
        clouds=3,
        cloud="#fff1ea",
    ),
    "sunset": Sky(
        ("#37286b", "#8a3f86", "#e4617a", "#ff9d5c", "#ffd684"),
        light="#e2a9b4",
        haze="#d97f8f",
        disc="low sun",
        clouds=3,
        cloud="#f7a08c",
    ),
    "night": Sky(
        ("#0a1033", "#18265c", "#3c4f92"), "#6f7fb8", "#34467f", "moon", clouds=2, cloud="#3a4a84", stars=90
    ),
    "storm": Sky(
        ("#232833", "#414a5a", "#7a8592"), "#8f98a8", "#6d7784", clouds=6, cloud="#343b49", falling="rain"
    ),
    "rain": Sky(
        ("#6a7d8f", "#99abb9", "#cbd6dd"), "#c3ccd4", "#b5c2cb", clouds=5, cloud="#83929f", falling="rain"
    ),
    "fog": Sky(
        ("#b9c6cf", "#d5dee3", "#eef2f3"), "#d9dfe2", "#e3e9eb", clouds=3, cloud="#e8edef", falling="fog"
    ),
    "winter": Sky(("#7fb4dc", "#bcdaee", "#f1f8fc"), "#eef4fb", "#e4f0f8", clouds=3, falling="snow"),
    "space": Sky(("#05060f", "#0e0b2e", "#231250"), haze="#2a1d5a", stars=130),
    "underwater": Sky(("#5fd3e6", "#1f93bd", "#0d5590", "#0a3568"), "#e2f4ff", "#2f8fb8"),
    "indoor": Sky(("#f0dcbb", "#f6e7cc", "#fbf2de"), haze="#f2dfc0"),
}


def studio(colour: str) -> Sky:
    """Make the plain backdrop of one colour."""
    r, g, b = mix(rgb(colour), (255, 255, 255), 0.28)
    return Sky((colour, f"#{r:02x}{g:02x}{b:02x}"))


class Land:
    """A landscape in the making. Its geometry is told in fractions of the width and the height."""

    def __init__(self, picture: Image.Image, sky: Sky, rng: Random) -> None:
        self.picture, self.draw = picture, ImageDraw.Draw(picture)
        self.sky, self.rng = sky, rng
        self.width, self.height = picture.size
        self.unit = min(picture.size)
        self.squeeze = self.unit / self.width
        self.disc_x = 0.5

    def at(self, x: float, y: float) -> Point:
        """Turn fractions into pixels."""
        return x * self.width, y * self.height

    def lit(self, colour: str, distance: float = 0.0) -> RGB:
        """Tell a colour as this light shows it, faded into the haze by the distance (0 near, 1 gone)."""
        r, g, b = (p * q // 255 for p, q in zip(rgb(colour), rgb(self.sky.light), strict=True))
        return mix((r, g, b), rgb(self.sky.haze), distance)

    def polygon(self, points: Sequence[Point], colour: RGB) -> None:
        """Fill a polygon."""
        self.draw.polygon([self.at(*point) for point in points], fill=colour)

    def dot(self, x: float, y: float, radius: float, colour: RGB) -> None:
        """Fill a disc; its radius counts in shorter sides of the picture."""
        cx, cy, r = x * self.width, y * self.height, radius * self.unit
        self.draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=colour)

    def glow(self, x: float, y: float, radius: float, colour: str, strength: float) -> None:
        """Lighten a round place, most in its middle."""
        side = max(2, round(2 * radius * self.unit))
        left, top = round(x * self.width - side / 2), round(y * self.height - side / 2)
        fall = [round(max(0.0, 255 - 1.42 * v) * strength) for v in range(256)]
        mask = Image.radial_gradient("L").point(fall).resize((side, side))
        self.picture.paste(rgb(colour), (left, top, left + side, top + side), mask)

    def ridge(self, y: float, rise: float, waves: float, colour: RGB) -> None:
        """Fill everything below a rolling line."""
        shifts = [self.rng.uniform(0, math.tau) for _ in range(3)]
        points: list[Point] = [(0, 1.01)]
        for i in range(81):
            turn = i / 80 / self.squeeze * waves * math.pi
            swing = sum(math.sin(turn * k + s) / k for k, s in zip((1, 2.3, 4.1), shifts, strict=True))
            points.append((i / 80, y - rise * swing * self.unit / self.height))
        self.polygon([*points, (1, 1.01)], colour)

    def band(self, top: float, colours: Sequence[str], bottom: float = 1.0) -> None:
        """Lay a level band, shaded downwards."""
        y0, y1 = round(top * self.height), round(bottom * self.height)
        band = gradient(self.width, max(1, y1 - y0), colours)
        self.picture.paste(
            ImageChops.multiply(band, Image.new("RGB", band.size, rgb(self.sky.light))), (0, y0)
        )


def rgb(colour: str) -> RGB:
    """Read `#rrggbb`."""
    r, g, b = ImageColor.getrgb(colour)[:3]
    return r, g, b


def mix(one: RGB, other: RGB, share: float) -> RGB:
    """Blend two colours; the share is the second one's."""
    r, g, b = (round(p + (q - p) * share) for p, q in zip(one, other, strict=True))
    return r, g, b


def gradient(width: int, height: int, stops: Sequence[str]) -> Image.Image:
    """Shade evenly from the first colour at the top to the last at the bottom."""
    colours = [rgb(stop) for stop in stops]
    column = Image.new("RGB", (1, height))
    for y in range(height):
        place = y / max(1, height - 1) * (len(colours) - 1)
        i = min(int(place), len(colours) - 2)
        column.putpixel((0, y), mix(colours[i], colours[i + 1], place - i))
    return column.resize((width, height), Image.Resampling.NEAREST)


def paint_sky(land: Land) -> None:
    """Fill the picture with its sky."""
    land.picture.paste(gradient(land.width, land.height, land.sky.stops))
    if land.sky is SKIES["space"]:
        _nebula(land)
    _stars(land)
    _disc(land)
    _clouds(land)
    if land.sky is SKIES["storm"]:
        _lightning(land)
    if land.sky is SKIES["indoor"]:
        _window(land)


def _nebula(land: Land) -> None:
    for colour, strength in (("#6a3fc0", 0.5), ("#2f6fd0", 0.4)):
        land.glow(land.rng.random(), land.rng.random(), land.rng.uniform(0.4, 0.6), colour, strength)


def _stars(land: Land) -> None:
    for i in range(land.sky.stars):
        x, y, size = land.rng.random(), land.rng.random() ** 1.2, land.rng.random() ** 3
        land.dot(x, y, 0.0013 + 0.0032 * size, mix((150, 165, 225), (255, 252, 235), land.rng.random()))
        if i % 30 == 7:
            land.glow(x, y, 0.03, "#cfd8ff", 0.5)


def _disc(land: Land) -> None:
    land.disc_x = x = land.rng.choice((0.2, 0.24, 0.76, 0.8))
    if land.sky.disc == "sun":
        land.glow(x, 0.19, 0.3, "#fffbe0", 0.8)
        land.dot(x, 0.19, 0.072, (255, 240, 150))
    elif land.sky.disc == "low sun":
        land.disc_x = x = 0.5 + (x - 0.5) * 0.55
        land.glow(x, 0.5, 0.55, "#ffe9a8", 0.75)
        land.dot(x, 0.5, 0.115, (255, 243, 196))
    elif land.sky.disc == "moon":
        land.glow(x, 0.2, 0.26, "#b9c8ff", 0.5)
        land.dot(x, 0.2, 0.08, (250, 246, 222))
        for dx, dy, r in ((-30, -20, 16), (25, 20, 22), (15, -35, 10), (-25, 35, 12)):
            cx, cy = x + dx / 1000 * land.squeeze, 0.2 + dy / 1000 * land.unit / land.height
            land.dot(cx, cy, r / 1000, (232, 226, 198))


def _clouds(land: Land) -> None:
    cover = land.sky.clouds > 4
    for i in range(land.sky.clouds):
        x = (i + land.rng.uniform(0.1, 0.9)) / land.sky.clouds
        y = land.rng.uniform(-0.04, 0.07) if cover else land.rng.uniform(0.1, 0.36)
        _cloud(land, x, y, land.rng.uniform(0.09, 0.13) * (1.5 if cover else 1.25 - y), cover=cover)


def _cloud(land: Land, x: float, y: float, size: float, *, cover: bool) -> None:
    """Heap discs on a flat base; a cover hangs upside down from the top."""
    wide, high = max(2, round(size * 4 * land.unit)), max(2, round(size * 1.5 * land.unit))
    mask = Image.new("L", (wide, high))
    draw = ImageDraw.Draw(mask)
    for cx, swell in ((0.16, 0.32), (0.34, 0.52), (0.56, 0.7), (0.76, 0.46), (0.88, 0.28)):
        r = swell * land.rng.uniform(0.88, 1.1)
        draw.ellipse((cx * wide - r * high, high * (1 - r), cx * wide + r * high, high * (1 + r)), fill=225)
    colour, top = rgb(land.sky.cloud), y * land.height - high / 2
    if cover:
        mask = mask.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        colour, top = mix(colour, (0, 0, 0), land.rng.uniform(0, 0.35)), y * land.height - high / 8
    land.picture.paste(colour, (round(x * land.width - wide / 2), round(top)), mask)


def _lightning(land: Land) -> None:
    x = land.rng.choice((0.14, 0.22, 0.78, 0.86))
    land.glow(x, 0.34, 0.3, "#e8ecff", 0.55)
    bolt = ((0, 0), (50, 0), (20, 130), (60, 130), (-45, 360), (-10, 190), (-50, 190))
    land.polygon([(x + dx / 1000 * land.squeeze, 0.2 + dy / 1000) for dx, dy in bolt], (255, 246, 190))


def _window(land: Land) -> None:
    """Let some day into the room."""
    wide, x, y, low = 0.3 * land.squeeze, land.rng.choice((0.07, 0.93 - 0.3 * land.squeeze)), 0.1, 0.47
    edge = 0.012 * land.squeeze
    land.polygon([(x, y), (x + wide, y), (x + wide, low), (x, low)], (255, 253, 247))
    across, down = round((wide - 2 * edge) * land.width), round(0.34 * land.height)
    pane = gradient(max(1, across), max(1, down), SKIES["day"].stops)
    view = Land(pane, SKIES["day"], land.rng)
    _clouds(view)
    view.ridge(0.8, 0.06, 0.9, view.lit("#7fc070", 0.2))
    land.picture.paste(pane, (round((x + edge) * land.width), round((y + 0.015) * land.height)))
    middle = x + wide / 2
    cross = ((middle - edge / 3, y, middle + edge / 3, low), (x, 0.28, x + wide, 0.288))
    for left, top, right, bottom in cross:
        land.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], (255, 253, 247))
    sill = [(x - edge, low), (x + wide + edge, low), (x + wide + edge, low + 0.02), (x - edge, low + 0.02)]
    land.polygon(sill, (226, 205, 170))


def paint_falling(picture: Image.Image, sky: Sky, rng: Random) -> None:
    """Let rain, snow or fog come down over everything."""
    veil = Image.new("L", (picture.width * 2, picture.height * 2), 80 if sky.falling == "fog" else 0)
    draw, unit = ImageDraw.Draw(veil), min(veil.size)
    for _ in range(110):
        x, y, size = rng.random() * veil.width, rng.random() * veil.height, rng.random()
        if sky.falling == "rain":
            long = (0.03 + 0.03 * size) * unit
            draw.line((x, y, x - 0.3 * long, y + long), fill=150, width=max(1, round(0.003 * unit)))
        elif sky.falling == "snow":
            r = (0.002 + 0.006 * size**2) * unit
            draw.ellipse((x - r, y - r, x + r, y + r), fill=245)
    if sky.falling:
        picture.paste((222, 232, 242) if sky.falling == "rain" else (250, 252, 255), (0, 0), veil.reduce(2))
