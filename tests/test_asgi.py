"""What is ours, what passes, and what is answered before anybody else is asked."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from typing import Any

import imagecall.middleware.asgi
import pytest
from asgi import Client, ask, draw, middleware, post
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.scene import SceneBackend
from kite import KITE, SAID, kite_stream, usage
from model_server import HOSTED, KITE_TURNS, Answer, ModelServer, calling
from painters import Painter
from rules import check_stream, read_events
from starlette.types import Message, Receive, Scope, Send

EXPECTED = kite_stream(spent=usage(200, 20))


class Mirror:
    """An inner application that notes what it got and answers with messages of its own."""

    def __init__(self) -> None:
        self.scope: Scope | None = None
        self.send: Send | None = None
        self.received: list[Message] = []
        self.answer: list[Message] = [
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]},
            {"type": "http.response.body", "body": b"a", "more_body": True},
            {"type": "http.response.body", "body": b"", "more_body": True},
            {"type": "http.response.body", "body": b"bc", "more_body": False},
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.send = scope, send
        while True:
            message = await receive()
            self.received.append(message)
            if not message.get("more_body"):
                break
        for message in self.answer:
            await send(message)


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


OURS = body(draw())
FORM = b"application/x-www-form-urlencoded"

PASSES: dict[str, tuple[Scope, list[bytes]]] = {
    "GET": (post(method="GET"), [b""]),
    "PUT": (post(method="PUT"), [OURS]),
    "another path": (post("/v1/chat/completions"), [OURS]),
    "a response's own path": (post("/v1/responses/resp_1"), [OURS]),
    "the path's end": (post("/api/v1/responses"), [OURS]),
    "half a mount": (post("/api/v1/responses", root_path="/ap"), [OURS]),
    "a form": (post() | {"headers": [(b"content-type", FORM)]}, [b"input=image_generation"]),
    "nothing of ours": (post(), [b'{"input": "What is 2+2?"', b', "stream": true}']),
    "no body": (post(), [b""]),
    "only a word": (post(), [body({"input": "Draw a big_fig_ with image_generation."})]),
    "invalid JSON": (post(), [OURS[:-1]]),
    "no object": (post(), [body([draw()])]),
    "another tool": (post(), [body(draw(tools=[{"type": "web_search"}], input="ig_"))]),
    "its own response": (post(), [body({"input": "And now?", "previous_response_id": "resp_1"})]),
    "in pieces": (post(), [b"", b'{"input"', b"", b': "ig_"}']),
}


@pytest.mark.parametrize("name", PASSES)
async def test_what_is_not_ours_passes_as_it_is(name: str) -> None:
    scope, pieces = PASSES[name]
    inner = Mirror()
    client = Client(middleware(inner, Painter()), pieces, scope)
    await client.run()
    assert client.raised is None
    assert inner.scope is scope
    assert inner.send is client.send
    said = client.said[:-1]  # but for the disconnect that follows a complete response
    assert all(one is other for one, other in zip(inner.received, said, strict=True))
    assert all(one is other for one, other in zip(client.messages, inner.answer, strict=True))


@pytest.mark.parametrize(("encoding", "status"), [(b"br", 415), (b"gzip", 400)])
async def test_no_id_passes_in_a_body_that_cannot_be_read_here(encoding: bytes, status: int) -> None:
    inner = Mirror()  # which may not care about the coding
    body = {"input": "And?", "previous_response_id": "resp_of_somebody_else"}
    client = await ask(middleware(inner, Painter()), body, post(headers=[(b"content-encoding", encoding)]))
    assert (client.status, client.json["error"]["type"]) == (status, "invalid_request_error")
    assert inner.received == []


async def test_what_holds_no_word_of_ours_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(_: bytes) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr(imagecall.middleware.asgi, "loads", loads)
    inner = Mirror()
    await ask(middleware(inner, Painter()), {"input": "What is 2+2?", "tools": [{"type": "function"}]})
    assert len(inner.received) == 1
    client = Client(middleware(inner, Painter()), draw(), post())
    await client.run()
    assert str(client.raised) == "parsed"


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.replace("image_generation", "\\u0069mage_gener\\u0061tion").encode(),
        lambda text: text.replace("image_generation", "image\\u005Fgeneration").encode(),
        lambda text: text.replace("image_generation", "image_gene\\u0072ation").encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-32-be"),
    ],
)
async def test_our_words_are_known_however_json_writes_them(write: Callable[[str], bytes]) -> None:
    body = write(json.dumps(draw()))
    assert b"image_generation" not in body
    client = await ask(middleware(ModelServer(*KITE_TURNS), Painter()), body)
    assert read_events(client.body) == EXPECTED


async def test_a_request_that_is_nested_too_deeply_to_be_lowered_is_refused() -> None:
    body = json.dumps(draw(metadata=None)).replace("null", "[" * 201 + "]" * 201).encode()
    client = await ask(middleware(ModelServer(), Painter()), body)
    assert (client.status, client.json["error"]["message"]) == (
        400,
        "The request is JSON nested too deeply, more than 200 levels.",
    )


async def test_a_body_that_does_not_come_whole_passes_with_its_disconnect() -> None:
    inner = Mirror()
    client = Client(middleware(inner, Painter()), OURS, post(), unfinished=True)
    client.leave()
    await client.run()
    assert all(one is other for one, other in zip(inner.received, client.said[:2], strict=True))
    assert [message["type"] for message in inner.received] == ["http.request", "http.disconnect"]


@pytest.mark.parametrize(("models", "ours"), [("gpt-oss*,local-?????", True), ("gpt-*", False), ("", False)])
async def test_the_middleware_acts_for_the_models_it_is_told_to(models: str, ours: bool) -> None:
    server = ModelServer(KITE_TURNS[1])
    await ask(middleware(server, Painter(), models=models), draw())
    assert (server.asked[0].json["tools"][0]["type"] == "function") is ours


@pytest.mark.parametrize(
    "scope",
    [
        post(),
        post("/responses"),
        post("/openai/responses"),
        post("/openai/v1/responses"),
        post("/v1/responses/"),
        post("//v1//responses"),
        post("/v1/./x/../responses"),
        post(query_string=b"api-version=preview"),
        post("/api/v1/responses", root_path="/api"),
        post("/api/v1/responses", root_path="/api/"),
        post("/v1/responses", root_path="/api"),
        post("/v1/responses", root_path="/v1"),
        post("/v1/responses") | {"headers": []},
        post() | {"headers": [(b"content-type", b"Application/JSON; charset=utf-8")]},
        post() | {"headers": [(b"content-type", b"application/vnd.api+json")]},
        post() | {"headers": [(b"content-type", b"text/plain")]},
        post() | {"headers": [(b"content-type", FORM)]},
    ],
    ids=lambda scope: f"{scope['root_path']} {scope['path']}",
)
async def test_the_endpoint_is_found_where_it_is_mounted(scope: Scope) -> None:
    server = ModelServer(*KITE_TURNS)
    client = await ask(middleware(server, Painter()), draw(), scope)
    assert read_events(client.body) == EXPECTED


async def test_other_paths_may_be_named() -> None:
    server = ModelServer(*KITE_TURNS)
    app = middleware(server, Painter(), paths="/llm/ask/")
    client = await ask(app, draw(), post("/llm/ask"))
    assert read_events(client.body) == EXPECTED


async def test_scopes_of_other_types_pass_with_the_servers_own_channels() -> None:
    seen: list[Any] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope, receive, send))

    async def receive() -> Message:
        raise AssertionError("nobody asks")

    async def send(message: Message) -> None:
        raise AssertionError("nobody speaks")

    app = middleware(inner, Painter())
    websocket = {"type": "websocket", "path": "/v1/realtime", "headers": []}
    lifespan = {"type": "lifespan", "state": {}}
    await app(websocket, receive, send)
    await app(lifespan, receive, send)
    assert seen[0][0] is websocket
    assert seen[0][1:] == (receive, send)
    assert seen[1][0] is lifespan
    assert seen[1][2] is send


async def test_a_lifespan_passes_message_by_message() -> None:
    heard: list[Message] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in said:
            heard.append(await receive())
            await send({"type": f"{heard[-1]['type']}.complete"})

    said: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    channel: asyncio.Queue[Message] = asyncio.Queue()
    for message in said:
        channel.put_nowait(message)
    told: asyncio.Queue[Message] = asyncio.Queue()
    await middleware(inner, Painter())({"type": "lifespan"}, channel.get, told.put)
    assert all(one is other for one, other in zip(heard, said, strict=True))
    assert told.qsize() == 2


# -- history without the tool ----------------------------------------------------------------------


async def test_a_request_that_only_has_a_history_is_lowered_and_its_answer_passes() -> None:
    item = {"type": "image_generation_call", "id": "ig_9", "status": "completed", "result": "aGk="}
    history = [{**item, "revised_prompt": KITE}, {"role": "user", "content": "Nice."}]
    inner = Mirror()
    scope = post(
        headers=[
            (b"content-length", b"7"),
            (b"accept-encoding", b"gzip"),
            (b"transfer-encoding", b"chunked"),
        ],
        extensions={"http.response.pathsend": {}},
    )
    client = Client(middleware(inner, Painter()), {"model": "m", "input": history}, scope)
    await client.run()
    assert inner.send is client.send
    [message] = inner.received
    lowered = json.loads(message["body"])
    assert [one.get("type") for one in lowered["input"]] == ["function_call", "function_call_output", None]
    assert "aGk=" not in message["body"].decode()
    length = (b"content-length", str(len(message["body"])).encode())
    assert inner.scope == {
        **scope,
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"accept-encoding", b"gzip"),
            (b"x-request-id", b"req_1"),
            length,
        ],
    }
    assert all(one is other for one, other in zip(client.messages, inner.answer, strict=True))


async def test_after_its_lowered_history_the_application_hears_the_server() -> None:
    told: list[Message] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        told.append(await receive())
        told.append(await receive())

    item = {"type": "image_generation_call", "id": "ig_9", "status": "completed", "result": "aGk="}
    client = Client(middleware(inner, Painter()), {"input": [{**item, "revised_prompt": KITE}]}, post())
    client.leave()
    await client.run()
    assert [message["type"] for message in told] == ["http.request", "http.disconnect"]


# -- backends --------------------------------------------------------------------------------------


async def test_without_a_backend_the_call_reaches_the_client_as_a_function_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = middleware(ModelServer(calling(KITE), calling(KITE)), None)
    warning = "No image backend is set: calls of image_generation reach the client as function calls. "
    assert caplog.messages == [warning + "Set backend or IMAGECALL_BACKEND."]
    for _ in range(2):
        client = await ask(app, draw())
        names = ("image_generation",)
        assert check_stream(client.body, tools=[HOSTED], client_functions=names) == []
        [item] = read_events(client.body)[-1]["response"]["output"]
        assert (item["type"], item["name"]) == ("function_call", "image_generation")
        assert json.loads(item["arguments"]) == {"prompt": KITE}
    assert len(caplog.messages) == 1


async def test_the_scene_is_chosen_by_its_name_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = ModelServer(*KITE_TURNS)
    for app in (
        ImageGenerationMiddleware(server, "scene"),
        ImageGenerationMiddleware(server, backend="scene"),
        ImageGenerationMiddleware(server, backend={"*": "scene"}),
    ):
        assert isinstance(await app._routing.owner(None).backend(), SceneBackend)
    monkeypatch.setenv("IMAGECALL_BACKEND", "scene")
    app = ImageGenerationMiddleware(server)
    assert caplog.messages == []
    client = await ask(app, draw(tools=[{**HOSTED, "size": "128x96"}]))
    assert check_stream(client.body) == []
    item, message = read_events(client.body)[-1]["response"]["output"]
    assert (item["status"], item["size"]) == ("completed", "128x96")
    assert re.fullmatch("ig_[0-9a-f]{48}", item["id"])
    assert message["content"][0]["text"] == "".join(SAID)


async def test_nothing_of_a_request_is_logged_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = ModelServer(*KITE_TURNS)
    scope = post(headers=[(b"authorization", b"Bearer s3cret")])
    await ask(middleware(server, Painter()), draw(input="A secret kite."), scope)
    await ask(middleware(ModelServer(Answer([b"<html>"])), Painter()), draw(input="A secret kite."), scope)
    assert "s3cret" not in caplog.text
    assert "secret kite" not in caplog.text
    assert KITE not in caplog.text
