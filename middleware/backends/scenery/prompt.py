"""Reading a prompt for the offline scene: known words from left to right, no grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from .words import COLOURS, GROUNDS, SKIES, SPRITES, Sprite, find_sprite

__all__ = ["Figure", "Scene", "read_prompt"]

MAX_FIGURES = 6

_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "pair": 2, "couple": 2, "both": 2, "three": 3,
    "few": 3, "some": 3, "trio": 3, "four": 4, "several": 4, "herd": 4, "group": 4, "five": 5, "flock": 5,
    "six": 6, "seven": 6, "eight": 6, "nine": 6, "ten": 6, "dozen": 6, "many": 6,
}  # fmt: skip

# Where a number or a colour that still looks for its noun gives up.
_BOUNDARIES = {
    ".", ";", "the", "with", "in", "on", "at", "and", "to", "from", "by", "near", "behind", "beside", "under",
    "over", "above", "into", "is", "are", "it", "its", "that", "which", "colour", "color", "tones", "please",
}  # fmt: skip
_TWO_COLOURS = re.compile(r"\b({0}) and (?:{0})\b".format("|".join(COLOURS)))
_NEGATIONS = {"no", "without"}
_LIFTS = {"over", "above", "flying", "floating", "soaring"}
_RIDES = {"riding", "rides"}

# The sky and the ground that belong together where the prompt names only one of them.
_HOMES = {"night": ("night", "grass"), "space": ("space", "none"), "underwater": ("underwater", "seabed")}
_AIRS = {"snow": "winter", "seabed": "underwater", "table": "indoor", "room": "indoor", "moonscape": "space"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A sprite as the prompt wants it.

    Attributes:
        sprite: what it is.
        count: how many, 1–6.
        colour: what to dye it in, `#rrggbb`.
        flying: whether it is up in the air, whatever it is.
        riding: whether it sits on the next figure.
        definite: whether it was called `the …`: in an edit, it is there already.
    """

    sprite: Sprite
    count: int = 1
    colour: str | None = None
    flying: bool = False
    riding: bool = False
    definite: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """What to draw.

    Attributes:
        sky: the one that the prompt names.
        ground: the one that the prompt names.
        figures: what stands, flies and swims, at most six in all.
        backdrop: the colour of "a … background", which replaces sky and ground.
        tint: a colour that stood alone: "make it blue".
    """

    sky: str | None = None
    ground: str | None = None
    figures: tuple[Figure, ...] = ()
    backdrop: str | None = None
    tint: str | None = None

    def setting(self) -> tuple[str, str]:
        """Settle on a sky and a ground: the named ones, else the first figure's home, else a meadow."""
        first = self.figures[0].sprite.home if self.figures else "grass"
        home_sky, home = _HOMES.get(first, (None, first))
        sky, ground = self.sky, self.ground
        if self.backdrop:
            return "day", "plain"
        if ground is None and sky in _HOMES:
            ground = home if sky == "night" else _HOMES[sky][1]
        elif ground is None:
            sky, ground = sky or home_sky, home
        elif ground == "none" and sky != "space" and any(f.sprite.place != "sky" for f in self.figures):
            ground = home  # a sky above things that stand
        if ground == "sea":
            standing = [f.sprite.size for f in self.figures if f.sprite.place == "ground" and not f.flying]
            ground = "sea" if not standing else "coast" if max(standing) >= 1.4 else "beach"
        if sky == "winter" and ground == "grass":
            ground = "snow"
        if "underwater" in (sky, _AIRS.get(ground)):
            return "underwater", "seabed"
        return sky or _AIRS.get(ground, "day"), ground


@dataclass(slots=True)
class _Reader:
    """Remembers the number and the colour that wait for their noun."""

    figures: list[Figure] = field(default_factory=list)
    sky: str | None = None
    ground: str | None = None
    backdrop: str | None = None
    tint: str | None = None
    colour: str | None = None
    count: int | None = None
    definite: bool = False
    negated: bool = False

    def phrase(self, phrase: str) -> bool:
        """Take a phrase, if it names a thing or a setting."""
        sprite, plural = find_sprite(phrase)
        sky, ground = SKIES.get(phrase), GROUNDS.get(phrase)
        if phrase in ("background", "backdrop") and self.colour:
            self.backdrop = self.colour
        elif not (sprite or sky or ground):
            return False
        elif self.negated:
            pass
        elif sprite and not (sky or ground):
            self.thing(sprite, plural=plural)
        else:
            self.sky = self.sky or sky
            self.ground = ground if self.ground in (None, "none") and ground else self.ground
        self.colour, self.count, self.definite, self.negated = None, None, False, False
        return True

    def thing(self, sprite: Sprite, *, plural: bool) -> None:
        """Take a noun; a bare one that was there before is the same thing again ("cup of coffee")."""
        known = any(figure.sprite is sprite for figure in self.figures)
        if known and not (self.count or self.colour or plural):
            return
        count = self.count or 1
        if plural and count == 1:
            count = 3
        self.figures.append(Figure(sprite, count, self.colour, definite=self.definite))

    def word(self, word: str, following: str) -> None:
        """Take a word that is no noun: a number, a colour, a hinge of the sentence."""
        alone = following in _BOUNDARIES or not following
        if word == "orange" and alone and self.count:
            self.thing(SPRITES["tangerine"], plural=False)
        elif word in COLOURS and alone:
            self.tint, self.colour = self.colour or COLOURS[word], None
        elif word in COLOURS:
            self.colour = self.colour or COLOURS[word]
        elif word in _NEGATIONS:
            self.negated = True
        elif word in _NUMBERS or (word.isdecimal() and len(word) < 3):
            self.count = _NUMBERS.get(word) or min(int(word), MAX_FIGURES)
        if self.figures and word in _LIFTS | _RIDES:
            last = self.figures[-1]
            self.figures[-1] = replace(last, flying=word in _LIFTS, riding=word in _RIDES)
        if word in _BOUNDARIES:
            self.colour, self.count, self.definite = None, None, word == "the"

    def scene(self) -> Scene:
        """Settle on what is drawn: at most six figures, at least one of each kind as long as that fits."""
        figures = self.figures[:MAX_FIGURES]
        if self.tint and figures and not figures[-1].colour:
            figures[-1] = replace(figures[-1], colour=self.tint)
        while sum(figure.count for figure in figures) > MAX_FIGURES:
            most = max(range(len(figures)), key=lambda i: figures[i].count)
            figures[most] = replace(figures[most], count=figures[most].count - 1)
        return Scene(self.sky, self.ground, tuple(figures), self.backdrop, self.tint)


def read_prompt(prompt: str) -> Scene:
    """Find the things, numbers, colours and settings of a prompt; unknown words are passed over."""
    text = _TWO_COLOURS.sub(r"\1", prompt.lower().replace("'s", ""))  # a glyph takes one dye
    words = re.findall(r"[^\W\d_]+|\b\d+\b|[.;]", text)
    reader, i = _Reader(), 0
    while i < len(words):
        for length in (3, 2, 1):
            if i + length <= len(words) and reader.phrase(" ".join(words[i : i + length])):
                i += length
                break
        else:
            reader.word(words[i], words[i + 1] if i + 1 < len(words) else "")
            i += 1
    return reader.scene()
