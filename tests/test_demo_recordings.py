"""The demo's recordings: what is kept, for how long, and what comes out of the zip."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from imagecall.middleware.demo import demo_app
from imagecall.middleware.embedded.demo_recordings import DemoRecordings
from imagecall.middleware.recording import read_recording, replay_recording
from loopback import uvicorn_server
from painters import Painter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

TOOL = {"type": "image_generation", "partial_images": 1}


def client_of(app: Starlette) -> TestClient:
    return TestClient(app, raise_server_exceptions=False)


def told(client: TestClient, question: str, **more: Any) -> Any:
    """Ask, and return the last event's response, or the response itself."""
    answer = client.post("/v1/responses", json={"input": question, "tools": [TOOL], **more})
    assert answer.status_code == 200
    if not more.get("stream"):
        return answer.json()
    last = [line for line in answer.text.split("\n") if line.startswith("data: ")][-1]
    return json.loads(last.removeprefix("data: "))["response"]


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_can_be_had_as_a_recording_that_replays(stream: bool, tmp_path: Path) -> None:
    with client_of(demo_app("scripted", backend=Painter())) as client:
        identifier = told(client, "Draw a red cat", stream=stream)["id"]
        answer = client.get(f"/recordings/{identifier}")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
    recording = read_recording(tmp_path / f"imagecall-{identifier}")
    assert recording.request == {"input": "Draw a red cat", "tools": [TOOL], "stream": stream}
    assert len(recording.turns) == 2
    assert recording.meta["server"] == "imagecall demo"
    assert replay_recording(recording) == recording.client


async def test_exchanges_at_the_same_time_are_told_apart() -> None:
    app = demo_app("scripted", backend=Painter())
    async with uvicorn_server(app) as url, aiohttp.ClientSession(url) as session:

        async def turns_of(animal: str) -> bytes:
            request = {"input": f"Draw a {animal}", "tools": [TOOL]}
            async with session.post("/v1/responses", json=request) as answer:
                identifier = (await answer.json())["id"]
            async with session.get(f"/recordings/{identifier}") as saved:
                archive = zipfile.ZipFile(io.BytesIO(await saved.read()))
            names = [name for name in archive.namelist() if "/upstream." in name]
            assert len(names) == 2
            return b"".join(archive.read(name) for name in names)

        zebra, walrus = await asyncio.gather(turns_of("zebra"), turns_of("walrus"))
    assert [(b"zebra" in turns, b"walrus" in turns) for turns in (zebra, walrus)] == [
        (True, False),
        (False, True),
    ]


def test_what_was_never_answered_or_is_gone_is_not_found() -> None:
    with client_of(demo_app("scripted")) as client:
        assert client.post("/v1/responses", json={"input": 5}).status_code == 400
        answer = client.get("/recordings/resp_0")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == (
        "There is no recording of this answer any more; the newest 16 are kept."
    )


def watched(answer: Response, recordings: DemoRecordings, *, upstream: bool = True) -> Starlette:
    """Build an app whose API asks its model server, if told to, and then answers so."""

    async def serve_model(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"said": 1})(scope, receive, send)

    model = recordings.below(serve_model)

    async def ignore(message: Any) -> None:
        pass

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        if upstream:
            await model(scope, receive, ignore)
        await answer(scope, receive, send)

    overheard = recordings.around(api)

    async def served(request: Request) -> Response:
        raise NotImplementedError

    route = Route("/v1/responses", served, methods=["GET", "POST"])
    route.app = overheard
    return Starlette(routes=[route, Route("/recordings/{response_id}", recordings.download)])


def found(client: TestClient, identifier: str) -> bool:
    return client.get(f"/recordings/{identifier}").status_code == 200


def test_only_the_newest_are_kept() -> None:
    recordings = DemoRecordings(most=2)
    for identifier in ("resp_1", "resp_2", "resp_3"):
        client = client_of(watched(JSONResponse({"id": identifier}), recordings))
        client.post("/v1/responses", json={})
    assert [found(client, f"resp_{number}") for number in (1, 2, 3)] == [False, True, True]


def test_together_they_hold_no_more_than_allowed() -> None:
    recordings = DemoRecordings(max_bytes=80)
    for identifier in ("resp_1", "resp_2"):
        client = client_of(watched(JSONResponse({"id": identifier}), recordings))
        client.post("/v1/responses", json={"input": "x" * 30})
    assert [found(client, f"resp_{number}") for number in (1, 2)] == [False, True]
    client.post("/v1/responses", json={"input": "x" * 300})
    assert not found(client, "resp_2")


@pytest.mark.parametrize(
    "answer",
    [
        Response("data: {"),
        Response("<html>"),
        JSONResponse([]),
        JSONResponse({"id": 1}),
        JSONResponse({"response": None}),
        Response('data: {"response": {"id": "resp_1"}}\n\n', status_code=200),
    ],
)
def test_what_is_no_answer_of_the_api_is_not_kept(answer: Response) -> None:
    recordings = DemoRecordings()
    client = client_of(watched(answer, recordings))
    client.post("/v1/responses", json={})
    assert found(client, "resp_1") == (b"resp_1" in bytes(answer.body))


def test_an_answer_without_a_model_server_or_with_an_unreadable_request_is_not_kept() -> None:
    recordings = DemoRecordings()
    client = client_of(watched(JSONResponse({"id": "resp_1"}), recordings, upstream=False))
    client.post("/v1/responses", json={})
    assert not found(client, "resp_1")
    client = client_of(watched(JSONResponse({"id": "resp_1"}), recordings))
    client.post("/v1/responses", content=gzip.compress(b"{}"))
    assert not found(client, "resp_1")


def test_the_model_server_can_be_asked_outside_of_any_exchange() -> None:
    recordings = DemoRecordings()
    client = client_of(watched(JSONResponse({"id": "resp_1"}), recordings))
    assert client.get("/v1/responses").status_code == 200
    assert not found(client, "resp_1")
