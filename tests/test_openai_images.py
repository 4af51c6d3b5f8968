"""`OpenAIImagesBackend` with servers of every dialect, through the whole middleware."""

from __future__ import annotations

import asyncio
import base64
import io
import logging
from contextlib import suppress

import PIL.Image
import pytest
from asgi import conversation, draw, lifespan, middleware
from image_servers import DIALECTS, LocalAI, OpenAI, SDServer, SGLang, VLLMOmni
from imagecall.middleware.backends.base import ImageError, ImageRequest
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from images_api import Asked, ImagesAPI, Scripted, b64_json
from kite import KITE
from model_server import HOSTED, KITE_TURNS, ModelServer, calling, saying
from painters import png
from painting import ignore, opened, painted, respond
from rules import check_stream, read_events
from starlette.responses import JSONResponse, Response

PAINTED = b64_json(png("a kite"))


def with_cookie(asked: Asked) -> Response:
    answer = b64_json(png(asked.prompt))
    answer.set_cookie("session", "1")
    return answer


def result(item: dict[str, str]) -> bytes:
    return base64.b64decode(item["result"])


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__)
async def test_every_dialect_makes_a_picture_through_the_middleware_in_both_modes(
    dialect: type[ImagesAPI], stream: bool
) -> None:
    server = dialect()
    wanted = {"model": "gpt-image-2", "size": "auto", "quality": "auto", "partial_images": 2}
    response, _ = await respond(server, stream=stream, hosted=wanted)
    picture, message = response["output"]
    assert (response["status"], picture["status"], message["type"]) == ("completed", "completed", "message")
    assert (picture["size"], picture["output_format"], picture["background"]) == ("48x32", "png", "opaque")
    assert picture["revised_prompt"] == KITE
    with PIL.Image.open(io.BytesIO(result(picture))) as opened_picture:
        assert opened_picture.size == (48, 32)
    if dialect is not SDServer:
        assert result(picture) == png(KITE)


async def test_what_openai_says_of_the_picture_is_taken_over() -> None:
    response, _ = await respond(OpenAI())
    assert response["output"][0]["quality"] == "high"
    spent = response["tool_usage"]["image_gen"]
    assert (spent["input_tokens"], spent["output_tokens"], spent["total_tokens"]) == (10, 200, 210)


async def test_previews_reach_the_client_while_the_server_still_paints() -> None:
    server = OpenAI()
    server.hold()
    with server.served() as url:
        app = middleware(ModelServer(*KITE_TURNS), OpenAIImagesBackend(url, **server.config))
        request = draw(tools=[{**HOSTED, "partial_images": 2}])
        async with lifespan(app), conversation(app, request, owners=1) as client:
            await client.heard(b'"partial_image_index":1')
            assert b"image_generation_call.completed" not in client.body
            server.release()
            await client.heard_all()
    assert check_stream(client.body, tools=request["tools"]) == []
    events = read_events(client.body)
    shown = [event["partial_image_b64"] for event in events if "partial_image_b64" in event]
    assert [base64.b64decode(one) for one in shown] == [png(f"{KITE} 0"), png(f"{KITE} 1")]
    assert result(events[-1]["response"]["output"][0]) == png(KITE)


async def test_ten_pictures_are_made_side_by_side_over_one_backend() -> None:
    server = OpenAI()
    prompts = [f"kite {number}" for number in range(10)]
    with server.served() as url:
        async with opened(url, **server.config) as backend:
            made = await asyncio.gather(*(backend.generate(ImageRequest(one), ignore) for one in prompts))
    assert [image.data for image in made] == [png(one) for one in prompts]
    assert sorted(asked.prompt for asked in server.asked) == sorted(prompts)


async def test_ten_calls_of_one_response_each_get_their_own_picture() -> None:
    prompts = [f"kite {number}" for number in range(10)]
    response, _ = await respond(SDServer(), turns=(calling(*prompts), saying("Ten.")))
    assert [item["status"] for item in response["output"]] == ["completed"] * 11
    response, _ = await respond(VLLMOmni(), turns=(calling(*prompts), saying("Ten.")))
    assert [result(item) for item in response["output"][:10]] == [png(one) for one in prompts]


