"""What an Images API is asked: the smallest body that says what is wanted."""

from __future__ import annotations

from typing import Any

import pytest
from image_servers import Azure, OpenAI, VLLMOmni
from imagecall.middleware.backends.base import ImageError, ImageRequest
from imagecall.middleware.backends.images_api.request import Dialect, plain_prompt
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from images_api import KEY, Scripted, b64_json
from painters import png
from painting import ignore, painted
from starlette.responses import JSONResponse

PICTURE = png("a kite")


def fields(request: ImageRequest, *, base64: bool = False, **dialect: Any) -> dict[str, Any]:
    return Dialect(**dialect).fields(request, base64=base64)


def test_nothing_is_sent_that_nobody_asked_for() -> None:
    assert fields(ImageRequest("a kite")) == {"prompt": "a kite", "n": 1}


def test_all_that_was_asked_for_is_sent() -> None:
    request = ImageRequest(
        "a kite",
        model="gpt-image-2",
        size="1536x1024",
        quality="high",
        background="opaque",
        output_format="webp",
        output_compression=0,
        moderation="low",
        input_fidelity="high",
        partial_images=3,
        extra={"seed": 7, "svg": {"model": "m", "reasoning": None}, "tags": ["a", None], "none": None},
    )
    assert fields(request, base64=True, model="flux", pass_on=("*",)) == {
        "prompt": "a kite",
        "seed": 7,
        "svg": {"model": "m"},
        "tags": ["a"],
        "size": "1536x1024",
        "quality": "high",
        "background": "opaque",
        "output_format": "webp",
        "output_compression": 0,
        "moderation": "low",
        "stream": True,
        "partial_images": 3,
        "model": "flux",
        "n": 1,
        "response_format": "b64_json",
    }


@pytest.mark.parametrize(
    "asked",
    [
        {"size": "auto"},
        {"size": "square"},
        {"size": "0x100"},
        {"size": "1024x"},
        {"quality": "auto", "background": "auto", "moderation": "auto", "output_format": "auto"},
        {"output_compression": 50},
        {"input_fidelity": "high"},
        {"model": "gpt-image-2"},
        {"extra": {"seed": None, "n": 4, "stream": True, "response_format": "url", "model": "x"}},
        {"extra": {"prompt": "x", "image": "x", "images": [], "mask": "x", "partial_images": 1}},
        {"extra": {"a name\r\n": 1, "": 1, "é": 1, "n" * 65: 1}},
    ],
)
def test_what_would_be_of_no_use_or_do_harm_stays_away(asked: dict[str, Any]) -> None:
    assert fields(ImageRequest("a kite", **asked), pass_on=("*",)) == {"prompt": "a kite", "n": 1}


def test_of_unknown_fields_only_those_that_say_how_to_paint_are_sent_unless_the_operator_says_otherwise() -> (
    None
):
    painting = {"seed": 7, "negative_prompt": "fog", "style": "vivid", "strength": 0.5}
    painting |= {"guidance_scale": 3.5, "cfg_scale": 7}
    harm = {
        "api_base": "http://thief.example",
        "api_key": "k",
        "output_path": "/etc/cron.d/x",
        "steps": 10**9,
    }
    harm |= {"extra_headers": {"x": "y"}, "callback_url": "http://thief.example", "seed2": 1}
    request = ImageRequest("a kite", extra={**harm, **painting})
    assert fields(request) == {"prompt": "a kite", "n": 1, **painting}
    assert fields(request, pass_on=()) == {"prompt": "a kite", "n": 1}
    assert fields(request, pass_on=("st*",)) == {
        "prompt": "a kite",
        "n": 1,
        "style": "vivid",
        "strength": 0.5,
        "steps": 10**9,
    }


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"size": " 1024X768 "}, {"size": "1024x768"}),
        (
            {"output_format": "jpg", "output_compression": 30},
            {"output_format": "jpeg", "output_compression": 30},
        ),
        ({"output_format": "png", "output_compression": 30}, {"output_format": "png"}),
        ({"output_format": "gif", "partial_images": 2}, {"output_format": "gif"}),
    ],
)
def test_options_are_put_into_the_servers_own_words(asked: dict[str, Any], sent: dict[str, Any]) -> None:
    assert fields(ImageRequest("a kite", **asked)) == {"prompt": "a kite", "n": 1, **sent}


