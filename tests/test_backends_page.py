"""The page about backends: its options are taken, its example keeps the contract that the page tells of."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import imagecall.middleware as package
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer as Server
from image_servers import Azure, LocalAI, OpenAI, RawBytes, SDServer, SGLang, VLLMOmni
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import ImageRequest
from imagecall.middleware.backends.named import named_backend
from imagecall.middleware.images import read_image
from imagecall.middleware.settings import Settings, load_settings
from images_api import KEY, ImagesAPI
from model_server import ModelServer
from painters import png
from painting import ignore

PAGE = (Path(__file__).parent.parent / "docs" / "backends.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


SERVERS = blocks("sh")
EXAMPLE, _, CONTRACT = blocks("python")

_names: dict[str, Any] = {"__name__": "docs"}
exec(EXAMPLE, _names)
exec(CONTRACT, _names)

TestInferenceBackend = _names["TestInferenceBackend"]


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[str]:
    async def infer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer token"
        return web.Response(body=png((await request.json())["inputs"]), content_type="image/png")

    app = web.Application()
    app.router.add_post("/models/kite", infer)
    async with Server(app) as server:
        yield str(server.make_url("/models/kite"))


@pytest.mark.parametrize("block", SERVERS, ids=range(len(SERVERS)))
def test_the_options_for_each_server_are_taken(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [pair.split("=", 1) for pair in shlex.split(block)]
    for name, value in pairs:
        assert name.removeprefix("IMAGECALL_").lower() in Settings.model_fields
        monkeypatch.setenv(name, value)
    assert ImageGenerationMiddleware(ModelServer())._routing.present


STUBS: dict[str, type[ImagesAPI]] = {
    "OpenAI": OpenAI,
    "Azure OpenAI": Azure,
    "vLLM-Omni": VLLMOmni,
    "SGLang diffusion": SGLang,
    "LocalAI": LocalAI,
    "stable-diffusion.cpp": SDServer,
    "A server that answers with the bytes": RawBytes,
}
NO_EDITS = (LocalAI, RawBytes)


@pytest.mark.parametrize("heading", STUBS)
async def test_the_options_for_a_server_get_pictures_from_it(heading: str) -> None:
    found = re.search(rf"^\*\*{re.escape(heading)}.*?^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found
    pairs = (pair.split("=", 1) for pair in shlex.split(found[1]))
    options: dict[str, Any] = {name.removeprefix("IMAGECALL_").lower(): value for name, value in pairs}
    server = STUBS[heading]()
    with server.served():
        own = {"backend_url": server.url, "backend_api_key": KEY, "backend_headers": {"api-key": KEY}}
        options |= {name: value for name, value in own.items() if name in options}
        backend: Any = named_backend(load_settings(options))
        drawn = read_image(png("a boat"), max_bytes=1_000, max_pixels=10_000)
        async with backend:
            for images in [(), (drawn,)] if STUBS[heading] not in NO_EDITS else [()]:
                wish = ImageRequest("a kite", model="gpt-image-2", partial_images=2, images=images)
                assert await backend.generate(wish, ignore)


def test_every_setting_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:backend|call|max|keep)_\w+)[`=]", PAGE)) - {"backend_busy"}
    prefixes = {"backend_"}
    assert named - prefixes <= set(Settings.model_fields)
    assert len(named) > 15


def test_the_defaults_on_the_page_are_the_real_ones() -> None:
    told = dict(re.findall(r"`(\w+)`(?: seconds| times)?,? \(?(\d+)\)", PAGE))
    assert len(told) == 7
    for name, value in told.items():
        assert Settings.model_fields[name].default == float(value), name


def test_every_code_on_the_page_is_one() -> None:
    folder = Path(next(iter(package.__path__)))
    source = "".join(file.read_text() for file in folder.rglob("*.py"))
    table = PAGE.partition("## Errors and retries")[2].partition("## What is sent")[0]
    codes = {code for row in table.splitlines() if row.startswith("| ") for code in _codes(row)}
    assert len(codes) >= 12
    for code in codes - {"moderation_blocked", "insufficient_quota"}:
        assert code in source or code.removeprefix("image_backend_") in source, code


def _codes(row: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", row.rstrip("| ").rpartition("|")[2])


def test_the_example_is_short() -> None:
    lines = [line for line in textwrap.dedent(EXAMPLE).splitlines() if line.strip()]
    assert len(lines) <= 20
