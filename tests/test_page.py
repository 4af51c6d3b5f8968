"""The demo's page in a real Chromium, over real sockets."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from loopback import uvicorn_server
from painters import Painter, png
from parts import require
from playwright.async_api import Browser, Locator, Page, Route, async_playwright, expect

from imagecall.middleware.backends.base import ImageBackend, ImageError
from imagecall.middleware.demo import demo_app

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

Json = dict[str, Any]

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
SPLIT_READER = """
async (pieces) => {
  const { EventDecoder } = await import("/static/sse.js");
  const decoder = new EventDecoder();
  return pieces.flatMap((piece) => decoder.feed(Uint8Array.from(piece)));
}
"""


def refuse(prompt: str) -> bytes:
    raise ImageError("The safety system refused it.", code="moderation_blocked")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
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
    async with uvicorn_server(demo_app("scripted", backend=backend)) as url:
        profile = await browser.new_context(base_url=url, **context)
        page = await profile.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto("/")
        yield page
        await profile.close()
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


async def facts_of_picture(page: Page, alt: str) -> Any:
    image = page.get_by_role("img", name=alt, exact=True)
    await expect(image).to_be_visible()
    return await image.evaluate("(i) => [i.naturalWidth, i.naturalHeight, new URL(i.src).protocol]")


# -- pictures ------------------------------------------------------------------------------------


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
        assert await facts_of_picture(page, "Preview 2") == [64, 64, "blob:"]
        await expect(page.get_by_role("status")).to_have_text("Picture 1 is being made.")
        painter.may_finish.set()
        assert await facts_of_picture(page, "a red cat") == [64, 64, "blob:"]
        await expect(card).to_have_attribute("data-state", "completed")
        await expect(card.get_by_text("64x64 · png")).to_be_visible()
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
        bodies: list[Json] = []
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


# -- texts and events ----------------------------------------------------------------------------


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
    text = '\ufeff: hi\r\nevent: a\r\ndata: "é€😀\u2028"\r\n\r\ndata:1\rdata: 2\r\rid: 7\nretry\n\nevent: b\ndata\n\n'
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


# -- when it goes wrong --------------------------------------------------------------------------


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
        await expect(page.get_by_role("alert")).to_contain_text("The connection was lost. Is the server still")


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


# -- leaving, stopping, keys, small screens ------------------------------------------------------


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
