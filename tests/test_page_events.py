"""The drawer with the raw events: what it lists, how it opens, what is saved from it."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from pathlib import Path

import pytest
from browsing import LOST, answered, ask, open_events, prompt_of, visit
from imagecall.middleware.recording import read_recording, replay_recording
from painters import Painter
from playwright.async_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


async def save(page: Page, folder: Path) -> Path:
    """Save the shown recording, unzip it, and return its folder."""
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Save recording").click()
    saved = await (await download.value).path()
    with zipfile.ZipFile(io.BytesIO(saved.read_bytes())) as archive:
        archive.extractall(folder)
    name = (await download.value).suggested_filename
    return folder / name.removesuffix(".zip")


async def test_each_event_has_a_number_a_time_a_type_and_a_size(browser: Browser) -> None:
    async with visit(browser, viewport=WIDE) as page:
        await ask(page, "What is 2+2?")
        await answered(page)
        rows = page.locator(".events li")
        await expect(rows.first.locator(".number")).to_have_text("0")
        await expect(rows.first.locator(".type")).to_have_text("response.created")
        await expect(rows.last.locator(".type")).to_have_text("response.completed")
        await expect(rows.last.locator(".time")).to_have_text(re.compile(r"^\d+\.\d\d\ss$"))
        await expect(rows.last.locator(".size")).to_have_text(re.compile(r"^(\d+\sB|\d\.\d\skB)$"))
        numbers = await rows.locator(".number").all_inner_texts()
        assert numbers == [str(number) for number in range(len(numbers))]
        await expect(page.locator("#drawer-sum")).to_contain_text(f"{len(numbers)} events ·")
        await rows.first.locator("summary").click()
        await expect(rows.first.locator("pre")).to_contain_text('"sequence_number": 0')


async def test_the_timeline_has_a_line_for_the_response_and_for_each_item(browser: Browser) -> None:
    async with visit(browser, Painter(), viewport=WIDE) as page:
        await ask(page, "Draw a lion and a mouse")
        await answered(page)
        lanes = page.locator(".timeline span")
        await expect(lanes).to_have_text(["response", "thoughts", "picture 1", "picture 2", "text"])
        await expect(page.locator(".timeline line")).to_have_count(await page.locator(".events li").count())


async def test_base64_is_shown_as_its_size(browser: Browser) -> None:
    async with visit(browser, Painter(), viewport=WIDE) as page:
        await ask(page, "Draw a red cat")
        await answered(page)
        preview = page.locator(".events li", has_text="partial_image").first
        await preview.locator("summary").click()
        await expect(preview.locator(".chip")).to_have_text(re.compile(r"^base64 \d+\sB$"))
        await expect(preview.locator("pre")).to_contain_text('"partial_image_b64": base64')


async def test_where_there_is_room_the_drawer_stands_open_beside_the_page(browser: Browser) -> None:
    async with visit(browser, viewport=WIDE) as page:
        drawer = page.get_by_role("complementary", name="Events")
        await expect(drawer.get_by_text("Each event of the stream appears here")).to_be_visible()
        await expect(prompt_of(page)).to_be_focused()
        toggle = page.get_by_role("button", name="Events", exact=True)
        await toggle.click()
        await expect(drawer).to_be_hidden()
        await expect(toggle).to_have_attribute("aria-expanded", "false")
        await toggle.click()
        await expect(drawer).to_be_visible()
        await prompt_of(page).click()
        await expect(drawer).to_be_visible()


@pytest.mark.parametrize("by", ["button", "key", "beside"])
async def test_on_a_small_screen_it_covers_the_page_until_it_is_closed(browser: Browser, by: str) -> None:
    size = {"width": 900, "height": 800} if by == "beside" else PHONE
    async with visit(browser, Painter(), viewport=size) as page:
        await expect(page.get_by_role("complementary", name="Events")).to_be_hidden()
        drawer = await open_events(page)
        close = drawer.get_by_role("button", name="Close the events")
        await expect(close).to_be_focused()
        await prompt_of(page).focus()
        await expect(close).to_be_focused()
        if by == "button":
            await page.keyboard.press("Enter")
        elif by == "key":
            await page.keyboard.press("Escape")
        else:
            await page.mouse.click(100, 400)
        await expect(drawer).to_be_hidden()
        await expect(page.get_by_role("button", name="Events", exact=True)).to_be_focused()
        await ask(page, "Draw a red cat")
        await answered(page)


async def test_a_screen_that_grows_uncovers_the_page(browser: Browser) -> None:
    async with visit(browser, viewport=PHONE) as page:
        drawer = await open_events(page)
        await page.set_viewport_size({"width": 1440, "height": 900})
        await expect(drawer).to_be_visible()
        await expect(prompt_of(page)).to_be_visible()
        await expect(page.get_by_label("Quality")).to_be_visible()


async def test_each_answer_keeps_its_own_events(browser: Browser) -> None:
    async with visit(browser, Painter(), viewport=WIDE) as page:
        for question in ("Draw a red cat", "Hello"):
            await ask(page, question)
            await answered(page)
        title = page.locator("#drawer-title")
        await expect(title).to_have_text("Hello")
        await expect(page.locator(".events li", has_text="partial_image")).to_have_count(0)
        await page.get_by_role("button", name="Close the events").click()
        await page.get_by_role("button", name="Show the events of this answer").last.click()
        await expect(title).to_have_text("Draw a red cat")
        await expect(page.locator(".events li", has_text="partial_image")).to_have_count(2)
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator("#drawer-sum")).to_have_text("none yet")
        await expect(page.get_by_role("button", name="Save recording")).to_be_disabled()


async def test_an_answer_is_saved_as_a_recording_that_replays_byte_for_byte(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, viewport=WIDE) as page:
        await expect(page.get_by_role("button", name="Save recording")).to_be_disabled()
        await ask(page, "Draw a red cat")
        await answered(page)
        first = await save(page, tmp_path)
        await page.get_by_role("button", name="Edit this").click()
        await ask(page, "Make it blue")
        await answered(page)
        second = await save(page, tmp_path)
        await expect(page.get_by_role("status")).to_have_text("The recording is saved.")
        rows = await page.locator(".events li").count()
    for folder in (first, second):
        recording = read_recording(folder)
        assert len(recording.turns) == 2
        # It runs a loop of its own, for which there is no room in this one.
        assert await asyncio.to_thread(replay_recording, recording) == recording.client
    assert recording.client.count(b"\ndata: {") == rows


async def test_a_recording_that_is_gone_is_told(browser: Browser) -> None:
    async with visit(browser, viewport=WIDE, expected=LOST) as page:
        await ask(page, "Hello")
        await answered(page)
        for reason, told in (("404", "has no recording of this answer"), ("gone", "could not be fetched")):
            if reason == "404":
                await page.route("**/recordings/*", lambda route: route.fulfill(status=404, body="{}"))
            else:
                await page.route("**/recordings/*", lambda route: route.abort("connectionrefused"))
            await page.get_by_role("button", name="Save recording").click()
            await expect(page.get_by_role("alert")).to_contain_text(told)
            await expect(page.get_by_role("button", name="Try again")).to_be_hidden()