async def test_the_true_size_is_told_where_the_server_rounds_the_one_it_was_asked_for() -> None:
    server = SDServer()
    response, _ = await respond(server, hosted={"size": "250x130"})
    assert server.asked[0].fields["size"] == "250x130"
    assert response["output"][0]["size"] == "256x136"


async def test_a_local_server_is_asked_for_base64_so_that_nothing_needs_to_be_fetched() -> None:
    for server in (LocalAI(), SGLang()):
        await painted(server)
        assert [(asked.method, asked.fields["response_format"]) for asked in server.asked] == [
            ("POST", "b64_json")
        ]


async def test_a_backend_that_is_not_open_says_so() -> None:
    backend = OpenAIImagesBackend("http://127.0.0.1:9/v1")
    with pytest.raises(ImageError, match="not open") as caught:
        await backend.generate(ImageRequest("a kite"), ignore)
    assert caught.value.code == "no_backend"
    async with backend:
        pass
    with pytest.raises(ImageError, match="not open"):
        await backend.generate(ImageRequest("a kite"), ignore)
    await backend.__aexit__()


async def test_a_backend_is_opened_once_at_a_time_and_again_after_it_was_closed() -> None:
    server = OpenAI()
    with server.served() as url:
        backend = OpenAIImagesBackend(url, **server.config)
        for _ in range(2):
            async with backend:
                with pytest.raises(RuntimeError, match="open already"):
                    await backend.__aenter__()
                assert (await backend.generate(ImageRequest("a kite"), ignore)).data == png("a kite")


async def test_a_client_that_leaves_ends_the_request_to_the_server() -> None:
    server = OpenAI()
    server.hold()
    with server.served() as url:
        app = middleware(ModelServer(KITE_TURNS[0]), OpenAIImagesBackend(url, **server.config))
        request = draw(tools=[{**HOSTED, "partial_images": 1}])
        async with lifespan(app):
            async with conversation(app, request, owners=1) as client:
                await client.heard(b"partial_image_b64")
                client.leave()
            assert await asyncio.to_thread(server.was_left.wait, 30)


async def test_no_cookie_of_the_server_comes_back_to_it() -> None:
    server = Scripted(with_cookie)
    with server.served() as url:
        async with opened(url) as backend:
            for _ in range(2):
                await backend.generate(ImageRequest("a kite"), ignore)
    assert ["cookie" in asked.headers for asked in server.asked] == [False, False]


def logged(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    own = (record for record in caplog.records if record.name == "imagecall" and record.levelno >= level)
    return [record.getMessage() for record in own]


@pytest.mark.parametrize(
    ("path", "config", "words"),
    [
        (
            "",
            {"api_key": "sk-wrong-123"},
            "401 {}: invalid_api_key; check backend_api_key and backend_headers.",
        ),
        ("", {"model": "dall-e-9"}, "400 {}: model_not_found."),
        ("/nowhere", {}, "404 {}: image_backend_not_found; check backend_url and backend_model."),
    ],
)
async def test_whoever_runs_it_is_told_what_to_mend(
    path: str, config: dict[str, str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = OpenAI()
    with server.served() as url:
        async with opened(url + path, **{**server.config, **config}) as backend:
            with pytest.raises(ImageError):
                await backend.generate(ImageRequest("a kite"), ignore)
    told = f"The image server at {server.origin} answered {words.format('without a picture')}"
    assert logged(caplog, logging.WARNING) == [told]


async def test_a_page_for_people_in_the_pictures_place_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    server = Scripted(Response("<html>", media_type="text/html"))
    with suppress(ImageError):
        await painted(server)
    told = f"The image server at {server.origin} answered 200 without a picture: not_an_image."
    assert logged(caplog, logging.WARNING) == [told]


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"error": {"code": "moderation_blocked", "message": "no kite"}}, 400),
        JSONResponse({"error": "busy"}, 503),
        JSONResponse({"error": "no response_format, please"}, 400),
    ],
)
async def test_what_passes_is_no_warning(answer: Response, caplog: pytest.LogCaptureFixture) -> None:
    with suppress(ImageError):
        await painted(Scripted(answer, PAINTED))
    assert logged(caplog, logging.WARNING) == []
