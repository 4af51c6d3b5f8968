"""The page with the embedded language model: what people see who install the demo."""

from __future__ import annotations

import pytest
from browsing import answered, ask, visit
from imagecall.middleware.embedded.llm import available
from parts import require
from playwright.async_api import Browser, expect

pytestmark = [pytest.mark.browser, pytest.mark.llm, pytest.mark.asyncio(loop_scope="module")]


async def test_a_real_model_draws_a_picture_and_changes_it(browser: Browser) -> None:
    require(available() is None, str(available()))
    async with visit(browser, model="llm") as page:
        await expect(page.locator("#model")).to_have_text("SmolLM2-135M on llama.cpp")
        await page.get_by_role("button", name="Draw a red cat").click()
        await expect(page.locator("figure img[alt*='red cat' i]")).to_be_visible()
        await answered(page)
        await page.get_by_role("button", name="Edit this").click()
        await ask(page, "Make it blue")
        card = page.locator("figure[data-state=completed]").first
        await expect(card.locator(".facts")).to_contain_text("edited · 1024x1024")
        await expect(card.locator(".prompt")).to_contain_text("blue")
        await answered(page)
        await ask(page, "Hello")
        await answered(page)
        await expect(page.locator("figure")).to_have_count(2)
