"""The demo's page in a real Chromium, over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from imagecall.middleware.backends.base import ImageBackend
from imagecall.middleware.demo import ModelName, demo_app
from loopback import uvicorn_server
from parts import require
from playwright.async_api import Browser, Locator, Page, Route, async_playwright, expect

__all__ = [
    "IMAGE",
    "LOST",
    "Cable",
    "added",
    "answered",
    "answering",
    "ask",
    "bodies_of",
    "chromium",
    "done",
    "frames",
    "open_events",
    "prompt_of",
    "shoot",
    "visit",
]

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
LOST = ("Failed to load resource",)
IMAGE: Json = {"id": "ig_1", "type": "image_generation_call", "status": "in_progress"}


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Start the browser, with nothing of its own to say to the world."""
    require(CHROMIUM is not None, "There is no Chromium: apt-get install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()


class Cable:
    """What lies between browser and server, and can be pulled out in the middle of an answer."""

    def __init__(self) -> None:
        self._ends: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def plugged_in(self, url: str) -> AsyncIterator[str]:
        """Yield the URL of its near end; at the far one is `url`."""
        host, port = url.removeprefix("http://").split(":")

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection(host, int(port))
            self._ends += [writer, back]
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(_pour(reader, back))
                both_ways.create_task(_pour(there, writer))

        async with await asyncio.start_server(carry, "127.0.0.1", 0) as listener:
            yield "http://{}:{}".format(*listener.sockets[0].getsockname())
            self.pull()

    def pull(self) -> None:
        """Cut all connections."""
        for end in self._ends:
            end.transport.abort()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def visit(
    browser: Browser,
    backend: ImageBackend | str = "scene",
    *,
    model: ModelName = "scripted",
    expected: tuple[str, ...] = (),
    cable: Cable | None = None,
    **context: Any,
) -> AsyncIterator[Page]:
    """Open the page in a profile of its own; the browser's console must stay empty.

    Args:
        browser: the browser.
        backend: who makes the pictures.
        model: who talks.
        expected: how that begins which the browser itself will put on the console.
        cable: what the browser's connections go through.
        context: how the profile differs from the usual one.
    """
    complaints: list[str] = []
    failure: Exception | None = None
    async with (
        uvicorn_server(demo_app(model, backend=backend)) as server,
        cable.plugged_in(server) if cable else nullcontext(server) as url,
    ):
        profile = await browser.new_context(base_url=url, **context)
        page = await profile.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto("/")
        await expect(page.locator("#model")).not_to_have_text("…")
        try:
            yield page
        except Exception as error:  # noqa: BLE001  the server shall shut down, not be cancelled
            failure = error
        await profile.close()
    if failure is not None:
        raise failure
    assert [text for text in complaints if not text.startswith(expected)] == []


def prompt_of(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


async def ask(page: Page, text: str) -> None:
    await prompt_of(page).fill(text)
    await prompt_of(page).press("Enter")


async def answered(page: Page) -> None:
    await expect(page.get_by_role("button", name="Generate")).to_be_visible()


async def open_events(page: Page) -> Locator:
    """Open the drawer and return it."""
    await page.get_by_role("button", name="Events", exact=True).click()
    return page.get_by_role("complementary", name="Events")


def bodies_of(page: Page) -> list[Any]:
    """Return the list to which each request of the page is added."""
    bodies: list[Any] = []
    page.on("request", lambda sent: bodies.append(sent.post_data_json) if sent.post_data else None)
    return bodies


async def shoot(page: Page, folder: Path, name: str, *, whole: bool = False) -> None:
    """Keep a screenshot where `TEST_ARTIFACTS` says, else in the test's own folder."""
    kept = Path(os.environ.get("TEST_ARTIFACTS") or folder) / "page"
    await page.screenshot(path=kept / f"{name}.png", full_page=whole)


def frames(*events: Json) -> str:
    """Write a stream."""
    return "".join(FRAME.format(type=event["type"], data=json.dumps(event)) for event in events)


def added(index: int = 0, item: Json = IMAGE) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int = 0, **item: Any) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": {**IMAGE, **item}}


async def answering(page: Page, body: str, *, status: int = 200) -> None:
    """Let the API answer with this, whatever it is asked."""

    async def fulfil(route: Route) -> None:
        await route.fulfill(status=status, body=body, content_type="text/event-stream; charset=utf-8")

    await page.route("**/v1/responses", fulfil)
