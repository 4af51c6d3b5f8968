"""What clients ask of responses that are there already: the same ids and items that they were shown."""

from __future__ import annotations

from typing import Any

import pytest
from asgi import Client, ask, draw, middleware, post
from imagecall.middleware.store import MemoryStore
from kite import KITE
from model_server import JSON, KITE_TURNS, Answer, ModelServer, whole
from painters import Painter, raising
from surface import asking, final, get, missing
from test_asgi import Mirror

ME = (b"authorization", b"Bearer mine")
YOU = (b"authorization", b"Bearer yours")
GONE = Answer([b"{}"], status=404, headers=JSON)


def store() -> MemoryStore:
    return MemoryStore(entries=1000, max_bytes=1 << 24)


async def test_a_response_can_be_had_again_just_as_the_client_got_it() -> None:
    server = ModelServer(*KITE_TURNS)
    app = middleware(server, Painter())
    told = final(await ask(app, draw()))
    again = await get(app, "resp_up1", "include[]=message.input_image.image_url")
    assert again.status == 200
    assert again.headers[:2] == [(b"x-request-id", b"req_2"), (b"content-type", b"application/json")]
    assert again.json == told
    assert [item["type"] for item in again.json["output"]] == ["image_generation_call", "message"]
    assert again.json["output"][0]["result"]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("tail", "query"), [("", ""), ("", "stream=true"), ("/input_items", "limit=1"), ("", "stream=")]
)
async def test_a_head_is_that_of_the_whole_answer(tail: str, query: str) -> None:
    """Servers leave the body of an answer to HEAD out; applications may give it, as Starlette's do."""
    server = ModelServer(*KITE_TURNS)
    app = middleware(server, Painter())
    await ask(app, draw())
    plain = "" if "stream" in query else query
    whole = await get(app, f"resp_up1{tail}", plain)
    head = await asking(app, "HEAD", f"resp_up1{tail}", query)
    assert (head.status, head.json) == (200, whole.json)
    assert dict(head.headers)[b"content-length"] == str(len(whole.body)).encode()
    assert len(server.asked) == 2


async def test_one_that_was_no_stream_can_be_had_again_too() -> None:
    answers = [Answer([whole(turn)], headers=JSON) for turn in KITE_TURNS]
    app = middleware(ModelServer(*answers), Painter())
    told = await ask(app, draw(stream=False))
    assert (await get(app, "resp_up1")).json == told.json


async def test_one_without_a_picture_can_be_had_again_too() -> None:
    app = middleware(ModelServer(KITE_TURNS[1]), Painter())
    told = final(await ask(app, draw()))
    assert (await get(app, "resp_up2")).json == told


async def test_one_that_failed_can_be_had_again_too() -> None:
    app = middleware(ModelServer(KITE_TURNS[1][:4]), Painter())
    told = final(await ask(app, draw()))
    assert told["status"] == "failed"
    assert (await get(app, "resp_up2")).json == told


@pytest.mark.parametrize("base", ["/responses", "/openai/v1/responses", "/mounted/v1/responses"])
async def test_the_surface_is_found_where_the_endpoint_is(base: str) -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    root = "/mounted" if base.startswith("/mounted") else ""
    await ask(app, draw(), post(base, root_path=root))
    scope = post(f"{base}/resp_up1/", method="GET", root_path=root)
    assert (await ask(app, b"", scope)).json["id"] == "resp_up1"


# -- whose it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""),
        ("HEAD", ""),
        ("DELETE", ""),
        ("GET", "/input_items"),
        ("HEAD", "/input_items"),
        ("POST", "/cancel"),
        ("GET", "?stream=true"),
    ],
)
async def test_somebody_elses_response_is_not_found(method: str, tail: str) -> None:
    server = ModelServer(*KITE_TURNS)
    app = middleware(server, Painter(), cors_origins=("https://page",))
    await ask(app, draw(), post(headers=[ME]))
    path, _, query = tail.partition("?")
    origin = (b"origin", b"https://page")
    client = await asking(app, method, "resp_up1" + path, query, headers=[YOU, origin])
    assert (client.status, client.json) == (404, missing("resp_up1"))
    assert (b"access-control-allow-origin", b"https://page") in client.headers
    assert (b"x-should-retry", b"false") in client.headers
    assert len(server.asked) == 2
    assert (await get(app, "resp_up1", headers=[ME])).status == 200


