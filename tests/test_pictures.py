"""Getting the pictures of an edit: from the request, the store, a URL, the workspace."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from imagecall.events.pictures import Picture
from imagecall.middleware import images
from imagecall.middleware.backends.base import Image, ImageError
from imagecall.middleware.edits import pictures as module
from imagecall.middleware.edits.fetcher import Fetcher
from imagecall.middleware.edits.pictures import Pictures, PictureStore
from imagecall.middleware.edits.workspace import Workspace
from loopback import answering, raw_server
from picture_files import drawn, encoded, noise
from waiting import no_hanging

PNG, JPEG, WEBP, GIF = (encoded(drawn(), output_format) for output_format in ("png", "jpeg", "webp", "gif"))


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Kept:
    """A store that has some pictures."""

    def __init__(self, pictures: Mapping[str, bytes]) -> None:
        self.pictures = pictures
        self.asked: list[str] = []

    async def picture(self, id: str) -> bytes | None:  # noqa: A002  the wire's own name
        self.asked.append(id)
        return self.pictures.get(id)


async def local(host: str, _: int) -> list[str]:
    return [host]


def pictures(
    store: PictureStore | None = None,
    *,
    fetches: bool = False,
    workspace: Path | None = None,
    max_bytes: int = 1 << 22,
    max_pixels: int = 1 << 20,
) -> Pictures:
    fetcher = Fetcher(("*:*",), max_bytes=max_bytes, resolve=local, is_public="127.0.0.1".__eq__)
    return Pictures(
        store,
        fetcher if fetches else None,
        None if workspace is None else Workspace(workspace, max_bytes=max_bytes),
        max_bytes=max_bytes,
        max_pixels=max_pixels,
    )


async def resolved(pictures: Pictures, *wanted: Picture) -> list[bytes]:
    with no_hanging() as deadline:
        async with deadline:
            return [image.data for image in await pictures.resolve(wanted)]


async def refused(pictures: Pictures, *wanted: Picture) -> tuple[str, str]:
    with pytest.raises(ImageError) as caught:
        await resolved(pictures, *wanted)
    return caught.value.code, caught.value.message


async def test_nothing_wanted_nothing_got() -> None:
    assert await resolved(pictures()) == []


@pytest.mark.parametrize(
    ("data", "output_format", "mime"),
    [(PNG, "png", "image/png"), (JPEG, "jpeg", "image/jpg"), (WEBP, "webp", "text/html"), (GIF, "gif", "")],
)
async def test_a_picture_is_measured_by_its_bytes_whatever_it_is_called(
    data: bytes, output_format: str, mime: str
) -> None:
    for given in (text(data), text(data).encode(), f"data:{mime};base64,{text(data)}"):
        (image,) = await pictures().resolve([Picture(data=given)])
        assert image == Image(data, output_format, 48, 32, transparent=image.transparent)


async def test_pictures_come_from_everywhere_in_the_order_asked_for(tmp_path: Path) -> None:
    (tmp_path / "cat.webp").write_bytes(WEBP)
    store = Kept({"ig_1": text(PNG).encode()})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(JPEG)
    async with raw_server(answering(head + JPEG)) as url:
        assert await resolved(
            pictures(store, fetches=True, workspace=tmp_path),
            Picture(url=f"{url}/a.jpeg"),
            Picture(id="ig_1"),
            Picture(path="cat.webp"),
            Picture(id="ig_2", data=text(GIF)),
        ) == [JPEG, PNG, WEBP, GIF]
    assert store.asked == ["ig_1"]


async def test_several_pictures_are_waited_for_at_the_same_time() -> None:
    class Together(Kept):
        """Gives nothing before it was asked for everything."""

        def __init__(self, pictures: Mapping[str, bytes]) -> None:
            super().__init__(pictures)
            self.all_asked = asyncio.Event()

        async def picture(self, id: str) -> bytes | None:  # noqa: A002  the wire's own name
            encoded = await super().picture(id)
            if len(self.asked) == len(self.pictures):
                self.all_asked.set()
            await self.all_asked.wait()
            return encoded

    store = Together({"ig_1": text(PNG).encode(), "ig_2": text(GIF).encode(), "ig_3": text(WEBP).encode()})
    wanted = [Picture(id=id) for id in ("ig_3", "ig_1", "ig_2")]  # noqa: A001  the wire's own name
    assert await resolved(pictures(store), *wanted) == [WEBP, PNG, GIF]


async def test_only_a_large_picture_is_decoded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    decode = images.decode_base64

    def watched(text: str | bytes, *, max_bytes: int) -> bytes:
        threads.append(threading.current_thread())
        return decode(text, max_bytes=max_bytes)

    monkeypatch.setattr(module, "decode_base64", watched)
    large = encoded(noise().resize((700, 600)), "png", compress_level=0)
    assert await resolved(pictures(), Picture(data=text(PNG))) == [PNG]
    assert await resolved(pictures(), Picture(data=text(large))) == [large]
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


# -- pictures that cannot be had -------------------------------------------------------------------

NO_PICTURE = "The data is not a PNG, JPEG, WebP or GIF picture."


@pytest.mark.parametrize("store", [None, Kept({"ig_2": b""})])
async def test_a_picture_that_is_gone_is_told_by_its_id(store: PictureStore | None) -> None:
    assert await refused(pictures(store), Picture(id="ig_1")) == (
        "image_not_found",
        "The picture ig_1 is no longer available and cannot be edited.",
    )


async def test_where_urls_are_not_fetched_none_is() -> None:
    assert await refused(pictures(), Picture(url="https://pictures.example/a.png")) == (
        "image_url_not_allowed",
        "Pictures are not fetched from URLs here.",
    )


async def test_where_there_is_no_workspace_no_file_is_read() -> None:
    assert await refused(pictures(), Picture(path="/etc/passwd")) == (
        "path_not_allowed",
        "There is no workspace to take pictures from.",
    )


async def test_fetcher_and_workspace_say_themselves_what_they_refuse(tmp_path: Path) -> None:
    source = pictures(fetches=True, workspace=tmp_path)
    assert (await refused(source, Picture(url="http://10.0.0.1/a.png")))[0] == "image_url_not_allowed"
    assert (await refused(source, Picture(path="../a.png")))[0] == "path_not_allowed"


@pytest.mark.parametrize("data", ["", "no base64!", "data:image/png,raw", "ünicode", "aGVs@@bG8="])
async def test_what_is_no_base64_is_no_picture(data: str) -> None:
    code, message = await refused(pictures(), Picture(data=data))
    assert code == "invalid_base64_image"
    assert message.startswith("A picture from the user cannot be edited. The ")


@pytest.mark.parametrize("document", [b"<html><img src=x></html>", b"<svg/>", b"%PDF-1.7", b"BM bitmap"])
async def test_only_four_formats_are_pictures_wherever_they_come_from(
    tmp_path: Path, document: bytes
) -> None:
    (tmp_path / "cat.png").write_bytes(document)
    source = pictures(Kept({"ig_1": text(document).encode()}), fetches=True, workspace=tmp_path)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(document)
    async with raw_server(answering(head + document)) as url:
        for wanted, which in (
            (Picture(data=text(document)), "A picture from the user"),
            (Picture(id="ig_1"), "The picture ig_1"),
            (Picture(path="cat.png"), "The picture 'cat.png'"),
            (Picture(url=url), "The picture at the given URL"),
        ):
            expected = ("not_an_image", f"{which} cannot be edited. {NO_PICTURE}")
            assert await refused(source, wanted) == expected


async def test_a_picture_beyond_the_limits_is_refused() -> None:
    assert await refused(pictures(max_bytes=50), Picture(data=text(PNG))) == (
        "image_too_large",
        f"A picture from the user cannot be edited. The picture has {len(PNG)} bytes; max_image allows 50.",
    )
    assert await refused(pictures(max_pixels=48 * 32 - 1), Picture(id="ig_1", data=text(PNG))) == (
        "image_too_large",
        "The picture ig_1 cannot be edited. The picture is 48x32; max_pixels allows 1,535 pixels.",
    )
    assert await resolved(pictures(max_bytes=len(PNG), max_pixels=48 * 32), Picture(data=text(PNG))) == [PNG]


async def test_a_mask_comes_behind_the_pictures_and_is_told_from_them() -> None:
    whole = await pictures().resolve([Picture(data=text(PNG))], Picture(data=text(WEBP)))
    assert [image.data for image in whole] == [PNG, WEBP]
    with pytest.raises(ImageError) as caught:
        await pictures().resolve([Picture(data=text(PNG))], Picture(data=text(b"<svg/>")))
    assert (caught.value.code, caught.value.message) == (
        "not_an_image",
        f"The mask cannot be used. {NO_PICTURE}",
    )


async def test_one_bad_picture_stops_the_others() -> None:
    stopped = asyncio.Event()
    begun = asyncio.Event()

    class Slow(Kept):
        async def picture(self, id: str) -> bytes | None:  # noqa: A002  the wire's own name
            if id == "ig_gone":
                await begun.wait()
                return None
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return None

    assert (await refused(pictures(Slow({})), Picture(id="ig_1"), Picture(id="ig_gone")))[
        0
    ] == "image_not_found"
    assert stopped.is_set()


async def test_a_failure_of_our_own_comes_out_as_it_is() -> None:
    class Broken(Kept):
        async def picture(self, id: str) -> bytes | None:  # noqa: A002  the wire's own name
            raise RuntimeError(id)

    with pytest.raises(RuntimeError, match=r"^ig_1$"):
        await resolved(pictures(Broken({})), Picture(id="ig_1"))
