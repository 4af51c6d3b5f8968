"""The page when something goes wrong or somebody leaves."""

from __future__ import annotations

import base64
import json

import pytest
from browsing import (
    LOST,
    Cable,
    added,
    answered,
    answering,
    ask,
    bodies_of,
    done,
    frames,
    prompt_of,
    visit,
)
from painters import Painter, png
from playwright.async_api import Browser, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

OVERLOADED = {"code": "server_error", "message": "The model is overloaded."}
EMPTY = frames({"type": "response.completed", "response": {"output": []}})


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (json.dumps({"error": {"message": "No such size."}}), 400, "No such size."),
        (json.dumps({"error": {"message": ["?"]}}), 400, "The server answered with status 400."),
        ("<html>", 502, "The server answered with status 502."),
        (frames(added()), 200, "The connection was lost before the answer was complete."),
        (frames(added()) + "data: {\n\n", 200, "The answer could not be read: "),
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
    async with visit(browser, expected=LOST if status != 200 else ()) as page:
        await answering(page, body, status=status)
        await ask(page, "Draw a red cat")
        await expect(page.get_by_role("alert")).to_contain_text(told)
        await answered(page)
        await expect(page.locator("figure:not([data-state=failed])")).to_have_count(0)
        await page.get_by_role("button", name="Dismiss the message").click()
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(prompt_of(page)).to_be_focused()


async def test_a_server_that_is_gone_is_told_and_asked_again(browser: Browser) -> None:
    async with visit(browser, Painter(), expected=LOST) as page:
        await page.route("**/v1/responses", lambda route: route.abort("connectionrefused"))
        await ask(page, "Draw a red cat")
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("The connection was lost. Is the server still running?")
        await expect(page.get_by_text("No answer.")).to_be_visible()
        await page.unroute("**/v1/responses")
        await page.get_by_role("button", name="Try again").click()
        await expect(alert).to_be_hidden()
        await expect(page.get_by_role("img", name="a red cat")).to_be_visible()
        await answered(page)


async def test_a_connection_that_is_lost_in_the_middle_is_told(browser: Browser) -> None:
    painter = Painter(waits=True)
    cable = Cable()
    async with visit(browser, painter, expected=LOST, cable=cable) as page:
        await ask(page, "Draw a red cat")
        await expect(page.locator("figure[data-state=partial_image]")).to_be_visible()
        cable.pull()
        await expect(page.get_by_role("alert")).to_contain_text(
            "The connection was lost in the middle of the answer."
        )
        await expect(page.get_by_text("This picture was not finished.")).to_be_visible()
        await answered(page)
        await painter.was_cancelled()


async def test_a_failed_turn_is_not_replayed(browser: Browser) -> None:
    async with visit(browser) as page:
        await answering(page, frames({"type": "error", "error": OVERLOADED}))
        await ask(page, "Hello")
        await answered(page)
        await page.unroute("**/v1/responses")
        bodies = bodies_of(page)
        await ask(page, "Hello again")
        await answered(page)
        assert bodies[0]["input"] == [{"role": "user", "content": "Hello again"}]
        await expect(page.get_by_role("alert")).to_be_hidden()


async def test_an_answer_with_nothing_in_it_says_so(browser: Browser) -> None:
    async with visit(browser) as page:
        await answering(page, EMPTY)
        await ask(page, "Hello")
        await expect(page.get_by_text("No answer.")).to_be_visible()


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode(), "that is no PNG, JPEG"),
        ("data:text/html,<b>", "a picture that is not base64"),
        (base64.b64encode(png("x")[:40]).decode(), "The picture is damaged and cannot be shown."),
        ("", "The picture could not be made."),
    ],
)
async def test_only_whole_pictures_of_known_kinds_are_shown(browser: Browser, result: str, told: str) -> None:
    preview = {"type": "response.image_generation_call.partial_image", "output_index": 0}
    shown = frames(
        added(), {**preview, "partial_image_index": 0, "partial_image_b64": result}, done(result=result)
    )
    async with visit(browser) as page:
        await answering(page, shown + EMPTY)
        await ask(page, "Draw a red cat")
        card = page.locator("figure[data-state=failed]")
        await expect(card.locator(".problem")).to_contain_text(told)
        await expect(card.get_by_role("img")).to_have_count(0)
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
        await expect(page.get_by_role("button", name="Save recording", include_hidden=True)).to_be_disabled()
        if by == "new conversation":
            await expect(page.locator("figure")).to_have_count(0)
        else:
            await expect(page.get_by_text("This picture was not finished.")).to_be_visible()


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


async def test_a_page_whose_server_does_not_introduce_itself_still_asks(browser: Browser) -> None:
    async with visit(browser, Painter(), expected=LOST) as page:
        await page.route("**/demo.json", lambda route: route.fulfill(status=500, body="?"))
        await page.reload()
        await expect(page.locator("#model")).to_have_text("unknown")
        await ask(page, "Draw a red cat")
        await expect(page.get_by_role("img", name="a red cat")).to_be_visible()
        await answered(page)
