"""Edits: the pictures that a backend gets, when they are fetched, and what happens if they cannot be had."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import PIL.Image
import pytest
from asgi import ask, draw, middleware
from imagecall.events.pictures import Picture
from imagecall.events.tools.base import ToolCall, ToolOutcome
from imagecall.middleware.backends.base import ImageRequest
from imagecall.middleware.backends.routing import make_routing
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.edits.artifacts import Artifacts
from imagecall.middleware.edits.pictures import Pictures
from imagecall.middleware.edits.workspace import Workspace
from imagecall.middleware.runner import Runner
from imagecall.middleware.settings import load_settings
from imagecall.middleware.shared import Shared
from imagecall.middleware.shutdown import Shutdown
from imagecall.middleware.telemetry.picture import ObservedPicture
from imagecall.middleware.telemetry.telemetry import Telemetry
from kite import SAID
from model_server import HOSTED, ModelServer, calling, saying
from opentelemetry.context import Context
from painters import Painter, png
from picture_files import encoded, read
from rules import check_stream, read_events
from scene_pictures import pixels, share
from waiting import Clock, News, no_hanging

GREY = encoded(PIL.Image.new("RGB", (160, 120), (150, 150, 150)), "png")


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def sent(*data: bytes, text: str = "Make it red.") -> dict[str, Any]:
    """Make a user's message with pictures."""
    parts = [{"type": "input_image", "image_url": url(picture), "detail": "auto"} for picture in data]
    return {"type": "message", "role": "user", "content": [*parts, {"type": "input_text", "text": text}]}


def editing(**arguments: Any) -> ModelServer:
    words = json.dumps({"prompt": "make it red", **arguments})
    return ModelServer(calling("", arguments=words), saying(*SAID))


async def edited(
    server: ModelServer, backend: Any, tool: dict[str, Any], *items: dict[str, Any]
) -> dict[str, Any]:
    """Have one picture edited; return its item, after the whole stream was checked."""
    client = await ask(middleware(server, backend), draw(tools=[tool], input=[*items]))
    assert check_stream(client.body, tools=[tool], tool_choice="auto") == []
    item: dict[str, Any]
    item, said = read_events(client.body)[-1]["response"]["output"]
    assert said["content"][0]["text"] == "".join(SAID)
    return item


# -- through the middleware ------------------------------------------------------------------------


async def test_a_backend_gets_the_users_pictures_in_their_order_and_the_mask() -> None:
    painter = Painter()
    mask = encoded(PIL.Image.new("RGBA", (160, 120)), "png")
    tool = {**HOSTED, "input_image_mask": {"image_url": url(mask)}, "input_fidelity": "high"}
    first, second, third = png("first"), png("second"), GREY
    server = editing(num_last_images_to_include=2)
    item = await edited(server, painter, tool, sent(first, second), sent(third))
    assert painter.asked == [
        ImageRequest(
            prompt="make it red",
            input_fidelity="high",
            images=(read(second), read(third)),
            mask=read(mask),
        )
    ]
    assert (item["status"], item["action"]) == ("completed", "edit")


async def test_the_offline_scene_puts_the_new_words_over_an_earlier_picture() -> None:
    left = PIL.Image.new("RGBA", (160, 120), "black")
    left.paste((0, 0, 0, 0), (80, 0, 160, 120))
    tool = {
        **HOSTED,
        "action": "edit",
        "input_image_mask": {"image_url": url(encoded(left, "png"))},
        "output_format": "png",
    }
    earlier = {
        "type": "image_generation_call",
        "id": "ig_before",
        "status": "completed",
        "result": base64.b64encode(GREY).decode(),
    }
    server = editing()
    item = await edited(server, SceneBackend(), tool, earlier, sent())
    assert not any(base64.b64encode(GREY) in asked.body for asked in server.asked)
    made = read(base64.b64decode(item["result"]))
    assert (item["status"], item["action"], item["size"]) == ("completed", "edit", "160x120")
    picture = pixels(made)
    assert picture.crop((0, 0, 79, 120)).getextrema() == ((150, 150),) * 3
    assert share(picture.crop((81, 0, 160, 120)), lambda r, g, b: r > 180 > 120 > max(g, b)) == 1


