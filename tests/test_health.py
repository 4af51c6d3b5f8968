"""Whether `imagecall serve` lives, and whether it is ready: with real upstreams and stores in trouble."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgi import lifespan
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.health import Health
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.serving import upstream_app
from loopback import answering, ask, body_of, http_scope, raw_server
from painters import Painter
from redis_server import redis_server
from starlette.types import ASGIApp, Receive, Scope, Send
from waiting import Clock, no_hanging

READY = (200, {"status": "ready"})


async def look(app: ASGIApp, path: str = "/readyz", method: str = "GET") -> tuple[int, Any]:
    messages = await ask(app, http_scope(path, method=method))
    assert (b"cache-control", b"no-store") in messages[0]["headers"]
    return messages[0]["status"], json.loads(body_of(messages))


def not_ready(**reasons: str) -> tuple[int, Any]:
    return 503, {"status": "not ready", "reasons": reasons}


def answer(status: int) -> bytes:
    return b"HTTP/1.1 %d Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status


@asynccontextmanager
async def serving(url: str, **settings: Any) -> AsyncIterator[Health]:
    app, _ = upstream_app(url, {"backend": "scene", "store": "none"} | settings)
    async with lifespan(app):
        yield app


@pytest.mark.parametrize("status", [200, 401, 404])
async def test_a_worker_whose_model_server_answers_at_all_is_ready(status: int) -> None:
    seen: list[bytes] = []
    async with raw_server(answering(answer(status), seen=seen)) as url, serving(f"{url}/v1") as app:
        assert await look(app) == READY
        assert await look(app, method="HEAD") == READY
    assert [one.split(b"\r\n")[0] for one in seen] == [b"GET /v1/models HTTP/1.1"]


async def test_a_model_server_that_still_loads_its_model_is_not_ready() -> None:
    async with raw_server(answering(answer(503))) as url, serving(url) as app:
        assert await look(app) == not_ready(upstream="The model server answers 503.")


async def test_a_worker_whose_model_server_is_not_there_lives_and_is_not_ready(unused_tcp_port: int) -> None:
    async with serving(f"http://127.0.0.1:{unused_tcp_port}") as app:
        assert await look(app, "/healthz") == (200, {"status": "alive"})
        assert await look(app) == not_ready(upstream="The model server cannot be reached.")


async def test_what_is_not_set_and_what_has_begun_is_told() -> None:
    async with raw_server(answering(answer(200))) as url, serving(url, backend=None) as app:
        inner = app.app
        assert isinstance(inner, ImageGenerationMiddleware)
        inner.shutdown.begin()
        assert await look(app) == not_ready(
            shutdown="The server is shutting down.", backend="No image backend is set."
        )


async def test_a_store_that_is_killed_is_told_without_its_address_and_is_ready_once_it_is_back() -> None:
    pytest.importorskip("redis")
    clock = Clock()
    with redis_server() as server:
        async with raw_server(answering(*[answer(200)])) as url:
            inner = ImageGenerationMiddleware(ProxyApp(url), Painter(), store=server.url)
            app = Health(inner, {"store": inner.check_store})
            assert await look(app) == READY
            server.kill()
            assert await look(app) == READY  # it was looked at just now
            await clock.forward(1.0)
            assert await look(app) == not_ready(store="The store does not answer.")
            server.start()
            await clock.forward(1.0)
            assert await look(app) == READY
            await inner._stores.close()


class Stubborn:
    """A store that does not open."""

    async def __aenter__(self) -> Any:
        raise OSError("redis://user:s3cret@host")

    async def __aexit__(self, *exc: object) -> None: ...

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, value: bytes, *, ttl: float) -> None: ...

    async def delete(self, key: str) -> None: ...

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None: ...

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        return []


async def test_a_store_that_does_not_open_is_told_without_its_words() -> None:
    inner = ImageGenerationMiddleware(ProxyApp("http://h"), Painter(), store=Stubborn())
    assert await look(Health(inner, {"store": inner.check_store})) == not_ready(
        store="The store does not answer."
    )
    await inner._stores.close()


async def test_many_who_ask_at_a_time_cost_one_look() -> None:
    looks = 0
    gate = asyncio.Event()

    async def check() -> str:
        nonlocal looks
        looks += 1
        await gate.wait()
        return ""

    app = Health(ProxyApp("http://h"), {"upstream": check})
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(look(app)) for _ in range(5)]
        gate.set()
    assert [one.result() for one in asked] == [READY] * 5
    assert looks == 1


async def test_a_look_that_takes_too_long_is_itself_a_reason() -> None:
    async def check() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    clock = Clock()
    app = Health(ProxyApp("http://h"), {"store": check})
    looking = asyncio.create_task(look(app))
    await asyncio.sleep(0)
    await clock.forward(3.0)
    with no_hanging() as deadline:
        async with deadline:
            await looking
    assert looking.result() == not_ready(store="There was no answer within 3 seconds.")


async def test_all_else_is_for_the_application() -> None:
    seen: list[tuple[str, str]] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope["type"], scope.get("path", "")))

    app = Health(inner, {})
    await ask(app, http_scope("/readyz"))
    await ask(app, http_scope("/v1/models", method="GET"))
    await app({"type": "lifespan"}, asyncio.Queue().get, asyncio.Queue().put)
    assert seen == [("http", "/readyz"), ("http", "/v1/models"), ("lifespan", "")]
