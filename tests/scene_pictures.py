"""Drawing with the offline backend, and measuring what it drew."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import PIL.Image
from imagecall.middleware.backends.base import Image, ImageRequest
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.images import encode_image, read_image
from PIL import ImageChops, ImageStat

CAT = "a red cat"


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


async def previews(
    backend: SceneBackend, prompt: str, count: int, **options: Any
) -> tuple[list[Image], Image]:
    taken: list[Image] = []

    async def take(image: Image) -> None:
        taken.append(image)

    request = ImageRequest(prompt, partial_images=count, **{"size": "128x128", **options})
    return taken, await backend.generate(request, take)