@pytest.mark.parametrize(
    ("tool", "picture", "error"),
    [
        (HOSTED, b"<html>", "A picture from the user cannot be edited. The data is not a PNG"),
        ({**HOSTED, "input_image_mask": {"image_url": "data:,x"}}, GREY, "The data URL is not in base64."),
        ({**HOSTED, "input_image_mask": {"image_url": "https://a.example/"}}, GREY, "not fetched from URLs"),
    ],
)
async def test_a_picture_that_cannot_be_had_fails_the_item_without_asking_the_backend(
    tool: dict[str, Any], picture: bytes, error: str
) -> None:
    painter = Painter()
    server = editing(num_last_images_to_include=1)
    item = await edited(server, painter, tool, sent(picture))
    assert painter.asked == []
    assert (item["status"], item["result"]) == ("failed", "")
    assert error in item["error"]["message"]
    output = server.asked[1].json["input"][-1]
    assert output["type"] == "function_call_output"
    told = json.loads(output["output"])["error"]
    assert (told["code"], told["message"]) == (item["error"]["code"], item["error"]["message"])


async def test_a_file_of_the_workspace_is_edited_and_the_model_learns_where_the_result_lies(
    tmp_path: Path,
) -> None:
    (tmp_path / "cat.png").write_bytes(GREY)
    painter = Painter()
    server = editing(referenced_image_paths=["cat.png"])
    folders = {"workspace_dir": tmp_path, "artifact_dir": tmp_path / "made", "artifact_hint": True}
    await ask(middleware(server, painter, **folders), draw())
    assert [request.images for request in painter.asked] == [(read(GREY),)]
    told = json.loads(server.asked[1].json["input"][-1]["output"])
    path = tmp_path / "made" / "resp_up1" / "ig_1.png"
    assert told["saved_as"] == str(path)
    assert path.read_bytes() == png("make it red")


# -- the runner alone ------------------------------------------------------------------------------


class Told:
    """Stands for the translator: knows the response's id, and keeps what it is told."""

    response_id = "resp_1"

    def __init__(self) -> None:
        self.outcomes: dict[str, ToolOutcome] = {}
        self._news = News()

    def tool_finished(self, call_id: str, outcome: ToolOutcome) -> list[Any]:
        self.outcomes[call_id] = outcome
        self._news.tell()
        return []

    async def finished(self, call_id: str) -> ToolOutcome:
        await self._news.until(lambda: call_id in self.outcomes)
        return self.outcomes[call_id]


class Kept:
    """A store that gives its pictures when it may; what it has not is gone."""

    def __init__(self, *ids: str) -> None:
        self.ids = ids
        self.asked = asyncio.Event()
        self.may_give = asyncio.Event()
        self.may_give.set()

    async def picture(self, id: str) -> bytes | None:  # noqa: A002  the wire's own name
        self.asked.set()
        await self.may_give.wait()
        return base64.b64encode(GREY) if id in self.ids else None


@asynccontextmanager
async def running(
    painter: Painter,
    store: Kept | None = None,
    *,
    slots: int = 1,
    workspace: Path | None = None,
    artifacts: Path | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Runner, Told]]:
    settings = load_settings(options)
    told = Told()

    async def report(decide: Any) -> None:
        assert decide() == []

    files = None if workspace is None else Workspace(workspace, max_bytes=settings.max_image)
    shared = Shared(
        app=ModelServer(),
        settings=settings,
        routing=make_routing(settings, painter),
        slots=asyncio.Semaphore(slots),
        shutdown=Shutdown(0),
        telemetry=Telemetry(),
        artifacts=None if artifacts is None else Artifacts(artifacts),
    )
    with no_hanging() as deadline:
        async with deadline, asyncio.TaskGroup() as group:
            yield (
                Runner(
                    shared,
                    cast("Any", told),
                    report,
                    group,
                    observe=partial(ObservedPicture, shared.telemetry, Context()),
                    pictures=Pictures(
                        store, None, files, max_bytes=settings.max_image, max_pixels=settings.max_pixels
                    ),
                ),
                told,
            )


