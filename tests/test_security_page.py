"""The demo's page: its policy to the letter, and hostile texts and pictures in a real browser."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from asgi import ask as asked
from asgi import draw, middleware
from browsing import added, answered, answering, ask, done, frames, open_events, visit
from imagecall.middleware import demo
from imagecall.middleware.demo import demo_app
from loopback import uvicorn_server
from model_server import KITE_TURNS, ModelServer
from painters import Painter, png
from playwright.async_api import Browser, Page, expect
from rules import read_events

STATIC = Path(str(demo.__file__)).parent / "static"

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
TYPES = {
    "/": "text/html; charset=utf-8",
    "/demo.json": "application/json",
    "/static/page.css": "text/css; charset=utf-8",
    "/static/page.js": "text/javascript; charset=utf-8",
}


@asynccontextmanager
async def visiting() -> AsyncIterator[aiohttp.ClientSession]:
    async with (
        uvicorn_server(demo_app("scripted", backend=Painter())) as url,
        aiohttp.ClientSession(url) as session,
    ):
        yield session


async def test_each_answer_of_the_page_has_its_policy_and_its_type() -> None:
    async with visiting() as session:
        for path, kind in TYPES.items():
            async with session.get(path, headers={"Origin": "https://thief.example"}) as answer:
                assert {name: answer.headers[name] for name in HEADERS} == HEADERS, path
                assert answer.headers["content-type"] == kind, path
                assert "access-control-allow-origin" not in answer.headers


async def test_another_origin_gets_no_permission_from_the_api_either() -> None:
    headers = {"Origin": "https://thief.example", "Access-Control-Request-Method": "POST"}
    async with visiting() as session:
        async with session.options("/v1/responses", headers=headers) as answer:
            assert "access-control-allow-origin" not in answer.headers
        wish = {"input": "Hi.", "tools": [{"type": "image_generation", "partial_images": 9}]}
        async with session.post("/v1/responses", json=wish, headers=headers) as answer:
            assert answer.status == 400
            assert answer.content_type == "application/json"
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "path", ["../demo.py", "..%2fdemo.py", "%2e%2e/demo.py", "....//demo.py", "/etc/passwd", "..\\demo.py"]
)
async def test_nothing_outside_its_folder_is_handed_out(path: str) -> None:
    async with uvicorn_server(demo_app("scripted", backend=Painter())) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /static/{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
    assert answer.split(b" ")[1] in (b"400", b"404")
    assert not any(word in answer for word in (b"import", b"root:"))


class _Inline(HTMLParser):
    """Notes what a strict policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._script = tag in ("script", "style")
        self.found += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        self.found += [
            f"{tag} {value}" for value in given.values() if (value or "").startswith("javascript:")
        ]
        if tag in ("base", "iframe", "object", "embed"):
            self.found.append(tag)

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.found.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._script = False


def test_the_page_holds_no_inline_script_and_names_no_other_host() -> None:
    parser = _Inline()
    parser.feed((STATIC / "index.html").read_text())
    assert parser.found == []
    for file in STATIC.rglob("*.*"):
        hosts = {*re.findall(r"(?:https?:)?//[\w-]+\.[\w.-]+", file.read_text())}
        assert hosts <= {"http://www.w3.org"}, file
        written = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", file.read_text()
        )
        assert written is None, file


# -- in a browser ----------------------------------------------------------------------------------

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=\'owned\'">'
    b"<script>document.title='owned'</script></svg>"
)

browser_test = pytest.mark.asyncio(loop_scope="module")


async def unharmed(page: Page) -> None:
    assert await page.title() != "owned"
    assert await page.locator("main img[src='x'], .drawer img, body script, svg script").count() == 0
    assert await page.evaluate("document.querySelectorAll('[onerror],[onload]').length") == 0


@pytest.mark.browser
@browser_test
async def test_no_field_of_a_picture_becomes_markup(browser: Browser) -> None:
    item: dict[str, Any] = {
        "id": EVIL,
        "status": "completed",
        "result": base64.b64encode(png("a")).decode(),
        "revised_prompt": EVIL,
        "size": EVIL,
        "quality": EVIL,
        "background": EVIL,
        "output_format": "png",
        "action": EVIL,
    }
    async with visit(browser) as page:
        body = frames(added(item={"id": EVIL, "type": "image_generation_call"}), done(**item))
        end = {"type": "response.completed", "response": {"id": EVIL, "model": EVIL, "usage": {EVIL: 1}}}
        await answering(page, body + frames(end))
        await ask(page, EVIL)
        await expect(page.locator("figure img")).to_have_count(1)
        await answered(page)
        await open_events(page)
        await unharmed(page)


@pytest.mark.browser
@browser_test
@pytest.mark.parametrize("kind", ["svg+xml", "png", "html"])
async def test_no_picture_that_is_a_program_is_shown(browser: Browser, kind: str) -> None:
    encoded = base64.b64encode(SVG).decode()
    async with visit(browser) as page:
        for result in (encoded, f"data:image/{kind};base64,{encoded}"):
            item = {"status": "completed", "output_format": kind, "result": result}
            await answering(
                page, frames(added(), done(**item), {"type": "response.completed", "response": {}})
            )
            await ask(page, "Draw a red cat")
            await answered(page)
        await expect(page.locator("figure img")).to_have_count(0)
        await unharmed(page)


@pytest.mark.browser
@browser_test
@pytest.mark.parametrize("status", [400, 500])
async def test_no_error_of_a_server_becomes_markup(browser: Browser, status: int) -> None:
    async with visit(browser, expected=("Failed to load resource",)) as page:
        await answering(page, EVIL, status=status)
        await ask(page, "Hi")
        await expect(page.get_by_role("alert")).to_be_visible()
        await unharmed(page)


async def test_an_svg_of_an_image_server_is_no_picture() -> None:
    client = await asked(middleware(ModelServer(*KITE_TURNS), Painter(makes=lambda _: SVG)), draw())
    item, _ = read_events(client.body)[-1]["response"]["output"]
    assert (item["status"], item["result"], item["error"]["code"]) == ("failed", "", "not_an_image")
    assert b"<svg" not in client.body