def test_dropped_fields_are_not_sent_and_the_operators_own_win_over_all_but_the_prompt() -> None:
    request = ImageRequest("a kite", quality="high", size="64x64", extra={"seed": 7, "output_path": "/etc"})
    sent = fields(
        request,
        base64=True,
        pass_on=("*",),
        drop=frozenset({"quality", "seed", "output_path", "n"}),
        body={"size": "512x512", "response_format": "base64", "steps": 4, "prompt": "a dog", "n": 2},
    )
    assert sent == {"prompt": "a kite", "size": "512x512", "response_format": "base64", "steps": 4, "n": 2}
    assert fields(request, body={"quality": None, "size": None, "seed": None, "output_path": None}) == {
        "prompt": "a kite",
        "n": 1,
    }


@pytest.mark.parametrize(
    "dialect",
    [{"stream": False}, {"drop": frozenset({"stream"})}, {"drop": frozenset({"partial_images"})}],
)
def test_a_server_without_previews_is_not_asked_for_a_stream(dialect: dict[str, Any]) -> None:
    assert fields(ImageRequest("a kite", partial_images=2), **dialect) == {"prompt": "a kite", "n": 1}


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ("gpt-image-2", "flux"),
        ("gpt-image-1-mini", "small"),
        ("dall-e-3", "default"),
        (None, "default"),
    ],
)
def test_the_declared_model_is_translated_and_never_forwarded(declared: str | None, named: str) -> None:
    models = {"*-mini": "small", "gpt-image-*": "flux"}
    assert Dialect(model="default", models=models).model_for(declared) == named
    assert Dialect(models=models).model_for("dall-e-3") is None
    assert Dialect(models={"*": "any"}).model_for(declared) == "any"
    assert Dialect(models={"?*": "any"}).model_for(declared) == ("any" if declared else None)


async def test_a_server_that_insists_on_its_model_gets_its_own_name_of_it() -> None:
    for declared in ("gpt-image-2", None):
        server = VLLMOmni()
        await painted(server, ImageRequest("a kite", model=declared, size="auto"))
        assert server.asked[0].fields.get("model") == ("Qwen/Qwen-Image" if declared else None)


@pytest.mark.parametrize(
    ("dialect", "asks"),
    [
        ({}, True),
        ({"model": "flux"}, True),
        ({"model": "gpt-image-2"}, False),
        ({"model": "openai/gpt-image-2"}, False),
        ({"model": "chatgpt-image-latest"}, False),
        ({"model": "gpt-image-2", "response_format": "b64_json"}, True),
        ({"model": "flux", "response_format": "none"}, False),
        ({"drop": frozenset({"response_format"})}, False),
        ({"body": {"response_format": "base64"}}, False),
    ],
)
def test_base64_is_asked_for_except_where_it_is_the_only_answer(dialect: dict[str, Any], asks: bool) -> None:
    assert Dialect(**dialect).asks_base64(ImageRequest("a kite")) is asks


async def test_a_server_that_refuses_response_format_is_asked_once_more_and_never_again_with_it() -> None:
    server = Azure()
    with server.served() as url:
        backend = OpenAIImagesBackend(url, **server.config)
        async with backend:
            for prompt in ("a kite", "a dog"):
                image = await backend.generate(ImageRequest(prompt), ignore)
                assert image.data == png(prompt)
    assert [asked.fields for asked in server.asked] == [
        {"prompt": "a kite", "n": 1, "response_format": "b64_json"},
        {"prompt": "a kite", "n": 1},
        {"prompt": "a dog", "n": 1},
    ]


