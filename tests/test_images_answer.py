"""Where the picture is in an answer, in every shape that servers give it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from imagecall.middleware.backends.images_api.answer import Found, find_picture, read_answer
from images_api import Scripted, b64
from painters import png
from painting import failed_item, painted, refused
from picture_files import drawn, encoded
from starlette.responses import JSONResponse, Response

KITE = png("a kite")
BASE64 = b64(KITE)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGM4oaHxHwAE7AIY0raoogAAAABJRU5ErkJggg=="


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        ({"data": [{"b64_json": "aaaa"}]}, Found(base64="aaaa")),
        ({"data": [{"b64_json": "aaaa", "url": "http://h/x"}]}, Found(base64="aaaa")),
        ({"data": [{"b64_json": None, "url": "/x"}]}, Found(url="/x")),
        (
            {"data": [{"b64_json": "", "url": "data:image/png;base64,aaaa"}]},
            Found(base64="data:image/png;base64,aaaa"),
        ),
        ({"data": [{}, None, 1, "", {"url": "http://h/x"}]}, Found(url="http://h/x")),
        ({"data": {"b64_json": "aaaa"}}, Found(base64="aaaa")),
        ({"data": ["DATA:image/png;base64,aaaa"]}, Found(base64="DATA:image/png;base64,aaaa")),
        ({"images": ["/9j/aaaa"]}, Found(base64="/9j/aaaa")),
        ({"images": ["http://h/x"]}, Found(url="http://h/x")),
        ({"images": ["View/local/a.png"]}, Found(url="View/local/a.png")),
        ({"images": [{"url": "x", "content_type": "image/png"}]}, Found(url="x")),
        ({"images": [{"b64_json": "aaaa"}], "data": []}, Found(base64="aaaa")),
        ({"b64_json": "aaaa"}, Found(base64="aaaa")),
        ({"data": None}, None),
        ({"data": [{"b64_json": 7, "url": ["x"]}]}, None),
        ({}, None),
        ([{"b64_json": "aaaa"}], None),
        ("aaaa", None),
        (None, None),
    ],
)
def test_the_first_picture_is_found(payload: Any, found: Found | None) -> None:
    assert find_picture(payload) == found


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        ({"revised_prompt": "a red kite"}, {"revised_prompt": "a red kite"}),
        ({"revised_prompt": "x" * 40_000}, {"revised_prompt": "x" * 32_000}),
        ({"revised_prompt": 7, "quality": ["high"], "usage": [1]}, {}),
        ({"revised_prompt": None, "quality": "x" * 65, "usage": "much"}, {}),
        ({"quality": "high"}, {"quality": "high"}),
        ({"usage": {"input_tokens": None}}, {}),
        ({"usage": {"a": float("nan"), "b": float("inf"), "c": -1, "d": 1e300, "e": 10**400}}, {}),
        ({"usage": {"a": {"b": {"c": 1}}, "d": 1}}, {"usage": {"d": 1}}),
        ({"usage": {f"a{n:02}": n for n in range(99)}}, {"usage": {f"a{n:02}": n for n in range(16)}}),
        ({"usage": {"input_tokens": True, "output_tokens": "3", "details": {"x": None}, "": {}}}, {}),
        (
            {
                "usage": {
                    "prompt_tokens": 0,
                    "completion_tokens": 2,
                    "total_tokens": 2.6,
                    "prompt_tokens_details": {"text_tokens": 1, "image_tokens": None},
                }
            },
            {
                "usage": {
                    "input_tokens": 0,
                    "output_tokens": 2,
                    "total_tokens": 3,
                    "input_tokens_details": {"text_tokens": 1},
                }
            },
        ),
    ],
)
def test_what_is_said_of_it_is_taken_over_as_far_as_it_makes_sense(
    told: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert find_picture({"data": [{"b64_json": "aaaa"}], **told}) == Found(base64="aaaa", facts=facts)
    if "usage" not in told:
        assert find_picture({"data": [{"b64_json": "aaaa", **told}]}) == Found(base64="aaaa", facts=facts)


@pytest.mark.parametrize(
    "payload",
    [
        {
            "created": 1,
            "data": [{"url": f"data:image/png;base64,{PIXEL}"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        },
        {"data": [{"b64_json": PIXEL, "url": None}], "usage": {"input_tokens": None}},
        {"data": [{"b64_json": PIXEL.rstrip("=").replace("+", "-").replace("/", "_")}]},
        {"images": [PIXEL], "parameters": {}, "info": "{}"},
        {"data": [{"b64_json": PIXEL}], "error": None},
    ],
    ids=["a data URL", "nulls", "URL-safe and unpadded", "AUTOMATIC1111's", "no error"],
)
async def test_every_encoding_gives_the_same_picture(payload: Any) -> None:
    image = await painted(Scripted(JSONResponse(payload)))
    assert (image.width, image.height, image.output_format) == (1, 1, "png")
    assert b64(image.data) == PIXEL


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "application/octet-stream", "text/html", None])
async def test_a_body_that_is_a_picture_counts_whatever_it_is_called(kind: str | None) -> None:
    image = await painted(Scripted(Response(KITE, media_type=kind)))
    assert image.data == KITE


async def test_a_large_answer_is_read_in_another_thread_and_a_small_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = encoded(drawn(size=(800, 800)), "PNG", compress_level=0)
    assert len(large) > 1 << 20
    threads: list[threading.Thread] = []

    def read(*args: Any, **how: Any) -> Found:
        threads.append(threading.current_thread())
        return read_answer(*args, **how)

    monkeypatch.setattr("imagecall.middleware.backends.images_api.call.read_answer", read)
    for data in (large, KITE):
        image = await painted(Scripted(JSONResponse({"data": [{"b64_json": b64(data)}]})))
        assert image.data == data
    assert [thread is threading.current_thread() for thread in threads] == [False, True]


HTML = (
    "The image server answered with an HTML page instead of a picture; its URL must be the Images API's "
    "base, such as http://host:8000/v1."
)
NEITHER = "The image server's answer is neither JSON nor a picture."
NO_IMAGE = "The image server answered without a picture"
NO_PICTURE = "The data is not a PNG, JPEG, WebP or GIF picture."


@pytest.mark.parametrize(
    ("body", "kind", "code", "message"),
    [
        (b"\xef\xbb\xbf <!DOCTYPE html><p>Hello", "text/html", "not_an_image", HTML),
        (b"<html>", "application/json", "not_an_image", HTML),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "not_an_image", NO_PICTURE),
        (b"%PDF", "application/pdf", "not_an_image", NEITHER),
        (b"", "application/json", "not_an_image", NEITHER),
        (b'{"data":[{"b64_json"', "application/json", "not_an_image", NEITHER),
        (b'{"data":[]}', "application/json", "no_image", f"{NO_IMAGE}."),
        (b'{"data":[{}]}', "application/json", "no_image", f"{NO_IMAGE}."),
        (b"[]", "application/json", "no_image", f"{NO_IMAGE}."),
        (b"null", "application/json", "no_image", f"{NO_IMAGE}."),
        (b'"Come back later"', "application/json", "no_image", f"{NO_IMAGE}: Come back later"),
        (b'{"detail":"queued"}', "application/json", "no_image", f"{NO_IMAGE}: queued"),
        (
            b'{"error":"out of memory"}',
            "application/json",
            "image_backend_error",
            "The image server failed: out of memory",
        ),
        (b'{"data":[{"b64_json":"PGh0bWw+"}]}', "application/json", "not_an_image", NO_PICTURE),
        (
            b'{"data":[{"b64_json":"no base64"}]}',
            "application/json",
            "invalid_base64_image",
            "The picture is not valid base64.",
        ),
        (KITE[:-20], "image/png", "image_truncated", "The picture breaks off before its end."),
        (KITE[:10], "text/plain", "not_an_image", None),
    ],
)
async def test_an_answer_without_a_picture_fails_in_words_that_help(
    body: bytes, kind: str, code: str, message: str | None
) -> None:
    error = await refused(Scripted(Response(body, media_type=kind)))
    assert error.code == code
    assert message is None or error.message == message


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Response(b"<html>Bad Gateway</html>", media_type="text/html"), "not_an_image"),
        (JSONResponse({"data": []}), "no_image"),
        (Response(b"GIF87a", media_type="image/gif"), "not_an_image"),
        (JSONResponse({"data": [{"b64_json": "!"}]}), "invalid_base64_image"),
        (Response(json.dumps({"data": [{"b64_json": BASE64 * 9}]}) + " " * 1_200_000), "image_too_large"),
        (JSONResponse({"data": [{"url": "http://169.254.169.254/latest"}]}), "url_not_allowed"),
    ],
    ids=["html", "empty", "no picture", "no base64", "too long", "elsewhere"],
)
async def test_each_of_these_fails_its_item_and_the_response_goes_on(
    answer: Response, code: str, stream: bool
) -> None:
    item = await failed_item(Scripted(answer), stream=stream, max_bytes=1_000)
    assert item["error"]["code"] == code
