"""Every limit: what just keeps it passes, what goes beyond by the least is told to the client, in words.

Each row of `LIMITS` says how a limit is met, and what a client then sees, in a stream and in an answer of one
piece: the items of the response and its end, or the error in its place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from asgi import conversation, middleware
from imagecall.events.sse import KEEPALIVE
from imagecall.middleware.settings import Settings
from limits import (
    EDIT,
    LONG,
    LOOK,
    MADE,
    PROMPT,
    Play,
    asking,
    at_a_time,
    body_size,
    depth,
    event_size,
    fetched_picture,
    image_server_time,
    kept,
    packed_body,
    painted_until,
    pictures_of_an_edit,
    pictures_per_response,
    place_in_the_queue,
    previews,
    references,
    silence,
    sized,
    socket_message,
    turns,
    turns_per_response,
)
from model_server import calling, saying
from painters import Painter
from sockets import create
from waiting import Clock, settle


@dataclass(frozen=True)
class Limit:
    """One row.

    Attributes:
        play: meets it.
        within: what is seen of what just keeps it.
        stream: what is seen in a stream of what goes beyond.
        whole: the same in an answer of one piece, where it is another.
    """

    play: Play
    stream: list[str]
    whole: list[str] | None = None
    within: tuple[str, ...] = ("picture completed", "message", "completed")


def picture(code: str, message: str) -> list[str]:
    return [f"picture failed ({code}): {message}", "message", "completed"]


def failure(words: str, *before: str) -> tuple[list[str], list[str]]:
    """A response that fails before any picture: a terminal event in a stream, else a 502."""
    return [*before, f"failed: {words}"], [f"502 {words}"]


TEXT = ("message", "completed")
TWO = ("picture completed", "picture completed", "message", "completed")
THREE = ("picture completed", *TWO)
GONE = ["404 Previous response with id 'resp_up2' not found."]
KITE_ARGUMENTS = json.dumps({"prompt": PROMPT})


def too_large(what: str, allowed: int, setting: str) -> str:
    return f"{what} larger than the {allowed} bytes that {setting} allows."


LIMITS = {
    "max_body": Limit(
        sized("max_body", body_size, input=LONG),
        [too_large("413 The request body is", body_size(True) - 1, "max_body")],
        [too_large("413 The request body is", body_size(False) - 1, "max_body")],
    ),
    "max_body, unpacked": Limit(
        packed_body,
        [too_large("413 The request body is", body_size(True) - 1, "max_body")],
        [too_large("413 The request body is", body_size(False) - 1, "max_body")],
    ),
    "max_body, of a WebSocket message": Limit(
        socket_message,
        [too_large("413 The message is", len(json.dumps(create())) - 1, "max_body")],
    ),
    "nesting": Limit(depth, ["400 The request is JSON nested too deeply, more than 200 levels."]),
    "references": Limit(
        references,
        [
            (
                "400 The input names 2001 items by their ids alone, more than the 2000 that are looked up; "
                "send the items themselves, or go on with 'previous_response_id'."
            )
        ],
    ),
    "previews": Limit(
        previews,
        ["400 Invalid value for 'tools[0].partial_images': input should be less than or equal to 3."],
    ),
    "max_event": Limit(
        sized("max_event", event_size, saying("Hello, there.")),
        [
            "message",
            too_large("failed: The model server sent an event", event_size(True) - 1, "max_event"),
        ],
        [too_large("502 The model server's answer is", event_size(False) - 1, "max_event")],
        TEXT,
    ),
    "max_arguments": Limit(
        sized("max_arguments", len(KITE_ARGUMENTS)),
        picture(
            "invalid_arguments",
            f"The arguments are longer than the {len(KITE_ARGUMENTS) - 1} characters that max_arguments "
            "allows.",
        ),
    ),
    "max_prompt": Limit(
        sized("max_prompt", len(PROMPT)),
        picture(
            "invalid_arguments",
            f"The argument 'prompt' has {len(PROMPT)} characters, more than the {len(PROMPT) - 1} that "
            "max_prompt allows.",
        ),
    ),
    "max_image": Limit(
        sized("max_image", len(MADE)),
        picture("image_too_large", f"The picture has {len(MADE)} bytes; max_image allows {len(MADE) - 1}."),
    ),
    "max_image, fetched": Limit(
        fetched_picture,
        picture(
            "image_too_large",
            f"The picture's URL gives more than the {len(MADE)} bytes that max_image allows.",
        ),
    ),
    "max_pixels": Limit(
        sized("max_pixels", 48 * 32),
        picture("image_too_large", "The picture is 48x32; max_pixels allows 1,535 pixels."),
    ),
    "max_pixels, of a picture to edit": Limit(
        sized("max_pixels", 48 * 32, calling("", arguments=EDIT), saying("Done."), input=LOOK),
        picture(
            "image_too_large",
            "A picture from the user cannot be edited. The picture is 48x32; max_pixels allows 1,535 pixels.",
        ),
    ),
    "pictures of an edit": Limit(
        pictures_of_an_edit,
        picture(
            "invalid_arguments",
            "num_last_images_to_include must be a whole number from 1 to 5; leave it out to draw a new "
            "picture.",
        ),
    ),
    "max_images": Limit(pictures_per_response, ["picture completed", "message", "completed"], within=TWO),
    "max_turns": Limit(turns_per_response, ["picture completed", "message", "completed"], within=TWO),
    "call_timeout": Limit(
        painted_until("call_timeout"),
        picture("timeout", "No picture was made within the 50 seconds that call_timeout allows."),
    ),
    "response_timeout": Limit(
        painted_until("response_timeout"),
        *failure(
            "The response was not finished within the 50 seconds that response_timeout allows.",
            "picture failed (cancelled): The response ended before the picture was finished.",
        ),
    ),
    "upstream_idle": Limit(
        silence,
        *failure("The model server was silent for the 50 seconds that upstream_idle allows.", "message"),
        TEXT,
    ),
    "backend_timeout": Limit(
        image_server_time,
        picture(
            "timeout", "The image server made no picture within the 0.1 seconds that backend_timeout allows."
        ),
    ),
    "backend_queue": Limit(
        place_in_the_queue,
        [
            "picture completed",
            (
                "picture failed (backend_busy): The image backend is busy: it had no place free within the "
                "50 seconds that backend_queue allows."
            ),
            "message",
            "completed",
        ],
        within=TWO,
    ),
    "backend_concurrency": Limit(at_a_time("backend_concurrency"), [*THREE], within=THREE),
    "concurrency": Limit(at_a_time("concurrency"), [*THREE], within=THREE),
    "concurrency_per_response": Limit(at_a_time("concurrency_per_response"), [*THREE], within=THREE),
    "store_ttl": Limit(kept(ttl=(50, 49)), GONE, within=TEXT),
    "store_bytes": Limit(kept(max_bytes=(1 << 20, 1000)), GONE, within=TEXT),
    "store_entries": Limit(kept(entries=(100, 1)), GONE, within=TEXT),
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
async def test_what_keeps_a_limit_passes_and_what_goes_beyond_is_told(limit: Limit, stream: bool) -> None:
    assert await limit.play(False, stream) == [*limit.within]
    told = limit.stream if stream or limit.whole is None else limit.whole
    assert await limit.play(True, stream) == told


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_silence_of_just_the_interval_is_broken_by_a_comment_where_there_is_a_stream(
    stream: bool,
) -> None:
    clock, painter = Clock(), Painter(waits=True)
    server = turns(stream, calling(PROMPT), saying("Done."))
    async with conversation(middleware(server, painter, keepalive=15), asking(stream)) as client:
        await painter.was_asked()
        await settle()
        await clock.forward(14)
        assert KEEPALIVE not in client.body if client.messages else True
        await clock.forward(1)
        assert client.pieces[-1:] == ([KEEPALIVE] if stream else [])
        painter.may_finish.set()


def test_the_table_has_a_row_for_each_setting_that_is_a_limit() -> None:
    numbers = {
        name for name, field in Settings.model_fields.items() if isinstance(field.default, int | float)
    }
    numbers -= {name for name in numbers if isinstance(Settings.model_fields[name].default, bool)}
    # Their outcome is nothing that a client sees: test_openai_images_retries, test_disconnect, test_shutdown.
    unseen = {"backend_retries", "disconnect_grace", "shutdown_grace"}
    assert numbers - unseen - {"keepalive"} <= {name.partition(",")[0] for name in LIMITS}
