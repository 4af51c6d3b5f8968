"""What the places of a result hold, fetched until one of them is a picture."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.mcp_client.reader import PictureReader
from imagecall.middleware.backends.mcp_client.results import Place
from loopback import uvicorn_server
from mcp_servers.shapes import DOT, DOT_BASE64, large_png
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

SVG = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()


class Shelf:
    """Resources by URI; any other one is an error."""

    def __init__(self, **resources: list[str]) -> None:
        self._resources = resources

    async def read(self, uri: str) -> list[str]:
        if uri not in self._resources:
            raise ImageError("There is no such resource.", code="mcp_error")
        return self._resources[uri]


EMPTY = Shelf()


def reader(**options: Any) -> PictureReader:
    defaults: dict[str, Any] = {"base": None, "headers": {}, "origins": (), "files_dir": None}
    return PictureReader(**{**defaults, "max_bytes": 1 << 20, **options})


async def read(
    places: Iterable[Place], shelf: Shelf = EMPTY, **options: Any
) -> tuple[bytes | None, str | None]:
    """Read with a reader of its own; give the picture's bytes, or else the problem's code."""
    one = reader(**options)
    image, problem = await one.read(places, shelf, lambda: None)
    await one.close()
    return image and image.data, problem and problem.code


async def test_the_first_place_that_holds_a_picture_is_taken() -> None:
    good, other = Place("base64", DOT_BASE64), Place("base64", base64.b64encode(large_png(0.01)).decode())
    assert await read([good, other]) == (DOT, None)
    assert await read([Place("base64", SVG), Place("base64", "???"), good]) == (DOT, None)
    assert await read([Place("base64", f"data:image/svg+xml;base64,{DOT_BASE64}")]) == (DOT, None)


async def test_of_several_bad_places_the_first_one_is_blamed() -> None:
    assert await read([Place("base64", SVG), Place("base64", "???")]) == (None, "not_an_image")
    assert await read([]) == (None, None)


async def test_a_long_picture_is_refused_before_it_is_decoded() -> None:
    long = base64.b64encode(large_png(2)).decode()
    assert await read([Place("base64", long)]) == (None, "image_too_large")
    assert await read([Place("base64", long)], max_bytes=3_000_000) == (large_png(2), None)


async def test_not_every_place_of_an_endless_result_is_looked_at() -> None:
    places = [Place("base64", SVG)] * 16 + [Place("base64", DOT_BASE64)]
    assert await read(places) == (None, "not_an_image")
    assert await read(places[1:]) == (DOT, None)


async def test_a_resource_is_asked_for() -> None:
    shelf = Shelf(**{"image://dot": [DOT_BASE64], "image://none": []})
    assert await read([Place("resource", "image://dot")], shelf) == (DOT, None)
    assert await read([Place("resource", "image://none")], shelf) == (None, None)
    assert await read([Place("resource", "image://other")], shelf) == (None, "mcp_error")
    assert await read([Place("resource", f"data:image/png;base64,{DOT_BASE64}")]) == (DOT, None)


@pytest_asyncio.fixture
async def gallery() -> AsyncIterator[str]:
    async def answer(request: Request) -> Response:
        return Response(DOT if request.headers.get("x-key") == "k" else b"<html>")

    async with uvicorn_server(Starlette(routes=[Route("/{path:path}", answer)])) as url:
        yield url


async def test_a_url_of_the_server_is_fetched(gallery: str) -> None:
    options = {"base": f"{gallery}/mcp", "headers": {"X-Key": "k"}}
    assert await read([Place("url", f"{gallery}/dot.png")] * 2, **options) == (DOT, None)
    assert await read([Place("resource", f"{gallery}/dot.png")], **options) == (DOT, None)
    both = [Place("url", f"{gallery}/one"), Place("url", f"{gallery}/two")]
    assert await read(both, base=gallery) == (None, "not_an_image")


async def test_a_url_of_somebody_else_is_not() -> None:
    place = Place("url", "http://169.254.169.254/latest")
    assert await read([place], base="http://127.0.0.1:1") == (None, "url_not_allowed")
    assert await read([Place("resource", place.text)]) == (None, "url_not_allowed")


async def test_files_are_read_only_where_a_folder_is_set(tmp_path: Path) -> None:
    (tmp_path / "a kite.png").write_bytes(DOT)
    path = tmp_path / "a kite.png"
    places = [Place("path", str(path))], [Place("path", "a kite.png")], [Place("path", path.as_uri())]
    for place in (*places, [Place("resource", path.as_uri())]):
        assert await read(place, files_dir=tmp_path) == (DOT, None)
    assert await read(places[0]) == (None, None)
    assert await read([Place("resource", path.as_uri())]) == (None, "mcp_error")


async def test_no_file_outside_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    secret = tmp_path / "secret.png"
    secret.write_bytes(DOT)
    (folder / "link.png").symlink_to(secret)
    (folder / "long.png").write_bytes(large_png(2))
    for name in (str(secret), "../secret.png", "link.png", secret.as_uri(), "/no/such.png"):
        assert await read([Place("path", name)], files_dir=folder) == (None, "path_not_allowed"), name
    for name in ("missing.png", "a\0b.png", "."):
        assert await read([Place("path", name)], files_dir=folder) == (None, "file_not_readable")
    assert await read([Place("path", "long.png")], files_dir=folder) == (None, "image_too_large")


@pytest.mark.parametrize("name", ["made.png", "today/made.png"])
async def test_a_link_put_there_after_the_check_is_not_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outside = tmp_path / "made", tmp_path / "outside"
    for one in (folder / "today", outside):
        one.mkdir(parents=True)
    (outside / "made.png").write_bytes(DOT)
    (folder / name).write_bytes(DOT)
    check = Path.resolve

    def check_then_exchange(path: Path) -> Path:
        real = check(path)
        if real.name == "made.png":
            victim = folder / Path(name).parts[0]
            victim.rename(tmp_path / "moved")
            victim.symlink_to(outside / "made.png" if victim.suffix else outside)
        return real

    monkeypatch.setattr(Path, "resolve", check_then_exchange)
    assert await read([Place("path", name)], files_dir=folder) == (None, "file_not_readable")


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


async def test_what_is_no_file_is_not_read_and_stays_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = open_files()
    for name in ("pipe", "folder", ".", "loop"):
        assert await read([Place("path", name)], files_dir=tmp_path) == (None, "file_not_readable")
    assert open_files() == before


async def test_each_place_keeps_the_call_alive() -> None:
    alive: list[None] = []
    image, problem = await reader().read([Place("base64", SVG)] * 3, EMPTY, lambda: alive.append(None))
    assert (image, len(alive)) == (None, 3)
    assert problem is not None
