"""A store that must be opened: when it is first needed, once, and closed by the task that opened it."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest
from asgi import ask, conversation, draw, lifespan, middleware
from imagecall.middleware.settings import SettingsError
from imagecall.middleware.store import MemoryStore
from model_server import KITE_TURNS, Answer, ModelServer, saying
from painters import Painter
from surface import final, get
from waiting import Clock, settle


class Cellar(MemoryStore):
    """A store with a session; each opening raises the next of `failures`."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__(entries=100, max_bytes=1 << 20)
        self.opened: list[Any] = []
        self.closed: list[Any] = []
        self._failures = [*failures]

    async def __aenter__(self) -> Self:
        self.opened.append(asyncio.current_task())
        if self._failures:
            raise self._failures.pop(0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.closed.append(asyncio.current_task())


async def test_a_store_is_opened_once_and_closed_at_shutdown_by_the_same_task() -> None:
    cellar = Cellar()
    app = middleware(ModelServer(*KITE_TURNS), Painter(), store=cellar)
    async with lifespan(app):
        assert cellar.opened == []
        told = final(await ask(app, draw(), owners=1))
        assert (await get(app, "resp_up1")).json == told
        assert (len(cellar.opened), cellar.closed) == (1, [])
    assert cellar.closed == cellar.opened
    assert cellar.opened[0] is not asyncio.current_task()


async def test_a_store_that_does_not_open_costs_nothing_but_what_it_would_keep(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cellar = Cellar(OSError("redis://:s3cret@host"), OSError("again"))
    gone = Answer([b"{}"], status=404)
    server = ModelServer(*KITE_TURNS, saying("So."), gone)
    app = middleware(server, Painter(), store=cellar)
    async with lifespan(app):
        assert final(await ask(app, draw()))["status"] == "completed"
        assert (await get(app, "resp_up1")).status == 503
        told = "The store does not open (OSError): nothing is kept."
        assert caplog.messages == [told]
        response = final(await ask(app, draw(), owners=1))
        assert (await get(app, response["id"])).json == response
        assert caplog.messages == [told]
    assert len(cellar.opened) == 3
    assert cellar.closed == cellar.opened[2:]


async def test_a_store_that_opens_slowly_is_waited_for_once(caplog: pytest.LogCaptureFixture) -> None:
    class Heavy(Cellar):
        """A store whose door is hard to open."""

        def __init__(self) -> None:
            super().__init__()
            self.door = asyncio.Event()

        async def __aenter__(self) -> Self:
            await self.door.wait()
            return await super().__aenter__()

    clock, heavy = Clock(), Heavy()
    app = middleware(ModelServer(*KITE_TURNS, *KITE_TURNS, *KITE_TURNS), Painter(), store=heavy)
    async with lifespan(app):
        first = asyncio.create_task(ask(app, draw(), owners=1))
        await settle()
        await clock.forward(9.9)
        assert not first.done()
        await clock.forward(0.2)
        assert final(await first)["status"] == "completed"
        second = asyncio.create_task(ask(app, draw()))
        for _ in range(30):
            await settle()
        assert second.done()
        assert final(await second)["status"] == "completed"
        assert caplog.messages == ["The store does not open (TimeoutError): nothing is kept."]
        heavy.door.set()
        await settle()
        response = final(await ask(app, draw()))
        assert (await get(app, response["id"])).json == response
    assert len(heavy.opened) == 1
    assert heavy.closed == heavy.opened


async def test_a_store_may_be_named() -> None:
    kept = middleware(ModelServer(*KITE_TURNS), Painter(), store="memory")
    await ask(kept, draw())
    assert (await get(kept, "resp_up1")).status == 200
    with pytest.raises(SettingsError, match=r"^store "):
        middleware(ModelServer(), Painter(), store="cellar")


async def test_a_slow_store_holds_up_the_end_of_a_response_and_nothing_before() -> None:
    class Slow(MemoryStore):
        """A store that takes its time for pictures."""

        def __init__(self) -> None:
            super().__init__(entries=100, max_bytes=1 << 20)
            self.goes_on = asyncio.Event()

        async def put(self, key: str, value: bytes, *, ttl: float) -> None:
            if ":picture:" in key:
                await self.goes_on.wait()
            await super().put(key, value, ttl=ttl)

    slow = Slow()
    app = middleware(ModelServer(*KITE_TURNS), Painter(), store=slow)
    async with conversation(app, draw()) as client:
        await client.heard(b"event: response.output_text.done")
        await settle()
        assert b"response.completed" not in client.body
        slow.goes_on.set()
        await client.heard(b"event: response.completed")
        assert (await get(app, "resp_up1")).json["output"][0]["result"]