def call(id: str, *images: Picture, **more: Any) -> ToolCall:  # noqa: A002  the wire's own name
    return ToolCall(id, {"prompt": id, "images": images, **more} if images else {"prompt": id, **more})


async def test_stored_pictures_and_files_of_the_workspace_reach_the_backend(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(png("cat"))
    painter = Painter()
    async with running(painter, Kept("ig_0"), workspace=tmp_path) as (runner, told):
        runner.start(call("ig_1", Picture(path="cat.png"), Picture("ig_0"), mask=Picture(path="cat.png")))
        assert (await told.finished("ig_1")).error is None
    assert painter.asked == [
        ImageRequest("ig_1", images=(read(png("cat")), read(GREY)), mask=read(png("cat")))
    ]


async def test_a_picture_that_is_gone_is_told_while_all_places_are_taken(tmp_path: Path) -> None:
    painter = Painter()
    async with running(painter, Kept(), slots=0, backend_concurrency=1) as (runner, told):
        runner.start(call("ig_1", Picture("ig_0")))
        error = (await told.finished("ig_1")).error
    assert error is not None
    assert (error.code, error.message) == (
        "image_not_found",
        "The picture ig_0 is no longer available and cannot be edited.",
    )
    assert painter.asked == []


async def test_a_slow_picture_takes_no_place_from_others() -> None:
    painter, store = Painter(), Kept("ig_0")
    store.may_give.clear()
    async with running(painter, store, slots=1, backend_concurrency=1) as (runner, told):
        runner.start(call("ig_1", Picture("ig_0")))
        await store.asked.wait()
        runner.start(call("ig_2"))
        assert (await told.finished("ig_2")).error is None
        store.may_give.set()
        assert (await told.finished("ig_1")).error is None
    assert [request.prompt for request in painter.asked] == ["ig_2", "ig_1"]


async def test_a_picture_that_never_comes_uses_up_the_calls_time() -> None:
    clock, store = Clock(), Kept("ig_0")
    store.may_give.clear()
    async with running(Painter(), store, call_timeout=60) as (runner, told):
        runner.start(call("ig_1", Picture("ig_0")))
        await store.asked.wait()
        await clock.forward(60)
        error = (await told.finished("ig_1")).error
    assert error is not None
    assert (error.code, error.message) == (
        "timeout",
        "No picture was made within the 60 seconds that call_timeout allows.",
    )


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hint", [False, True])
async def test_a_finished_picture_is_also_written_and_told_only_if_wanted(tmp_path: Path, hint: bool) -> None:
    async with running(Painter(), artifacts=tmp_path, artifact_hint=hint) as (runner, told):
        runner.start(call("ig_1"))
        outcome = await told.finished("ig_1")
    path = tmp_path / "resp_1" / "ig_1.png"
    assert path.read_bytes() == png("ig_1") == base64.b64decode(outcome.data)
    assert outcome.path == (str(path) if hint else None)


async def test_a_failed_write_is_a_warning_and_the_picture_completes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    async with running(Painter(), artifacts=tmp_path / "file", artifact_hint=True) as (runner, told):
        runner.start(call("ig_1"))
        outcome = await told.finished("ig_1")
    assert (base64.b64decode(outcome.data), outcome.path, outcome.error) == (png("ig_1"), None, None)
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.getMessage() == "ig_1 was not written into the artifact folder: File exists"


async def test_a_failed_picture_leaves_no_file(tmp_path: Path) -> None:
    async with running(Painter(makes=lambda _: b"<html>"), artifacts=tmp_path) as (runner, told):
        runner.start(call("ig_1"))
        assert (await told.finished("ig_1")).error is not None
    assert not (tmp_path / "resp_1").exists()
