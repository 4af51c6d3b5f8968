"""The page while all goes well: pictures, follow-ups, texts, events."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from browsing import answered, answering, ask, chromium, frames, visit
from imagecall.middleware.backends.base import ImageError
from painters import Painter, png
from playwright.async_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


SPLIT_READER = """
async (pieces) => {
  const { EventDecoder } = await import("/static/sse.js");
  const decoder = new EventDecoder();
  return pieces.flatMap((piece) => decoder.feed(Uint8Array.from(piece)));
}
"""


def refuse(prompt: str) -> bytes:
    raise ImageError("The safety system refused it.", code="moderation_blocked")


async def facts_of_picture(page: Page, alt: str) -> Any:
    image = page.get_by_role("img", name=alt, exact=True)
    await expect(image).to_be_visible()
    return await image.evaluate("(i) => [i.naturalWidth, i.naturalHeight, new URL(i.src).protocol]")


async def test_a_picture_is_announced_previewed_and_finished(browser: Browser) -> None:
    painter = Painter(waits=True)
    painter.may_preview.clear()
    async with visit(browser, painter) as page:
        await expect(page.locator("#model")).to_contain_text("the scripted stand-in (install xllamacpp")
        await ask(page, "Draw a red cat")
        card = page.locator("figure")
        await expect(card).to_have_attribute("data-state", "generating")
        await expect(card.get_by_role("img")).to_have_count(0)
        painter.may_preview.set()
        await expect(card.get_by_text("partial_image 1")).to_be_visible()
        assert await facts_of_picture(page, "Preview 2") == [48, 32, "blob:"]
        await expect(page.get_by_role("status")).to_have_text("Picture 1 is being made.")
        painter.may_finish.set()
        assert await facts_of_picture(page, "a red cat") == [48, 32, "blob:"]
        await expect(card).to_have_attribute("data-state", "completed")
        await expect(card.get_by_text("48x32 · png")).to_be_visible()
        await expect(card.locator(".elapsed")).to_have_text(re.compile(r"^\d+\.\d s$"))
        await expect(page.get_by_text("Here it is: a red cat.")).to_be_visible()
        await answered(page)
        async with page.expect_download() as download:
            await card.get_by_role("link", name="Download").click()
        saved = await (await download.value).path()
        assert saved.read_bytes() == png("a red cat")
        assert (await download.value).suggested_filename == "picture-1.png"


async def test_two_pictures_of_the_scene_stand_side_by_side(browser: Browser) -> None:
    async with visit(browser) as page:
        await page.get_by_label("Size").select_option("1536x1024")
        await page.get_by_label("Format").select_option("jpeg")
        await page.get_by_label("Previews").select_option("1")
        await page.get_by_role("button", name="Draw a lion and a mouse").click()
        for subject in ("a lion", "a mouse"):
            assert await facts_of_picture(page, subject) == [1536, 1024, "blob:"]
        await answered(page)
        lion, mouse = [await card.bounding_box() for card in await page.locator("figure").all()]
        assert lion is not None
        assert mouse is not None
        assert (lion["y"], lion["x"] < mouse["x"]) == (mouse["y"], True)
        previews = page.locator("#events .type", has_text="partial_image")
        await expect(previews).to_have_count(2)


async def test_a_failed_picture_shows_why_and_the_model_goes_on(browser: Browser) -> None:
    painter = Painter(makes=refuse)
    async with visit(browser, painter) as page:
        await ask(page, "Draw a red cat")
        card = page.locator("figure[data-state=failed]")
        await expect(card.get_by_text("The safety system refused it.")).to_be_visible()
        await expect(page.locator(".said")).to_contain_text("Sorry, there is no picture of “a red cat”")
        await answered(page)
        await expect(page.get_by_role("alert")).to_be_hidden()


async def test_a_follow_up_replays_the_conversation_with_its_items(browser: Browser) -> None:
    async with visit(browser, Painter()) as page:
        bodies: list[Any] = []
        page.on("request", lambda sent: bodies.append(sent.post_data_json) if sent.post_data else None)
        await ask(page, "Draw a red cat")
        await answered(page)
        await ask(page, "Now draw a blue one")
        await expect(page.get_by_role("img", name="a blue cat")).to_be_visible()
        await answered(page)
        first, second = bodies
        assert first == {
            "model": "scripted",
            "stream": True,
            "input": [{"role": "user", "content": "Draw a red cat"}],
            "tools": [{"type": "image_generation", "partial_images": 2}],
        }
        kinds = [item.get("type", item.get("role")) for item in second["input"]]
        assert kinds == ["user", "reasoning", "image_generation_call", "message", "user"]
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.get_by_role("heading", name="Ask for a picture")).to_be_visible()
        await ask(page, "Hello")
        await answered(page)
        assert bodies[2]["input"] == [{"role": "user", "content": "Hello"}]


async def test_an_ordinary_answer_is_text_and_its_events_are_listed(browser: Browser) -> None:
    async with visit(browser) as page:
        await ask(page, "What is 2+2?")
        await expect(page.locator(".said")).to_contain_text("I am a script, not a language model.")
        await answered(page)
        await expect(page.locator("figure")).to_have_count(0)
        rows = page.locator("#events li")
        await expect(rows.first.locator(".number")).to_have_text("0")
        await expect(rows.first.locator(".type")).to_have_text("response.created")
        await expect(rows.last.locator(".type")).to_have_text("response.completed")
        await expect(rows.last.locator(".size")).to_have_text(re.compile(r"^(\d+ B|\d\.\d kB)$"))
        await rows.first.locator("summary").click()
        await expect(rows.first.locator("pre")).to_contain_text('"sequence_number": 0')
        await expect(page.get_by_role("status")).to_have_text("The answer is complete.")


async def test_base64_is_shown_as_its_size(browser: Browser) -> None:
    async with visit(browser, Painter()) as page:
        await ask(page, "Draw a red cat")
        await answered(page)
        preview = page.locator("#events li", has_text="partial_image").first
        await preview.locator("summary").click()
        await expect(preview.locator(".chip")).to_have_text(re.compile(r"^base64 \d+ B$"))
        await expect(preview.locator("pre")).to_contain_text('"partial_image_b64": base64')


async def test_what_a_model_writes_is_text_and_never_markup(browser: Browser) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    call = {"type": "function_call", "name": evil, "arguments": "{}"}
    message = {"type": "message"}
    body = frames(
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {"type": "response.output_text.delta", "output_index": 0, "delta": evil},
        {"type": "response.reasoning_text.delta", "output_index": 1, "delta": evil},
        {"type": "response.output_item.done", "output_index": 2, "item": call},
        {"type": "response.completed", "response": {"output": []}},
    )
    async with visit(browser) as page:
        await answering(page, body + "data: [DONE]\n\n")
        await ask(page, evil)
        await expect(page.locator(".said")).to_have_text(evil)
        await expect(page.locator(".asked")).to_have_text(evil)
        await expect(page.locator(".call")).to_contain_text(f"{evil}({{}}) is for the client to run.")
        await page.get_by_text("Thoughts").click()
        await expect(page.locator(".thought p")).to_have_text(evil)
        assert await page.locator("img, #conversation script").count() == 0


async def test_the_stream_is_read_alike_wherever_its_chunks_are_cut(browser: Browser) -> None:
    frames_ = ('\ufeff: hi\r\nevent: a\r\ndata: "é€😀\u2028"\r\n\r\n', "data:1\rdata: 2\r\r")
    text = "".join(frames_) + "id: 7\nretry\n\nevent: b\ndata\n\n"
    stream = list(text.encode())
    events = [
        {"type": "a", "data": '"é€😀\u2028"'},
        {"type": "", "data": "1\n2"},
        {"type": "b", "data": ""},
    ]
    cuts = [[stream[:at], stream[at:]] for at in range(len(stream) + 1)]
    cuts.append([[byte] for byte in stream])
    async with visit(browser) as page:
        for pieces in cuts:
            assert await page.evaluate(SPLIT_READER, pieces) == events, pieces
