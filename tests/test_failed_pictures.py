"""Pictures that fail: the item fails, the model is told, the response goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgi import ask, conversation, draw, middleware
from imagecall.middleware.backends.base import ImageError
from kite import KITE, kite_stream, pair, usage
from model_server import HOSTED, KITE_TURNS, ModelServer, calling, saying
from painters import Painter, png, raising
from rules import check_stream, read_events
from waiting import Clock, settle

EXPECTED = kite_stream(spent=usage(200, 20))


def giving(data: Any) -> Painter:
    return Painter(makes=lambda _: data)


REFUSAL = ImageError(
    "The safety system refused this.",
    code="moderation_blocked",
    type="image_generation_user_error",
    param="prompt",
    details={"moderation_details": {"categories": ["violence"]}},
)
USED_UP = ImageError(
    "The limit is used up.",
    code="insufficient_quota",
    details={"limit": "images", "resets_at": 1_790_000_060, "resets_in_seconds": 60, "trace": "x"},
)
BACKEND_FAILED = {
    "type": "image_generation_error",
    "code": "image_backend_error",
    "message": "The image backend failed.",
    "param": None,
}


@pytest.mark.parametrize(
    ("backend", "settings", "error"),
    [
        (
            raising(REFUSAL),
            {},
            {
                "type": "image_generation_user_error",
                "code": "moderation_blocked",
                "message": "The safety system refused this.",
                "param": "prompt",
                "moderation_details": {"categories": ["violence"]},
            },
        ),
        (
            raising(USED_UP),
            {},
            {
                "type": "image_generation_error",
                "code": "insufficient_quota",
                "message": "The limit is used up.",
                "param": None,
                "limit": "images",
                "resets_at": 1_790_000_060,
                "resets_in_seconds": 60,
            },
        ),
        (raising(ValueError("bug")), {}, BACKEND_FAILED),
        (raising(TimeoutError()), {}, BACKEND_FAILED),
        (raising(asyncio.CancelledError()), {}, BACKEND_FAILED),
        (giving(None), {}, BACKEND_FAILED),
        (
            giving(b"<html>Bad Gateway</html>"),
            {},
            {
                "type": "image_generation_error",
                "code": "not_an_image",
                "message": "The data is not a PNG, JPEG, WebP or GIF picture.",
                "param": None,
            },
        ),
        (
            giving(png("x") + bytes(2_000_000)),
            {"max_image": 1_000_000},
            {
                "type": "image_generation_error",
                "code": "image_too_large",
                "message": "The picture has 2,000,119 bytes; max_image allows 1,000,000.",
                "param": None,
            },
        ),
        (
            giving(png("x")),
            {"max_pixels": 1_000},
            {
                "type": "image_generation_error",
                "code": "image_too_large",
                "message": "The picture is 48x32; max_pixels allows 1,000 pixels.",
                "param": None,
            },
        ),
        (
            Painter(waits=True),
            {"call_timeout": 0.1},
            {
                "type": "image_generation_error",
                "code": "timeout",
                "message": "No picture was made within the 0.1 seconds that call_timeout allows.",
                "param": None,
            },
        ),
    ],
    ids=[
        "refused",
        "used up",
        "bug",
        "its own timeout",
        "its own cancellation",
        "nothing",
        "html",
        "bytes",
        "pixels",
        "time",
    ],
)
async def test_a_failure_fails_its_item_and_the_response_goes_on(
    backend: Painter, settings: dict[str, Any], error: dict[str, Any]
) -> None:
    server = ModelServer(*KITE_TURNS)
    client = await ask(middleware(server, backend, **settings), draw())
    assert check_stream(client.body, tools=[HOSTED], tool_choice="auto") == []
    final = read_events(client.body)[-1]["response"]
    item, _ = final["output"]
    assert (final["status"], item["status"], item["result"]) == ("completed", "failed", "")
    assert item["error"] == error
    _, output = pair(server.asked[1].json)
    assert json.loads(output["output"])["error"]["code"] == error["code"]


async def test_of_two_pictures_one_may_fail() -> None:
    def make(prompt: str) -> bytes:
        if prompt == "one":
            raise ImageError("No.")
        return png(prompt)

    server = ModelServer(calling("one", "two"), saying("Half."))
    client = await ask(middleware(server, Painter(makes=make)), draw())
    assert check_stream(client.body, tools=[HOSTED]) == []
    items = read_events(client.body)[-1]["response"]["output"]
    assert [item["status"] for item in items] == ["failed", "completed", "completed"]


async def test_the_time_for_a_picture_counts_from_its_call_queue_included() -> None:
    clock, painter = Clock(), Painter(waits=True)
    server = ModelServer(calling("one", "two"), saying("None."))
    async with conversation(middleware(server, painter, concurrency_per_response=1), draw()) as client:
        await painter.was_asked()
        await settle()
        await clock.forward(299)
        assert painter.cancelled == []
        await clock.forward(1)
    items = read_events(client.body)[-1]["response"]["output"]
    assert [item.get("error", {}).get("code") for item in items] == ["timeout", "timeout", None]
    assert painter.cancelled == ["one"]
    assert len(painter.asked) == 1


async def test_a_client_that_reads_slowly_uses_up_none_of_the_pictures_time_and_loses_no_frame() -> None:
    clock, painter = Clock(), Painter(waits=True)
    painter.may_preview.clear()
    tools = [{**HOSTED, "partial_images": 1}]
    async with conversation(middleware(ModelServer(*KITE_TURNS), painter), draw(tools=tools)) as client:
        await painter.was_asked()
        client.reads.clear()
        client.sent_to.clear()
        painter.may_preview.set()
        await client.sent_to.wait()
        await clock.forward(299)
        assert painter.cancelled == []
        client.reads.set()
        await client.heard(b"partial_image_b64")
        await settle()
        await clock.forward(299)
        assert painter.cancelled == []
        await clock.forward(2)
        assert painter.cancelled == [KITE]
    assert check_stream(client.body, tools=tools) == []
    item = read_events(client.body)[-1]["response"]["output"][0]
    assert item["error"]["code"] == "timeout"
    assert client.body.count(b"event: response.image_generation_call.partial_image\n") == 1