@pytest.mark.parametrize(
    "refusal",
    [
        {
            "error": {
                "message": "response_format is not a parameter of this model",
                "type": "invalid_request_error",
                "param": "response_format",
                "code": "unknown_parameter",
            }
        },
        {"error": {"message": "Unknown parameter: 'response_format'.", "param": None}},
        {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]},
    ],
)
async def test_every_way_to_refuse_response_format_is_understood(refusal: dict[str, Any]) -> None:
    server = Scripted(JSONResponse(refusal, 422 if "detail" in refusal else 400), b64_json(PICTURE))
    assert (await painted(server)).data == PICTURE
    assert ["response_format" in asked.fields for asked in server.asked] == [True, False]


async def test_a_second_refusal_of_response_format_fails_the_call() -> None:
    server = Scripted(JSONResponse({"error": "response_format?"}, 400))
    with pytest.raises(ImageError, match="response_format"):
        await painted(server)
    assert len(server.asked) == 2
    server = Scripted(JSONResponse({"error": "response_format?"}, 400))
    with pytest.raises(ImageError, match="response_format"):
        await painted(server, response_format="none")
    assert len(server.asked) == 1


@pytest.mark.parametrize("ending", ["", "/", "/images/generations", "/images/edits/"])
async def test_the_url_may_end_as_people_write_it(ending: str) -> None:
    server = OpenAI()
    with server.served() as url:
        async with OpenAIImagesBackend(url + ending, **server.config) as backend:
            await backend.generate(ImageRequest("a kite"), ignore)
    assert server.asked[0].path == "/v1/images/generations"


async def test_headers_reach_the_server_and_the_key_may_end_with_a_line_feed() -> None:
    server = OpenAI()
    headers = {"x-team": " kites ", "X-Title": "Ünit"}
    await painted(server, api_key=f"{KEY}\n", headers=headers)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.asked[0].headers["x-team"] == "kites"
    assert server.asked[0].headers["content-type"] == "application/json"
    server = OpenAI()
    await painted(server, api_key="wrong", headers={"authorization": f"Bearer {KEY}"})
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8000", "ftp://host/v1", "http://user:s3cret@host/v1", "http:///v1", "http://[::1/v1"],
)
def test_a_malformed_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with http") as caught:
        OpenAIImagesBackend(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("headers", [{"x y": "s3cret"}, {"": "s3cret"}, {"x-key": "s3cret\nx: y"}])
def test_a_malformed_header_is_refused_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is malformed") as caught:
        OpenAIImagesBackend("http://host/v1", headers=headers)
    assert "s3cret" not in str(caught.value)


ORDERS = '<sd_cpp_extra_args>{"steps": 500}</sd_cpp_extra_args>'


@pytest.mark.parametrize(
    ("prompt", "plain"),
    [
        (f"a kite {ORDERS}over a harbour", "a kite  over a harbour"),
        (f"{ORDERS.upper()}a kite", " a kite"),
        (f"a {ORDERS}{ORDERS}kite", "a   kite"),
        ("a kite <sd_cpp_extra_args>{}", "a kite  "),
        ("a kite </sd_cpp_extra_args>", "a kite  "),
        (f"a kite <sd_cpp_{ORDERS}extra_args>{{}}</sd_cpp_extra_args>", "a kite <sd_cpp_ extra_args>{} "),
        ("a < b & c > d", "a < b & c > d"),
        ("half \ud83d", "half ?"),
    ],
)
def test_a_prompt_gives_no_orders_to_stable_diffusion_cpp(prompt: str, plain: str) -> None:
    assert plain_prompt(prompt) == plain
    assert fields(ImageRequest(prompt))["prompt"] == plain
    assert ORDERS not in plain


def test_a_prompt_of_nothing_but_orders_is_the_models_mistake() -> None:
    with pytest.raises(ImageError, match="no words") as caught:
        plain_prompt(ORDERS)
    assert (caught.value.code, caught.value.param) == ("invalid_arguments", "prompt")
