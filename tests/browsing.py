"""The demo's page in a real Chromium, over real sockets."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from imagecall.middleware.backends.base import ImageBackend
from imagecall.middleware.demo import demo_app
from loopback import uvicorn_server
from parts import require
from playwright.async_api import Browser, Locator, Page, Route, async_playwright, expect

__all__ = ["answered", "answering", "ask", "chromium", "frames", "prompt_of", "visit"]

Json = dict[str, Any]

expect.set_options(timeout=30_000)

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FRAME = "event: {type}\ndata: {data}\n\n"


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Start the browser, with nothing of its own to say to the world."""
    require(CHROMIUM is not None, "There is no Chromium: apt-get install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


@asynccontextmanager
async def visit(
    browser: Browser, backend: ImageBackend | str = "scene", *, refused: bool = False, **context: Any
) -> AsyncIterator[Page]:
    """Open the page in a profile of its own; the browser's console must stay empty.

    Args:
        browser: the browser.
        backend: who makes the pictures.
        refused: a request will be refused, which the browser itself puts on the console.
        context: how the profile differs from the usual one.
    """
    complaints: list[str] = []
    failure: Exception | None = None
    async with uvicorn_server(demo_app("scripted", backend=backend)) as url:
        profile = await browser.new_context(base_url=url, **context)
        page = await profile.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto("/")
        try:
            yield page
        except Exception as error:  # noqa: BLE001  the server shall shut down, not be cancelled
            failure = error
        await profile.close()
    if failure is not None:
        raise failure
    assert [text for text in complaints if not (refused and text.startswith("Failed to load"))] == []


def prompt_of(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


async def ask(page: Page, text: str) -> None:
    await prompt_of(page).fill(text)
    await page.keyboard.press("Enter")


async def answered(page: Page) -> None:
    await expect(page.get_by_role("button", name="Generate")).to_be_visible()


def frames(*events: Json) -> str:
    """Write a stream."""
    return "".join(FRAME.format(type=event["type"], data=json.dumps(event)) for event in events)


async def answering(page: Page, body: str, *, status: int = 200) -> None:
    """Let the API answer with this, whatever it is asked."""

    async def fulfil(route: Route) -> None:
        await route.fulfill(status=status, body=body, content_type="text/event-stream; charset=utf-8")

    await page.route("**/v1/responses", fulfil)
