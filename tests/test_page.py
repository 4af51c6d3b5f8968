"""The page while all goes well: pictures, follow-ups, texts."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from browsing import answered, answering, ask, bodies_of, frames, prompt_of, visit
from imagecall.middleware import demo
from imagecall.middleware.backends.base import ImageError
from painters import Painter, png
from playwright.async_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SPLIT_READER = """
async (pieces) => {
  const { EventDecoder } = await import("/static/sse.js");
  const decoder = new EventDecoder();
  return pieces.flatMap((piece) => decoder.feed(Uint8Array.from(piece)));
}
"""


def refuse_cats(prompt: str) -> bytes:
    if "cat" in prompt:
        raise ImageError("The safety system refused it.", code="moderation_blocked")
    return png(prompt)


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
        await expect(card.get_by_text("Generating")).to_be_visible()
        await expect(card.get_by_role("img")).to_have_count(0)
        await expect(page.get_by_role("status")).to_have_text("Picture 1 is being made.")
        painter.may_preview.set()
        await expect(card.get_by_text("Sharpening 2 of 2")).to_be_visible()
        assert await facts_of_picture(page, "Preview 2 of picture 1") == [48, 32, "blob:"]
        painter.may_finish.set()
        assert await facts_of_picture(page, "a red cat") == [48, 32, "blob:"]
        await expect(card.get_by_text("Done", exact=True)).to_be_visible()
        await expect(card.get_by_text("48x32 · png")).to_be_visible()
        await expect(card.locator(".elapsed")).to_have_text(re.compile(r"^\d+\.\d\ss$"))
        await expect(page.get_by_text("Here it is: a red cat.")).to_be_visible()
        await answered(page)
        async with page.expect_download() as download:
            await card.get_by_role("link", name="Download: a red cat").click()
        saved = await (await download.value).path()
        assert saved.read_bytes() == png("a red cat")
        assert (await download.value).suggested_filename == "picture-1.png"


async def test_the_states_of_a_picture_come_in_their_order(browser: Browser) -> None:
    async with visit(browser, Painter()) as page:
        await page.evaluate("""() => {
          window.states = [];
          const note = () => {
            const state = document.querySelector("figure")?.dataset.state;
            if (state && state !== window.states.at(-1)) window.states.push(state);
          };
          const observed = { subtree: true, childList: true, attributes: true, attributeOldValue: true };
          new MutationObserver((changes) => {
            for (const { attributeName, oldValue } of changes) {
              if (attributeName === "data-state" && oldValue && oldValue !== window.states.at(-1)) {
                window.states.push(oldValue);
              }
            }
            note();
          }).observe(document.body, observed);
        }""")
        await ask(page, "Draw a red cat")
        await answered(page)
        states = await page.evaluate("window.states")
        assert states == ["in_progress", "generating", "partial_image", "completed"]


async def test_two_pictures_of_the_scene_stand_side_by_side(browser: Browser) -> None:
    async with visit(browser) as page:
        await expect(page.get_by_text("The pictures are placeholders")).to_be_visible()
        await page.get_by_label("Size").select_option("1536x1024")
        await page.get_by_label("Format").select_option("jpeg")
        await page.get_by_label("Partial pictures").select_option("1")
        await page.get_by_role("button", name="Draw a lion and a mouse").click()
        for subject in ("a lion", "a mouse"):
            assert await facts_of_picture(page, subject) == [1536, 1024, "blob:"]
        await answered(page)
        lion, mouse = [await card.bounding_box() for card in await page.locator("figure").all()]
        assert lion is not None
        assert mouse is not None
        assert (lion["y"], lion["x"] < mouse["x"]) == (mouse["y"], True)


async def test_two_pictures_are_made_at_the_same_time(browser: Browser) -> None:
    painter = Painter(waits=True)
    async with visit(browser, painter) as page:
        await ask(page, "Draw a lion and a mouse")
        await painter.was_asked(2)
        await expect(page.locator("figure[data-state=partial_image] img")).to_have_count(2)
        painter.may_finish.set()
        await expect(page.locator("figure[data-state=completed]")).to_have_count(2)
        await answered(page)


async def test_all_options_reach_the_tool(browser: Browser) -> None:
    painter = Painter()
    async with visit(browser, painter) as page:
        bodies = bodies_of(page)
        choices = {"Size": "1024x1536", "Quality": "high", "Background": "transparent", "Format": "webp"}
        for label, choice in {**choices, "Partial pictures": "0"}.items():
            await page.get_by_label(label).select_option(choice)
        await ask(page, "Draw a red cat")
        await answered(page)
        assert bodies[0]["tools"] == [
            {
                "type": "image_generation",
                "partial_images": 0,
                "size": "1024x1536",
                "quality": "high",
                "background": "transparent",
                "output_format": "webp",
            }
        ]
        (asked,) = painter.asked
        assert (asked.size, asked.quality, asked.background) == ("1024x1536", "high", "transparent")


async def test_a_transparent_jpeg_cannot_be_chosen(browser: Browser) -> None:
    async with visit(browser) as page:
        jpeg = page.get_by_role("option", name="jpeg")
        transparent = page.get_by_role("option", name="transparent")
        await page.get_by_label("Background").select_option("transparent")
        await expect(jpeg).to_be_disabled()
        await page.get_by_label("Background").select_option("opaque")
        await expect(jpeg).to_be_enabled()
        await page.get_by_label("Format").select_option("jpeg")
        await expect(transparent).to_be_disabled()


async def test_one_failed_picture_shows_why_and_the_other_is_finished(browser: Browser) -> None:
    painter = Painter(makes=refuse_cats)
    async with visit(browser, painter) as page:
        await ask(page, "Draw a cat and a dog")
        card = page.locator("figure[data-state=failed]")
        await expect(card.get_by_text("The safety system refused it.")).to_be_visible()
        await expect(card.get_by_text("Failed")).to_be_visible()
        await expect(card.get_by_role("button")).to_have_count(0)
        assert await facts_of_picture(page, "a dog") == [48, 32, "blob:"]
        await expect(page.locator(".said")).to_contain_text("Sorry, there is no picture of “a cat”")
        await answered(page)
        await expect(page.get_by_role("alert")).to_be_hidden()


async def test_a_follow_up_replays_the_conversation_with_its_items(browser: Browser) -> None:
    async with visit(browser, Painter()) as page:
        bodies = bodies_of(page)
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
        await expect(page.locator(".asked")).to_have_text(["Now draw a blue one", "Draw a red cat"])
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.get_by_role("heading", name="Ask for a picture")).to_be_visible()
        await expect(page.locator("article")).to_have_count(0)
        await ask(page, "Hello")
        await answered(page)
        assert bodies[2]["input"] == [{"role": "user", "content": "Hello"}]


async def test_a_text_is_seen_while_it_streams(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on = asyncio.Event()
    told = 0

    async def pace() -> None:
        nonlocal told
        told += 1
        if told > 7:  # created, in_progress, added, part added, and three words
            await may_go_on.wait()

    monkeypatch.setattr(demo, "_readable", pace)
    async with visit(browser) as page:
        await ask(page, "What is 2+2?")
        await expect(page.locator(".said")).to_have_text("I am a")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        may_go_on.set()
        await expect(page.locator(".said")).to_contain_text("I am a script, not a language model.")
        await answered(page)
        await expect(page.locator("figure")).to_have_count(0)
        await expect(page.get_by_role("status")).to_have_text("The answer is complete.")
        await expect(prompt_of(page)).to_be_focused()


async def test_what_a_model_writes_is_text_and_never_markup(browser: Browser) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    call = {"type": "function_call", "name": evil, "arguments": "{}"}
    picture = {"type": "image_generation_call", "error": {"message": evil}, "result": ""}
    body = frames(
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": evil},
        {"type": "response.reasoning_text.delta", "output_index": 1, "delta": evil},
        {"type": "response.output_item.done", "output_index": 2, "item": call},
        {"type": "response.output_item.done", "output_index": 3, "item": picture},
        {"type": f"response.{evil}", "output_index": 4},
        {"type": "response.failed", "response": {"error": {"message": evil}}},
    )
    async with visit(browser) as page:
        await answering(page, body + "data: [DONE]\n\n")
        await ask(page, evil)
        await expect(page.locator(".said")).to_have_text(evil)
        await expect(page.locator(".asked")).to_have_text(evil)
        await expect(page.locator(".call")).to_contain_text(f"{evil}({{}}) is for the client to run.")
        await expect(page.locator(".problem")).to_have_text(evil)
        await expect(page.locator("#banner-text")).to_have_text(evil)
        await expect(page.locator("#drawer-title")).to_have_text(evil)
        await expect(page.locator(".events .type").nth(5)).to_have_text(f"response.{evil}")
        await page.get_by_text("Thoughts").click()
        await expect(page.locator(".thought p")).to_have_text(evil)
        assert await page.locator("main img[src], .drawer img, body script").count() == 0


async def test_markup_cannot_be_made_from_text_at_all(browser: Browser) -> None:
    async with visit(browser, expected=("This document requires 'TrustedHTML' assignment",)) as page:
        made = "() => { try { document.body.innerHTML = '<b>x</b>' } catch (error) { return error.name } }"
        assert await page.evaluate(made) == "TypeError"
        await expect(page.get_by_role("heading", name="Ask for a picture")).to_be_visible()


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
