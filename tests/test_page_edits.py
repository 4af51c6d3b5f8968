"""Changing a picture on the page: "Edit this", what is sent then, and how to think better of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from browsing import IMAGE, added, answered, answering, ask, bodies_of, done, frames, prompt_of, visit
from painters import Painter, png
from playwright.async_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

TOOL = {"type": "image_generation", "partial_images": 2, "action": "edit"}
NO_LONGER = "The connection was lost before the answer was complete."


async def edit(page: Page, prompt: str, change: str) -> None:
    await page.get_by_role("button", name=f"Edit this: {prompt}").click()
    await expect(prompt_of(page)).to_be_focused()
    await ask(page, change)


def pictures(body: Any) -> list[str]:
    """Name the pictures in a request's input."""
    return [item["revised_prompt"] for item in body["input"] if item.get("type") == IMAGE["type"]]


async def test_a_picture_is_edited_by_a_request_that_holds_it(browser: Browser) -> None:
    painter = Painter()
    async with visit(browser, painter) as page:
        bodies = bodies_of(page)
        await ask(page, "Draw a red cat")
        await answered(page)
        await edit(page, "a red cat", "Make it blue")
        await expect(page.get_by_text("Editing a red cat")).to_be_hidden()
        card = page.locator("figure", has_text="Make it blue")
        await expect(card).to_have_attribute("data-state", "completed")
        await expect(card.locator(".facts")).to_contain_text("edited · 48x32")
        await expect(page.locator("article").first.locator(".about")).to_have_text("Edit of “a red cat”")
        await answered(page)
        kinds = [item.get("type", item.get("role")) for item in bodies[1]["input"]]
        assert kinds == ["user", "reasoning", "image_generation_call", "message", "user"]
        assert base64.b64decode(bodies[1]["input"][2]["result"]) == png("a red cat")
        assert bodies[1]["tools"] == [TOOL]
        assert bodies[1]["tool_choice"] == {"type": "image_generation"}
        first, second = painter.asked
        assert first.images == ()
        assert [image.data for image in second.images] == [png("a red cat")]
        await ask(page, "Hello")
        await answered(page)
        assert "tool_choice" not in bodies[2]
        assert pictures(bodies[2]) == ["a red cat", "Make it blue"]


async def test_of_two_pictures_the_chosen_one_is_edited(browser: Browser) -> None:
    painter = Painter()
    async with visit(browser, painter) as page:
        bodies = bodies_of(page)
        await ask(page, "Draw a lion and a mouse")
        await answered(page)
        for chosen in ("a lion", "a mouse"):
            await edit(page, chosen, f"Make it blue like {chosen}")
            await answered(page)
            assert [image.data for image in painter.asked[-1].images] == [png(chosen)]
        assert pictures(bodies[1]) == ["a mouse", "a lion"]
        assert pictures(bodies[2]) == ["a lion", "Make it blue like a lion", "a mouse"]


async def test_an_edited_picture_can_be_edited_again(browser: Browser) -> None:
    painter = Painter()
    async with visit(browser, painter) as page:
        await ask(page, "Draw a red cat")
        await answered(page)
        await edit(page, "a red cat", "Make it blue")
        await answered(page)
        await edit(page, "Make it blue", "Add a hat")
        await answered(page)
        assert [image.data for image in painter.asked[-1].images] == [png("Make it blue")]


async def test_a_picture_of_an_answer_that_broke_off_can_be_edited(browser: Browser) -> None:
    painter = Painter()
    result = base64.b64encode(png("a fish")).decode()
    finished = done(status="completed", result=result, revised_prompt="a fish", output_format="png")
    async with visit(browser, painter) as page:
        await answering(page, frames(added(), finished))
        await ask(page, "Draw a fish")
        await expect(page.get_by_role("alert")).to_contain_text(NO_LONGER)
        await page.unroute("**/v1/responses")
        bodies = bodies_of(page)
        await edit(page, "a fish", "Make it blue")
        await answered(page)
        assert pictures(bodies[0]) == ["a fish"]
        assert [image.data for image in painter.asked[0].images] == [png("a fish")]


@pytest.mark.parametrize("by", ["button", "key", "new conversation"])
async def test_one_can_think_better_of_an_edit(browser: Browser, by: str) -> None:
    async with visit(browser, Painter()) as page:
        bodies = bodies_of(page)
        await ask(page, "Draw a red cat")
        await answered(page)
        await page.get_by_role("button", name="Edit this: a red cat").click()
        await expect(page.get_by_text("Editing a red cat")).to_be_visible()
        await expect(prompt_of(page)).to_have_attribute("placeholder", "Make it blue")
        if by == "button":
            await page.get_by_role("button", name="Don’t edit").click()
        elif by == "key":
            await page.keyboard.press("Escape")
        else:
            await page.get_by_role("button", name="New conversation").click()
        await expect(page.get_by_text("Editing a red cat")).to_be_hidden()
        await expect(prompt_of(page)).to_be_focused()
        await expect(prompt_of(page)).to_have_attribute("placeholder", "Draw a red cat")
        await ask(page, "Draw a dog")
        await answered(page)
        assert "tool_choice" not in bodies[1]


async def test_an_edit_that_failed_is_tried_again_as_an_edit(browser: Browser) -> None:
    painter = Painter()
    async with visit(browser, painter) as page:
        await ask(page, "Draw a red cat")
        await answered(page)
        await answering(page, json.dumps({}), status=200)
        await edit(page, "a red cat", "Make it blue")
        await expect(page.get_by_role("alert")).to_contain_text(NO_LONGER)
        await page.unroute("**/v1/responses")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.get_by_role("img", name="Make it blue", exact=True)).to_be_visible()
        await answered(page)
        assert [image.data for image in painter.asked[-1].images] == [png("a red cat")]
