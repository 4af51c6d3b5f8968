"""What a recording gives back: each prompt's picture, the ids that were made up, the moment."""

from __future__ import annotations

import base64
import io
import json

import pytest
from imagecall.middleware.backends.base import Image, ImageError, ImageRequest
from imagecall.middleware.recorded import RecordedBackend, recorded_clock, recorded_ids
from imagecall.middleware.replay import RecordedTurn, Recording
from PIL import Image as Canvas
from transcript import encode, event, message, preview_event


def png(colour: str) -> bytes:
    file = io.BytesIO()
    Canvas.new("RGB", (16, 16), colour).save(file, "png")
    return file.getvalue()


async def hand_out(backend: RecordedBackend, prompt: str) -> tuple[list[Image | bytes], Image]:
    previews: list[Image | bytes] = []

    async def on_partial(preview: Image | bytes) -> None:
        previews.append(preview)

    return previews, await backend.generate(ImageRequest(prompt), on_partial)


async def test_the_backend_gives_each_prompt_its_picture_and_the_rest_in_order() -> None:
    items = [
        {"id": "ig_0", "result": None, "status": "failed"},
        {"id": "ig_1", "revised_prompt": "rewritten", "result": base64.b64encode(png("red")).decode()},
        {
            "id": "ig_2",
            "revised_prompt": "blue",
            "result": base64.b64encode(png("blue")).decode(),
            "quality": "low",
        },
    ]
    done = [
        event("output_item.done", index, item={**item, "type": "image_generation_call"})
        for index, item in reversed([*enumerate(items)])
    ]
    shown = event(
        "image_generation_call.partial_image",
        2,
        "ig_2",
        **preview_event(0, base64.b64encode(png("grey")).decode(), quality="high"),
    )
    usage = {"total_tokens": 3}
    events = [
        shown,
        *message(3, "msg_1", "x"),
        *done,
        event("completed", response={"tool_usage": {"image_gen": usage}}),
    ]
    backend = RecordedBackend(Recording({}, (), encode(events) + b"data: [DONE]\n\n"))
    assert await hand_out(backend, "blue") == (
        [Image(png("grey"), "png", 16, 16, quality="high", keep_metadata=True)],
        Image(png("blue"), "png", 16, 16, revised_prompt="blue", quality="low", keep_metadata=True),
    )
    assert await hand_out(backend, "red") == (
        [],
        Image(png("red"), "png", 16, 16, revised_prompt="rewritten", usage=usage, keep_metadata=True),
    )
    with pytest.raises(ImageError, match="The picture failed when this was recorded"):
        await hand_out(backend, "green")
    with pytest.raises(ImageError, match="The recording holds no further picture") as caught:
        await hand_out(backend, "green")
    assert caught.value.code == "not_recorded"


async def test_a_recorded_failure_is_raised_as_it_was() -> None:
    error = {
        "type": "image_generation_user_error",
        "code": "moderation_blocked",
        "message": "No.",
        "param": "prompt",
        "moderation_details": {"stage": "input"},
    }
    item = {"type": "image_generation_call", "id": "ig_0", "status": "failed", "result": "", "error": error}
    backend = RecordedBackend(Recording({}, (), json.dumps({"output": [item]}).encode()))
    with pytest.raises(ImageError) as caught:
        await hand_out(backend, "red")
    raised = caught.value
    assert (raised.type, raised.code, raised.message, raised.param, raised.details) == (
        *(error[key] for key in ("type", "code", "message", "param")),
        {"moderation_details": {"stage": "input"}},
    )


def test_ids_that_no_turn_holds_are_given_again_in_order_and_then_counted() -> None:
    events = [
        event("created", response={"id": "resp_up"}),
        event("output_item.added", 0, item={"id": "ig_b", "type": "image_generation_call"}),
        event("image_generation_call.generating", 0, "ig_b"),
        event("output_item.added", 1, item={"id": "ig_a", "type": "image_generation_call"}),
        event("output_item.added", 2, item={"id": "msg_ig_1", "type": "message"}),
        event("output_item.added", 3, item={"id": "msg_2", "type": "message"}),
        event("output_item.added", 4, item={"id": "fc_up", "call_id": "call_x"}),
        event("completed", response={"id": "resp_up", "output": [{"id": "ig_b"}, {"id": "ig_a"}]}),
    ]
    upstream = RecordedTurn(b'data: {"id":"resp_up"}\n\ndata: {"id":"fc_up"}\n\n')
    new_id = recorded_ids(Recording({}, (upstream,), encode(events)))
    assert [new_id(prefix) for prefix in ("ig", "msg", "ig", "msg_ig", "call")] == [
        "ig_b",
        "msg_2",
        "ig_a",
        "msg_ig_1",
        "call_x",
    ]
    assert [new_id(prefix) for prefix in ("ig", "resp", "ig")] == [
        f"ig_{1:032d}",
        f"resp_{2:032d}",
        f"ig_{3:032d}",
    ]


@pytest.mark.parametrize(
    ("client", "moment"),
    [
        (
            encode(
                [event("created", response={"created_at": 5}), event("completed", response={"created_at": 6})]
            ),
            5.0,
        ),
        (b'{"object":"response","created_at":7.5,"output":[]}', 7.5),
        (b'{"error":{"message":"no"}}', 0.0),
        (b"", 0.0),
    ],
)
def test_the_clock_stands_still_at_the_recorded_moment(client: bytes, moment: float) -> None:
    now = recorded_clock(Recording({}, (), client))
    assert (now(), now()) == (moment, moment)
