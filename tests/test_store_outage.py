"""While the store is out of order, nobody is told that what it holds is not there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgi import Client, draw, lifespan, middleware, post
from imagecall.middleware.store import Gone, MemoryStore
from jobs import asked, begun, ended, look, running
from model_server import JSON, KITE_TURNS, Answer, ModelServer, saying
from painters import Painter
from redis_server import redis_server
from rules import read_events
from sockets import connected, create
from test_store_owner import Cellar
from waiting import Clock, settle

UNKNOWN = "The store cannot be reached, and only it knows what was asked for; try again soon."
GONE = Answer([b"{}"], status=404, headers=JSON)
ORIGIN = (b"origin", b"https://page.example")
ASKING = [
    ("GET", "", ""),
    ("GET", "", "stream=true"),
    ("GET", "/input_items", ""),
    ("POST", "/cancel", ""),
    ("DELETE", "", ""),
]


class Weak(MemoryStore):
    """A store that fails in those operations, and for those kinds of keys, that it is told."""

    def __init__(self) -> None:
        super().__init__(entries=1_000, max_bytes=1 << 20)
        self.failing: set[str] = set()
        self.kinds = ("",)

    def fail(self, *operations: str, kinds: tuple[str, ...] = ("",)) -> None:
        self.failing, self.kinds = {*operations}, kinds

    def _try(self, operation: str, key: str) -> None:
        if operation in self.failing and any(kind in key for kind in self.kinds):
            raise ConnectionError

    async def get(self, key: str) -> bytes | Gone | None:
        self._try("get", key)
        return await super().get(key)

    async def has(self, key: str) -> bool:
        self._try("has", key)
        return await super().has(key)

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        self._try("put", key)
        await super().put(key, value, ttl=ttl)

    async def delete(self, key: str) -> None:
        self._try("delete", key)
        await super().delete(key)

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None:
        self._try("append", key)
        await super().append(key, piece, ttl=ttl)

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        self._try("read", key)
        return await super().read(key, start, wait=wait)


ALL = ("get", "has", "put", "delete", "append", "read")


def refused(client: Client, message: str = UNKNOWN) -> bool:
    """Tell whether a client was told that the store is at fault, and may try again."""
    assert client.json == {
        "error": {"message": message, "type": "server_error", "param": None, "code": "store_unavailable"}
    }
    headers = dict(client.headers)
    return (client.status, headers[b"retry-after"], b"x-should-retry" in headers) == (503, b"5", False)


# -- what clients ask about responses --------------------------------------------------------------


@pytest.mark.parametrize(("method", "tail", "query"), ASKING)
async def test_nothing_is_asked_of_the_model_server_about_a_response_that_may_be_ours(
    method: str, tail: str, query: str
) -> None:
    store, server = Weak(), ModelServer(*KITE_TURNS)
    async with running(server, Painter(), store=store, cors_origins=("*",)) as app:
        queued = await begun(app)
        response = await ended(app, queued["id"])
        store.fail(*ALL)
        client = await asked(app, method, f"/{queued['id']}{tail}", query, headers=[ORIGIN])
        assert refused(client)
        assert (b"access-control-allow-origin", ORIGIN[1]) in client.headers
        store.fail()
        assert await look(app, queued["id"]) == response
    assert len(server.asked) == 2


async def test_a_response_is_not_deleted_as_long_as_the_store_does_not_say_so() -> None:
    store, server = Weak(), ModelServer(*KITE_TURNS, GONE, GONE)
    async with running(server, Painter(), store=store) as app:
        response = await ended(app, (await begun(app))["id"])
        name = response["id"]
        words = f"The store cannot be reached, and response '{name}' was not deleted; try again soon."
        for kinds in (("",), (":picture:",), (":response:",)):
            store.fail("delete", kinds=kinds)
            assert refused(await asked(app, "DELETE", f"/{name}"), words)
            assert (await look(app, name))["id"] == name
        assert len(server.asked) == 2
        store.fail()
        assert (await asked(app, "DELETE", f"/{name}")).json["deleted"] is True
        assert (await asked(app, "GET", f"/{name}")).status == 404
    assert len(server.asked) == 4


@pytest.mark.parametrize(("tail", "query"), [("", ""), ("/input_items", "")])
async def test_a_picture_that_cannot_be_read_is_not_shown_as_one_that_is_gone(tail: str, query: str) -> None:
    store = Weak()
    picture = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,c2t5"}
    async with running(ModelServer(*KITE_TURNS), Painter(), store=store) as app:
        queued = await begun(app, input=[{"role": "user", "content": [picture]}])
        await ended(app, queued["id"])
        store.fail("get", kinds=(":picture:",))
        assert refused(await asked(app, "GET", f"/{queued['id']}{tail}", query))


async def test_a_response_whose_worker_cannot_be_asked_after_has_not_failed() -> None:
    store, painter = Weak(), Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter, store=store) as app:
        other = middleware(ModelServer(), Painter(), store=store)
        queued = await begun(app)
        await painter.was_asked()
        store.fail("get", kinds=("lease:",))
        assert refused(await asked(other, "GET", f"/{queued['id']}"))
        store.fail()
        painter.may_finish.set()
        assert (await ended(other, queued["id"]))["status"] == "completed"


async def test_a_wish_to_cancel_that_reaches_nobody_is_an_error() -> None:
    store, painter = Weak(), Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter, store=store) as app:
        other = middleware(ModelServer(), Painter(), store=store)
        queued = await begun(app)
        await painter.was_asked()
        store.fail("put", kinds=("cancel:",))
        words = f"The store cannot be reached, and response '{queued['id']}' goes on; try again soon."
        assert refused(await asked(other, "POST", f"/{queued['id']}/cancel"), words)
        painter.may_finish.set()
        await ended(app, queued["id"])


async def test_whoever_follows_a_response_waits_until_the_store_is_back() -> None:
    clock, store, painter = Clock(), Weak(), Painter(waits=True)
    async with running(ModelServer(*KITE_TURNS), painter, store=store, keepalive=15) as app:
        queued = await begun(app)
        await painter.was_asked()
        scope = post(f"/v1/responses/{queued['id']}", method="GET", query_string=b"stream=true")
        client = Client(app, b"", scope)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            await client.heard(b"generating")
            store.fail("get", "read")
            for _ in range(16):
                await clock.forward(1)
            await client.heard(b": keepalive\n\n")
            assert not client.complete
            store.fail()
            painter.may_finish.set()
            await clock.forward(1)
        assert [one["sequence_number"] for one in read_events(client.body)] == [*range(15)]
        assert client.complete


async def test_a_real_redis_that_dies_is_named_and_not_the_model_server() -> None:
    server = ModelServer(*KITE_TURNS)
    with redis_server() as redis:
        app = middleware(server, Painter(), store=redis.url)
        async with lifespan(app):
            response = await ended(app, (await begun(app))["id"])
            redis.kill()
            assert refused(await asked(app, "GET", f"/{response['id']}"))
            redis.start()
    assert len(server.asked) == 2


async def test_a_store_that_does_not_open_is_out_of_order_too() -> None:
    server = ModelServer(KITE_TURNS[0])
    async with lifespan(app := middleware(server, Painter(), store=Cellar(*[OSError()] * 9))):
        assert refused(await asked(app, "GET", "/resp_up1"))
        client = await asked(app, body=draw(background=True, stream=False))
        assert client.status == 503
        assert refused(client, BACKGROUND)


BACKGROUND = (
    "The store cannot be reached, and without it nobody could ask for a response in the background; "
    "try again soon, or leave out 'background'."
)


async def test_a_response_in_the_background_is_refused_in_the_stores_own_name() -> None:
    store = Weak()
    store.fail("put")
    async with running(ModelServer(KITE_TURNS[0]), Painter(waits=True), store=store) as app:
        assert refused(await asked(app, body=draw(background=True, stream=False)), BACKGROUND)


# -- requests that go on from something ------------------------------------------------------------


@pytest.mark.parametrize(
    "past",
    [
        {"previous_response_id": "resp_1"},
        {"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "And?"}]},
        {"input": [{"id": "ig_1", "type": "image_generation_call", "result": None}]},
    ],
)
async def test_what_only_the_store_knows_is_not_asked_of_the_model_server(past: Any) -> None:
    store, server = Weak(), ModelServer(saying("Hm."))
    app = middleware(server, Painter(), store=store)
    store.fail("get", "has")
    assert refused(await asked(app, body=draw(**past)))
    async with connected(app) as socket:
        socket.say(create(**past))
        await socket.heard_ends()
    error = {"type": "server_error", "code": "store_unavailable", "message": UNKNOWN, "param": None}
    assert socket.events == [{"type": "error", "status": 503, "error": error}]
    assert server.asked == []


@pytest.mark.parametrize(
    "past",
    [
        {"conversation": "conv_1"},
        {"input": [{"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": None}]},
        {"input": [{"id": "ig_1", "type": "image_generation_call", "result": "AAAA"}]},
    ],
)
async def test_a_request_that_can_be_answered_without_the_store_is(past: Any) -> None:
    store, server = Weak(), ModelServer(saying("Hm."))
    store.fail(*ALL)
    client = await asked(middleware(server, Painter(), store=store), body=draw(**past))
    assert read_events(client.body)[-1]["type"] == "response.completed"


async def test_a_response_without_an_id_at_the_model_server_cannot_be_continued() -> None:
    held = asyncio.Event()
    server = ModelServer([held])
    async with running(server, Painter(), disconnect_grace=0) as app:
        queued = await begun(app)
        await asked(app, "POST", f"/{queued['id']}/cancel")
        await settle()
        client = await asked(app, body=draw(previous_response_id=queued["id"]))
    message = (
        f"The previous response '{queued['id']}' cannot be continued: the model server gave it no id, or "
        "never began it. Send its items in 'input' instead."
    )
    error = {"message": message, "type": "invalid_request_error", "param": "previous_response_id"}
    assert (client.status, client.json) == (400, {"error": {**error, "code": None}})
    assert all("previous_response_id" not in json.loads(one.body) for one in server.asked)
