"""The official SDK against a real server: what it retrieves, resumes, lists, cancels and deletes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from imagecall.middleware.embedded.scripted import scripted_app
from openai.types.responses import Response
from painters import png
from serving import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

TOOLS: Any = [{"type": "image_generation", "partial_images": 1}]
COMPACTED = {"id": "cmp_1", "object": "response.compaction", "created_at": 1, "output": [], "usage": None}


class Easel:
    """A backend that waits when it is told to."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.waits = False

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        await on_partial(png("preview"))
        if self.waits:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return png(request.prompt)


async def count(request: Request) -> JSONResponse:
    asked = await request.json()
    assert "stream" not in asked
    assert "image_generation_call" not in {item.get("type") for item in asked["input"]}
    return JSONResponse({"object": "response.input_tokens", "input_tokens": len(asked["input"])})


async def compact(request: Request) -> JSONResponse:
    asked = await request.json()
    assert asked["previous_response_id"].startswith("resp_")
    return JSONResponse(COMPACTED)


@pytest.fixture(scope="module")
def easel() -> Easel:
    return Easel()


@pytest.fixture(scope="module")
def client(easel: Easel) -> Iterator[openai.OpenAI]:
    routes = [
        Route("/v1/responses/input_tokens", count, methods=["POST"]),
        Route("/v1/responses/compact", compact, methods=["POST"]),
        Mount("/", scripted_app()),
    ]
    app = ImageGenerationMiddleware(Starlette(routes=routes), easel)
    with serve(app) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        yield client


def drawn(client: openai.OpenAI, **more: Any) -> Response:
    """Make a response with a picture in it."""
    request: Any = {"model": "scripted", "input": "Draw a red kite.", "tools": TOOLS, **more}
    *_, last = client.responses.create(stream=True, **request)
    assert last.type == "response.completed"
    return last.response


def test_a_response_is_retrieved_as_it_was_streamed(client: openai.OpenAI) -> None:
    told = drawn(client)
    assert "image_generation_call" in [item.type for item in told.output]
    assert client.responses.retrieve(told.id).to_dict() == told.to_dict()


def test_its_stream_is_resumed_from_any_number_on(client: openai.OpenAI) -> None:
    told = drawn(client)
    events = [*client.responses.retrieve(told.id, stream=True)]
    assert [event.sequence_number for event in events] == [*range(len(events))]
    later = [*client.responses.retrieve(told.id, stream=True, starting_after=4)]
    assert [event.to_dict() for event in later] == [event.to_dict() for event in events[5:]]
    with client.responses.stream(response_id=told.id, starting_after=4) as stream:
        assert [event.sequence_number for event in stream] == [*range(5, len(events))]
        assert stream.get_final_response().id == told.id


def test_the_input_items_are_listed(client: openai.OpenAI) -> None:
    items: Any = [{"role": "user", "content": f"Draw kite {number}."} for number in range(5)]
    told = drawn(client, input=items)
    page = client.responses.input_items.list(told.id, limit=2, order="asc")
    texts = [item.to_dict()["content"][0]["text"] for item in page]  # type: ignore[index]  # all are messages
    assert texts == [f"Draw kite {number}." for number in range(5)]
    assert page.data[0].type == "message"


def test_a_deleted_response_is_gone(client: openai.OpenAI) -> None:
    told = drawn(client)
    client.responses.delete(told.id)
    with pytest.raises(openai.NotFoundError, match="not found") as caught:
        client.responses.retrieve(told.id)
    assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError) as caught:
        drawn(client, previous_response_id=told.id)
    assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")


def test_another_key_finds_nothing(client: openai.OpenAI) -> None:
    told = drawn(client)
    with pytest.raises(openai.NotFoundError):
        client.with_options(api_key="another").responses.retrieve(told.id)


def test_tokens_are_counted_and_histories_compacted(client: openai.OpenAI) -> None:
    told = drawn(client)
    history: Any = [{"role": "user", "content": "Draw."}, *[item.to_dict() for item in told.output]]
    counted = client.responses.input_tokens.count(model="scripted", input=history, tools=TOOLS)
    assert counted.input_tokens == len(history) + 1
    compacted = client.responses.compact(model="scripted", previous_response_id=told.id)
    assert compacted.id == "cmp_1"


# -- in the background -----------------------------------------------------------------------------


def polled(client: openai.OpenAI, identifier: str) -> Response:
    while (response := client.responses.retrieve(identifier)).status in ("queued", "in_progress"):
        pass
    return response


def test_a_response_in_the_background_is_polled(client: openai.OpenAI) -> None:
    queued = client.responses.create(model="scripted", input="Draw a red kite.", tools=TOOLS, background=True)
    assert (queued.status, queued.background, queued.output) == ("queued", True, [])
    done = polled(client, queued.id)
    assert (done.id, done.status) == (queued.id, "completed")
    assert "image_generation_call" in [item.type for item in done.output]


def test_a_stream_in_the_background_is_left_and_resumed(client: openai.OpenAI) -> None:
    stream = client.responses.create(
        model="scripted", input="Draw a red kite.", tools=TOOLS, background=True, stream=True
    )
    first = next(iter(stream))
    assert first.type == "response.created"
    stream.close()
    rest = [*client.responses.retrieve(first.response.id, stream=True, starting_after=0)]
    assert [event.sequence_number for event in rest] == [*range(1, len(rest) + 1)]
    assert rest[-1].type == "response.completed"


def test_a_response_in_the_background_is_cancelled(client: openai.OpenAI, easel: Easel) -> None:
    easel.waits = True
    queued = client.responses.create(model="scripted", input="Draw a red kite.", tools=TOOLS, background=True)
    for event in client.responses.retrieve(queued.id, stream=True):
        if event.type == "response.image_generation_call.partial_image":
            break
    cancelled = client.responses.cancel(queued.id)
    assert (cancelled.id, cancelled.status) == (queued.id, "cancelled")
    assert easel.cancelled.wait(30)
    assert client.responses.retrieve(queued.id).status == "cancelled"
    easel.waits = False


def test_what_does_not_run_in_the_background_cannot_be_cancelled(client: openai.OpenAI) -> None:
    told = drawn(client)
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        client.responses.cancel(told.id)