async def test_the_owner_can_be_told_by_anything_in_the_request() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter(), owner=lambda scope: scope["client"][0])
    await ask(app, draw(), post(headers=[ME]))
    assert (await get(app, "resp_up1", headers=[YOU])).status == 200
    other = post("/v1/responses/resp_up1", method="GET", client=("10.0.0.1", 1))
    assert (await ask(app, b"", other)).status == 404


async def test_a_turns_own_id_means_nothing_to_clients() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw())
    client = await get(app, "resp_up2")
    assert (client.status, client.json) == (404, missing("resp_up2"))


@pytest.mark.parametrize(
    "scope",
    [
        post("/v1/responses/resp_1", method="GET"),
        post("/v1/responses/resp_1", method="GET", query_string=b"stream=true"),
        post("/v1/responses/resp_1", method="DELETE"),
        post("/v1/responses/resp_1/input_items", method="GET"),
        post("/v1/responses/resp_1/cancel"),
        post("/v1/responses/resp_1", method="HEAD"),
        post("/v1/responses/resp_up1", method="OPTIONS"),
        post("/v1/responses/resp_up1", method="POST"),
        post("/v1/responses/resp_up1/input_items", method="DELETE"),
        post("/v1/responses/resp_up1/other", method="GET"),
        post("/v1/responses/resp_up1/input_items/more", method="GET"),
        post("/v1/responses//cancel"),
    ],
    ids=lambda scope: f"{scope['method']} {scope['path']} {scope['query_string'].decode()}",
)
async def test_what_is_unknown_passes_as_it_is(scope: Any) -> None:
    mirror = Mirror()
    server = ModelServer(*KITE_TURNS)

    async def inner(scope_: Any, receive: Any, send: Any) -> None:
        await (mirror if scope_ is scope else server)(scope_, receive, send)

    app = middleware(inner, Painter())
    await ask(app, draw())
    client = Client(app, b"", scope)
    await client.run()
    assert mirror.scope is scope
    assert mirror.send is client.send
    assert mirror.received[0] is client.said[0]
    assert all(one is other for one, other in zip(client.messages, mirror.answer, strict=True))


async def test_without_a_store_everything_passes_as_it_is() -> None:
    mirror = Mirror()
    app = middleware(mirror, Painter(), store="none")
    scope = post("/v1/responses/resp_up1", method="GET")
    client = Client(app, b"", scope)
    await client.run()
    assert mirror.scope is scope
    assert mirror.send is client.send


# -- what is not kept ------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
async def test_nothing_at_all_is_left_of_a_response_that_may_not_be_stored(stream: bool) -> None:
    answers = [Answer(turn) if stream else Answer([whole(turn)], headers=JSON) for turn in KITE_TURNS]
    kept = store()
    app = middleware(ModelServer(*answers, GONE), Painter(), store=kept)
    client = await ask(app, draw(stream=stream, store=False))
    assert KITE.encode() in client.body
    assert (kept._values._kept, kept._logs._kept) == ({}, {})
    assert (kept._values._gone, kept._logs._gone) == ({}, {})
    assert (await get(app, "resp_up1")).status == 404


async def test_nothing_is_left_of_a_request_that_the_model_server_refuses() -> None:
    kept = store()
    app = middleware(ModelServer(Answer([b"{}"], status=401, headers=JSON)), Painter(), store=kept)
    assert (await ask(app, draw())).status == 401
    assert (kept._values._kept, kept._logs._kept) == ({}, {})


async def test_a_picture_that_fails_is_shown_as_failed_again() -> None:
    app = middleware(ModelServer(*KITE_TURNS), raising(OSError()))
    told = final(await ask(app, draw()))
    again = (await get(app, "resp_up1")).json
    assert again == told
    assert (again["output"][0]["status"], again["output"][0]["result"]) == ("failed", "")
