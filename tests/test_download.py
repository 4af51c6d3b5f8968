"""Pictures that are fetched by URL: from the server's own origin, within limits."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.download import Downloads
from loopback import raw_server, uvicorn_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

PICTURE = b"\x89PNG" + bytes(2_000)


class Gallery:
    """Serves a picture, and redirects wherever it is told to."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._answer)])

    async def _answer(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        if request.url.path == "/loop":
            return RedirectResponse("/loop")
        if (target := request.query_params.get("to")) is not None:
            return RedirectResponse(target)
        if request.url.path == "/picture.png":
            return Response(PICTURE)
        return Response("nothing here", 404)


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


async def refused(
    session: aiohttp.ClientSession, url: str, base: str | None, *origins: str, max_bytes: int = 10_000
) -> ImageError:
    with pytest.raises(ImageError) as caught:
        await Downloads(origins, max_bytes).fetch(session, url, base)
    return caught.value


async def test_a_picture_comes_from_the_servers_own_origin_with_its_headers(
    session: aiohttp.ClientSession,
) -> None:
    gallery = Gallery()
    async with uvicorn_server(gallery.app) as url:
        downloads = Downloads([], 10_000)
        for picture in (f"{url}/picture.png", "/picture.png", "picture.png", f"{url}/x?to=/picture.png"):
            body = await downloads.fetch(session, picture, f"{url}/mcp", headers={"X-Key": "k"})
            assert body == PICTURE
        await session.close()
    assert [headers["x-key"] for headers in gallery.headers] == ["k"] * 5
    assert {headers["accept-encoding"] for headers in gallery.headers} == {"identity"}


async def test_a_picture_may_come_from_another_origin_that_is_allowed_but_never_gets_the_headers(
    session: aiohttp.ClientSession,
) -> None:
    gallery = Gallery()
    async with uvicorn_server(gallery.app) as url:
        downloads = Downloads([f"{url}/ignored"], 10_000)
        for base in ("http://127.0.0.1:1/mcp", None):
            body = await downloads.fetch(session, f"{url}/picture.png", base, headers={"X-Key": "k"})
            assert body == PICTURE
        await session.close()
    assert all("x-key" not in headers for headers in gallery.headers)


async def test_no_redirect_leads_elsewhere(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    gallery = Gallery()
    async with uvicorn_server(gallery.app) as url:
        error = await refused(session, f"{url}/x?to=http://127.0.0.1:1/secret", url)
        assert error.code == "url_not_allowed"
        assert error.message == (
            "The picture's URL is on http://127.0.0.1:1, which is not the image server's own origin. "
            "Allow it with backend_origins."
        )
        assert ("imagecall", logging.WARNING, error.message) in caplog.record_tuples
        error = await refused(session, f"{url}/x?to=/nothing", url)
        assert error.message == "The picture could not be fetched: 127.0.0.1 answered HTTP 404."
        gallery.headers.clear()
        error = await refused(session, f"{url}/loop", url)
        assert error.message == "The picture's URL leads from one to the next."
        assert len(gallery.headers) == 4
        await session.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:2/x.png",
        "https://127.0.0.1:1/x.png",
        "http://localhost:1/x.png",
        "http://user:password@127.0.0.1:1/x.png",
        "file:///etc/passwd",
        "http://[",
        "//169.254.169.254/latest",
        "http://127.0.0.1:99999/x.png",
        "http://xn--\0/x.png",
        "http://a\ud800/x.png",
        "/" + "a" * 20_000,
    ],
)
async def test_no_other_url_is_even_asked(session: aiohttp.ClientSession, url: str) -> None:
    error = await refused(session, url, "http://127.0.0.1:1/mcp")
    assert error.code == "url_not_allowed"
    assert "password" not in error.message


async def test_a_server_without_a_url_has_no_origin(session: aiohttp.ClientSession) -> None:
    assert (await refused(session, "http://127.0.0.1:1/x.png", None)).code == "url_not_allowed"
    assert (await refused(session, "/x.png", None)).code == "url_not_allowed"
    assert (await refused(session, "http://", None)).code == "url_not_allowed"


async def test_a_long_picture_is_cut_off(session: aiohttp.ClientSession) -> None:
    gallery = Gallery()
    async with uvicorn_server(gallery.app) as url:
        error = await refused(session, f"{url}/picture.png", url, max_bytes=1_000)
        assert error.code == "image_too_large"
        assert (await refused(session, f"{url}/nothing", url)).code == "image_download_failed"
        await session.close()


async def test_a_server_that_breaks_off_is_told(session: aiohttp.ClientSession) -> None:
    async def serve(reader: object, writer: object) -> None: ...

    async with raw_server(serve) as url:
        error = await refused(session, f"{url}/x.png", url)
    assert error.code == "image_download_failed"
    assert error.message.startswith("The picture could not be fetched from 127.0.0.1: ")


@pytest.mark.parametrize("origin", ["example.com", "ftp://example.com", "http://["])
def test_an_origin_must_be_one(origin: str) -> None:
    with pytest.raises(ValueError, match="is no origin: give one such as"):
        Downloads([origin], 1)
