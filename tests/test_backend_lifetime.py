"""A backend that must be opened: once, when it is first needed, and closed by the task that opened it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Self

import pytest
from asgi import ask, conversation, draw, lifespan, middleware
from imagecall.middleware.backends.base import ImageError, ImageRequest
from imagecall.middleware.backends.owner import BackendOwner
from kite import kite_stream, usage
from model_server import HOSTED, KITE_TURNS, ModelServer, calling, saying
from painters import Painter, Studio
from rules import check_stream, read_events
from waiting import settle

EXPECTED = kite_stream(spent=usage(200, 20))


async def test_a_backend_is_opened_once_and_closed_at_shutdown_by_the_same_task() -> None:
    studio = Studio()
    app = middleware(ModelServer(*KITE_TURNS, *KITE_TURNS), studio)
    async with lifespan(app):
        assert studio.opened == []
        client = await ask(app, draw(), owners=1)
        assert read_events(client.body) == EXPECTED
        await ask(app, draw())
        assert (len(studio.opened), studio.closed) == (1, [])
    assert studio.closed == studio.opened
    assert studio.opened[0] is not asyncio.current_task()


async def test_what_outlives_a_request_knows_nothing_of_the_one_that_opened_it() -> None:
    request, seen = ContextVar("request", default=""), []

    class Watching(Studio):
        async def __aenter__(self) -> Self:
            seen.append(request.get())
            return await super().__aenter__()

    app = middleware(ModelServer(*KITE_TURNS), Watching())
    async with lifespan(app):
        token = request.set("the first one")
        await ask(app, draw(), owners=1)
        request.reset(token)
    assert seen == [""]


async def test_shutdown_without_a_picture_opens_nothing() -> None:
    studio = Studio()
    async with lifespan(middleware(ModelServer(), studio)):
        pass
    async with lifespan(middleware(ModelServer(), Painter())):
        pass
    assert (studio.opened, studio.closed) == ([], [])


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ConnectionRefusedError("no"), "image_backend_error"),
        (ImageError("The painter is at lunch.", code="at_lunch"), "at_lunch"),
        (asyncio.CancelledError(), "no_backend"),
    ],
    ids=["an error", "an ImageError", "a cancellation"],
)
async def test_a_backend_that_cannot_be_opened_fails_the_call_and_the_next_one_tries_again(
    failure: BaseException, code: str
) -> None:
    studio = Studio(failure)
    app = middleware(ModelServer(*KITE_TURNS, *KITE_TURNS), studio)
    async with lifespan(app):
        client = await ask(app, draw())
        assert check_stream(client.body, tools=[HOSTED]) == []
        item = read_events(client.body)[-1]["response"]["output"][0]
        assert (item["status"], item["error"]["code"]) == ("failed", code)
        client = await ask(app, draw(), owners=1)
        assert client.body.count(b"event: response.image_generation_call.completed\n") == 1
    assert len(studio.opened) == 2
    assert studio.closed == studio.opened[1:]


async def test_all_that_wait_for_an_opening_share_its_failure() -> None:
    studio = Studio(OSError())
    server = ModelServer(calling("one", "two"), saying("None."))
    client = await ask(middleware(server, studio), draw())
    items = read_events(client.body)[-1]["response"]["output"]
    assert [item["status"] for item in items] == ["failed", "failed", "completed"]
    assert len(studio.opened) == 1


async def test_an_error_while_closing_is_logged_and_shutdown_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    studio = Studio(closing=RuntimeError("key=s3cret"))
    app = middleware(ModelServer(*KITE_TURNS), studio)
    async with lifespan(app):
        await ask(app, draw(), owners=1)
    assert "The image backend did not close cleanly: RuntimeError" in caplog.messages
    assert "s3cret" not in caplog.text


async def test_a_client_that_leaves_while_the_backend_is_opened_spoils_nothing_for_others() -> None:
    studio = Studio()
    studio.may_open.clear()
    server = ModelServer(KITE_TURNS[0], *KITE_TURNS)
    app = middleware(server, studio)
    async with lifespan(app):
        async with conversation(app, draw(), owners=1) as impatient:
            await studio.opening.wait()
            await impatient.heard(b"image_generation_call.generating")
            await settle()
            impatient.leave()
        async with conversation(app, draw()) as client:
            await client.heard(b"image_generation_call.generating")
            studio.may_open.set()
        assert [event["type"] for event in read_events(client.body)] == [event["type"] for event in EXPECTED]
    assert len(studio.opened) == 1
    assert studio.closed == studio.opened
    assert len(studio.asked) == 1


async def test_an_opening_that_fails_when_nobody_waits_any_more_is_tried_again() -> None:
    studio = Studio(OSError())
    studio.may_open.clear()
    app = middleware(ModelServer(KITE_TURNS[0], *KITE_TURNS), studio)
    async with lifespan(app):
        async with conversation(app, draw(), owners=1) as impatient:
            await studio.opening.wait()
            impatient.leave()
        studio.may_open.set()
        await settle()
        client = await ask(app, draw(), owners=1)
        assert client.body.count(b"event: response.image_generation_call.completed\n") == 1


async def test_shutdown_does_not_wait_for_a_backend_that_never_opens() -> None:
    studio = Studio()
    studio.may_open.clear()
    app = middleware(ModelServer(KITE_TURNS[0]), studio)
    async with lifespan(app), conversation(app, draw(), owners=1) as client:
        await studio.opening.wait()
        client.leave()
    assert (len(studio.opened), studio.closed) == (1, [])


async def test_a_session_that_breaks_is_opened_anew() -> None:
    studio = Studio()
    app = middleware(ModelServer(*KITE_TURNS, *KITE_TURNS), studio)
    async with lifespan(app):
        await ask(app, draw(), owners=1)
        assert studio.opened[0] is not None
        studio.opened[0].cancel()  # as a task group does when one of its tasks fails
        await settle()
        await ask(app, draw(), owners=1)
    assert studio.closed == studio.opened
    assert len(studio.opened) == 2


async def test_a_backend_without_a_session_is_ready_as_it_is() -> None:
    painter = Painter()
    owner = BackendOwner(painter, concurrency=1, queue=1)
    assert await owner.backend() is painter
    assert await (await owner.backend()).generate(ImageRequest("x"), _ignore)


async def _ignore(preview: object) -> None:
    raise AssertionError("no preview was asked for")
