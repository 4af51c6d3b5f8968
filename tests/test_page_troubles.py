"""The page when something goes wrong or somebody leaves, and without a mouse or much room."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from browsing import answered, answering, ask, chromium, frames, prompt_of, visit
from painters import Painter
from playwright.async_api import Browser, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


ADDED = {
    "type": "response.output_item.added",
    "output_index": 0,
    "item": {"id": "ig_1", "type": "image_generation_call", "status": "in_progress"},
}
OVERLOADED = {"code": "server_error", "message": "The model is overloaded."}


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (json.dumps({"error": {"message": "No such size."}}), 400, "No such size."),
        ("<html>", 502, "The server answered with status 502."),
        (frames(ADDED), 200, "The connection was lost before the answer was complete."),
        (frames(ADDED) + "data: {\n\n", 200, "The answer could not be read: "),
        (frames({"type": "error", "error": OVERLOADED}), 200, OVERLOADED["message"]),
        (frames({"type": "error", **OVERLOADED}), 200, OVERLOADED["message"]),
        (frames({"type": "response.failed", "response": {"error": OVERLOADED}}), 200, OVERLOADED["message"]),
        (frames({"type": "response.failed", "response": {"error": {}}}), 200, "The answer failed."),
        (
            frames(
                {
                    "type": "response.incomplete",
                    "response": {"incomplete_details": {"reason": "max_output_tokens"}},
                }
            ),
            200,
            "The answer is incomplete: max_output_tokens",
        ),
        (
            frames({"type": "response.incomplete", "response": {}}),
            200,
            "The answer is incomplete.",
        ),
    ],
)
async def test_what_went_wrong_stands_in_a_banner(
    browser: Browser, body: str, status: int, told: str
) -> None:
    async with visit(browser, refused=status != 200) as page:
        await answering(page, body, status=status)
        await ask(page, "Draw a red cat")
        await expect(page.get_by_role("alert")).to_contain_text(told)
        await answered(page)
        await expect(page.locator("figure:not([data-state=failed])")).to_have_count(0)
        await page.get_by_role("button", name="Dismiss the message").click()
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(prompt_of(page)).to_be_focused()


async def test_a_server_that_is_gone_is_told(browser: Browser) -> None:
    async with visit(browser, refused=True) as page:
        await page.route("**/v1/responses", lambda route: route.abort("connectionrefused"))
        await ask(page, "Draw a red cat")
        await expect(page.get_by_role("alert")).to_contain_text(
            "The connection was lost. Is the server still"
        )


async def test_a_failed_turn_is_not_replayed(browser: Browser) -> None:
    async with visit(browser) as page:
        await answering(page, frames({"type": "error", "error": OVERLOADED}))
        await ask(page, "Hello")
        await answered(page)
        await page.unroute("**/v1/responses")
        async with page.expect_request("**/v1/responses") as sent:
            await ask(page, "Hello again")
        assert (await sent.value).post_data_json["input"] == [{"role": "user", "content": "Hello again"}]
        await expect(page.get_by_role("alert")).to_be_hidden()
        await answered(page)


async def test_leaving_the_page_cancels_the_picture(browser: Browser) -> None:
    painter = Painter(waits=True)
    async with visit(browser, painter) as page:
        await ask(page, "Draw a red cat")
        await painter.was_asked()
        await page.goto("about:blank")
        await painter.was_cancelled()
        assert painter.cancelled == ["a red cat"]


@pytest.mark.parametrize("by", ["button", "key", "new conversation"])
async def test_stopping_cancels_the_picture(browser: Browser, by: str) -> None:
    painter = Painter(waits=True)
    async with visit(browser, painter) as page:
        await ask(page, "Draw a red cat")
        await expect(page.locator("figure")).to_have_attribute("data-state", "partial_image")
        if by == "button":
            await page.get_by_role("button", name="Stop").click()
        elif by == "key":
            await page.keyboard.press("Escape")
        else:
            await page.get_by_role("button", name="New conversation").click()
        await painter.was_cancelled()
        await answered(page)
        await expect(page.get_by_role("status")).to_have_text("Stopped.")
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(prompt_of(page)).to_be_focused()
        if by == "new conversation":
            await expect(page.locator("figure")).to_have_count(0)
        else:
            await expect(page.get_by_text("This picture was not finished.")).to_be_visible()


async def test_the_page_works_from_the_keyboard_alone(browser: Browser) -> None:
    painter = Painter(waits=True)
    async with visit(browser, painter) as page:
        prompt = prompt_of(page)
        await expect(prompt).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator(".asked")).to_have_count(0)
        await page.keyboard.type("Draw a red")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("cat")
        for _ in range(4):
            await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Generate")).to_be_focused()
        await page.keyboard.press("Space")
        await expect(page.get_by_role("button", name="Stop")).to_be_focused()
        await expect(page.locator(".asked")).to_have_text("Draw a red\ncat")
        painter.may_finish.set()
        await answered(page)
        await expect(prompt).to_be_focused()


async def test_while_an_answer_comes_no_second_one_is_asked_for(browser: Browser) -> None:
    painter = Painter(waits=True)
    async with visit(browser, painter) as page:
        await ask(page, "Draw a red cat")
        await painter.was_asked()
        await ask(page, "Draw a dog")
        await expect(prompt_of(page)).to_have_value("Draw a dog")
        painter.may_finish.set()
        await answered(page)
        assert [request.prompt for request in painter.asked] == ["a red cat"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_phone_needs_no_sideways_scrolling(browser: Browser, scheme: Any) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme, "reduced_motion": "reduce"}
    async with visit(browser, Painter(), **phone) as page:
        await ask(page, f"Draw a lion and a mouse{'x' * 80}")
        await answered(page)
        assert await page.evaluate("document.documentElement.scrollWidth") == 360
        await expect(page.get_by_text("Here they are")).to_be_in_viewport()
        ink, paper = await page.evaluate(
            "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
        )
        assert (brightness(ink) < brightness(paper)) == (scheme == "light")


def brightness(color: str) -> int:
    """Read a computed colour, such as `rgb(33, 31, 28)`."""
    return sum(int(part) for part in re.findall(r"\d+", color)[:3])
