"""Pictures that a server only names: fetched from its own origin and from those that are allowed."""

from __future__ import annotations

from typing import Any

import pytest
from image_servers import LocalAI, SGLang
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from images_api import KEY, Scripted
from painters import png
from painting import failed_item, painted, refused, respond
from starlette.responses import JSONResponse, Response

KITE = Response(png("a kite"), media_type="image/png")


def naming(url: str) -> JSONResponse:
    return JSONResponse({"data": [{"url": url}]})


@pytest.mark.parametrize(
    "url", ["/v1/images/1/content", "View/local/a b.png", "?x=1", "{origin}/x?sig=a%2Fb"]
)
async def test_a_picture_of_the_own_origin_is_fetched_with_the_key(url: str) -> None:
    server = Scripted(lambda asked: naming(url.replace("{origin}", server.origin)), KITE)
    assert (await painted(server, api_key=KEY)).data == png("a kite")
    posted, fetched = server.asked
    assert (posted.method, fetched.method) == ("POST", "GET")
    assert fetched.headers["authorization"] == posted.headers["authorization"] == f"Bearer {KEY}"


async def test_a_picture_of_an_allowed_origin_is_fetched_without_the_key() -> None:
    store = Scripted(KITE)
    with store.served():
        server = Scripted(naming(f"{store.origin}/kite.png"))
        image = await painted(server, api_key=KEY, headers={"x-own": "1"}, origins=[store.origin])
    assert image.data == png("a kite")
    assert [asked.path for asked in store.asked] == ["/kite.png"]
    assert {"authorization", "x-own"} & set(store.asked[0].headers) == set()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x.png",
        "http://169.254.169.254/latest/meta-data/",
        "//127.0.0.1:1/x.png",
        "https://{host}/x.png",
        "http://user@{host}/x.png",
        "file:///etc/passwd",
        "http://[::1",
    ],
)
async def test_a_picture_from_anywhere_else_is_not_fetched(url: str) -> None:
    server = Scripted(
        lambda asked: naming(url.replace("{host}", server.origin.removeprefix("http://"))), KITE
    )
    error = await refused(server)
    assert (error.code, len(server.asked)) == ("url_not_allowed", 1)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Response(status_code=404), "image_download_failed"),
        (Response(b"<html>", media_type="text/html"), "not_an_image"),
        (Response(b"x" * 3_000), "image_too_large"),
        (Response(status_code=302, headers={"location": "http://127.0.0.1:1/x"}), "url_not_allowed"),
    ],
    ids=["gone", "html", "too long", "redirect"],
)
async def test_a_picture_that_is_not_there_fails_its_item(answer: Response, code: str) -> None:
    server = Scripted(naming("/x.png"), answer)
    item = await failed_item(server, max_bytes=2_000)
    assert (item["error"]["code"], len(server.asked)) == (code, 2)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("server", [LocalAI, lambda: SGLang(url_only=True)], ids=["absolute", "relative"])
async def test_a_server_that_insists_on_urls_makes_a_picture_through_the_middleware(
    server: Any, stream: bool
) -> None:
    response, _ = await respond(server(), stream=stream, response_format="none")
    assert response["output"][0]["status"] == "completed"


def test_an_origin_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no origin"):
        OpenAIImagesBackend("http://host/v1", origins=["cdn.example.com"])
