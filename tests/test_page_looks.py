"""How the page looks and is used: on a phone, in the dark, without motion, without a mouse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browsing import LOST, answered, ask, open_events, prompt_of, shoot, visit
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest, OnPartial
from imagecall.middleware.backends.scene import SceneBackend
from painters import Painter
from playwright.async_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}

TOO_FAINT = """
() => {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const layers = (colours) => {
    pixel.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1); }
    return pixel.getImageData(0, 0, 1, 1).data;
  };
  const luminance = ([r, g, b]) => [r, g, b]
    .map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const faint = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const isSeen = texts.currentNode.data.trim() && element.checkVisibility();
    if (!isSeen || element.closest(":disabled")) continue;
    const grounds = [];
    for (let each = element; each; each = each.parentElement) {
      grounds.unshift(getComputedStyle(each).backgroundColor);
    }
    const ground = luminance(layers(grounds));
    const ink = luminance(layers([...grounds, getComputedStyle(element).color]));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${texts.currentNode.data.trim()}`);
  }
  return faint;
}
"""

UNNAMED = """
() => [...document.querySelectorAll("button, a, select, textarea, .frame img, [role=img]")]
  .filter((each) => each.checkVisibility() && !each.closest("[hidden]"))
  .filter((each) => !(each.ariaLabel || each.alt || each.textContent.trim() || each.labels?.length))
  .map((each) => each.outerHTML)
"""


class Story(Painter):
    """Paints the scene, waits after its first preview where it is told to, and refuses dragons."""

    def __init__(self) -> None:
        super().__init__(waits=True)
        self._scene = SceneBackend()

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image:
        async def partial(image: Image) -> None:
            await on_partial(image)
            await self.may_finish.wait()

        if "dragon" in request.prompt:
            raise ImageError("The safety system refused it.", code="moderation_blocked")
        return await self._scene.generate(request, partial)


async def good(page: Page) -> None:
    """Check what must hold of the page at any time: contrast (WCAG AA), names, no sideways scrolling."""
    assert await page.evaluate(TOO_FAINT) == []
    assert await page.evaluate(UNNAMED) == []
    await expect(page.locator("img:not([alt])")).to_have_count(0)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_the_page_can_be_looked_at(browser: Browser, size: str, scheme: Any, tmp_path: Path) -> None:
    story = Story()
    setting = {"viewport": SIZES[size], "color_scheme": scheme, "reduced_motion": "reduce"}

    async def look(name: str, *, whole: bool = False) -> None:
        await good(page)
        await shoot(page, tmp_path, f"{size}-{scheme}-{name}", whole=whole)

    async with visit(browser, story, expected=LOST, **setting) as page:
        await look("1-empty")
        await ask(page, "Draw a lion and a mouse")
        await expect(page.locator("figure[data-state=partial_image] img")).to_have_count(2)
        await look("2-sharpening")
        story.may_finish.set()
        await answered(page)
        await look("3-done")
        await page.get_by_role("button", name="Edit this: a lion").click()
        await look("4-editing")
        await ask(page, "Make it blue")
        await answered(page)
        await ask(page, "Draw a dragon")
        await answered(page)
        await page.route("**/v1/responses", lambda route: route.abort("connectionrefused"))
        await ask(page, "Hello")
        await expect(page.get_by_role("alert")).to_be_visible()
        await look("5-conversation", whole=True)
        await page.get_by_role("button", name="Show the events").nth(2).click()
        await page.locator(".events summary", has_text="partial_image").first.click()
        await look("6-events")
        ink, paper = await page.evaluate(
            "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
        )
        assert (brightness(ink) < brightness(paper)) == (scheme == "light")


def brightness(color: str) -> int:
    """Read a computed colour, such as `rgb(33, 31, 28)`."""
    return sum(int(part) for part in re.findall(r"\d+", color)[:3])


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_nothing_moves_for_people_who_want_less_motion(browser: Browser, motion: Any) -> None:
    painter = Painter(waits=True)
    painter.may_preview.clear()
    async with visit(browser, painter, reduced_motion=motion) as page:
        await ask(page, "Draw a red cat")
        await expect(page.locator("figure")).to_have_attribute("data-state", "generating")
        moving = await page.evaluate("document.getAnimations().length > 0")
        assert moving == (motion == "no-preference")
        painter.may_preview.set()
        painter.may_finish.set()
        await answered(page)
        await page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")


async def test_a_long_word_does_not_widen_a_phone(browser: Browser) -> None:
    async with visit(browser, Painter(), viewport={"width": 360, "height": 740}) as page:
        await ask(page, f"Draw a lion and a mouse{'x' * 80}")
        await answered(page)
        await good(page)


async def test_on_a_phone_the_options_are_folded_and_say_what_is_chosen(browser: Browser) -> None:
    async with visit(browser, Painter(), viewport=SIZES["phone"]) as page:
        await expect(page.get_by_label("Quality")).to_be_hidden()
        await page.get_by_text("Options").click()
        await page.get_by_label("Quality").select_option("high")
        await page.get_by_label("Format").select_option("webp")
        await page.get_by_text("Options").click()
        await expect(page.get_by_text("high · webp")).to_be_visible()


async def test_the_page_works_from_the_keyboard_alone(browser: Browser) -> None:
    painter = Painter(waits=True)
    async with visit(browser, painter, viewport=SIZES["desktop"]) as page:
        press = page.keyboard.press
        prompt = prompt_of(page)
        await expect(prompt).to_be_focused()
        await press("Enter")
        await expect(page.locator(".asked")).to_have_count(0)
        await page.keyboard.type("Draw a red")
        await press("Shift+Enter")
        await page.keyboard.type("cat")
        await press("Tab")
        await page.keyboard.type("1536")
        await expect(page.get_by_label("Size")).to_have_value("1536x1024")
        for _ in range(5):
            await press("Tab")
        await expect(page.get_by_role("button", name="Generate")).to_be_focused()
        await press("Space")
        await expect(page.get_by_role("button", name="Stop")).to_be_focused()
        await expect(page.locator(".asked")).to_have_text("Draw a red\ncat")
        painter.may_finish.set()
        await answered(page)
        await expect(prompt).to_be_focused()
        edit = page.get_by_role("button", name="Edit this")
        for _ in range(8):  # five options, Generate, the thoughts
            await press("Tab")
        await expect(edit).to_be_focused()
        await press("Enter")
        await expect(prompt).to_be_focused()
        await page.keyboard.type("Make it blue")
        await press("Enter")
        await answered(page)
        assert len(painter.asked[1].images) == 1


async def test_the_drawer_works_from_the_keyboard_alone(browser: Browser) -> None:
    async with visit(browser, Painter(), viewport=SIZES["phone"]) as page:
        await ask(page, "Draw a red cat")
        await answered(page)
        drawer = await open_events(page)
        await expect(drawer.get_by_role("button", name="Close the events")).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(drawer.get_by_role("list", name="Raw events of the stream")).to_be_focused()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(drawer.locator("pre")).to_contain_text('"response.created"')
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Events", exact=True)).to_be_focused()
