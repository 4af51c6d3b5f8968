"""Deleting responses and listing their input, by the ids and items that clients know."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi import Client, ask, draw, middleware, post
from model_server import JSON, KITE_TURNS, Answer, ModelServer, calling
from painters import Painter
from surface import asking, delete, final, get, missing
from waiting import Clock

ME = (b"authorization", b"Bearer mine")
GONE = Answer([b"{}"], status=404, headers=JSON)


# -- deletion --------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Answer([b"{}"], headers=JSON), GONE, Answer([b"{}"], status=405)])
async def test_a_deleted_response_is_deleted_turn_by_turn_at_the_model_server_too(
    answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    server = ModelServer(*KITE_TURNS, answer, answer)
    app = middleware(server, Painter())
    await ask(app, draw(), post(headers=[ME]))
    client = await delete(app, "resp_up1", headers=[ME])
    assert client.json == {"id": "resp_up1", "object": "response", "deleted": True}
    turns = [
        (asked.scope["method"], asked.scope["path"], asked.scope["raw_path"]) for asked in server.asked[2:]
    ]
    assert turns == [
        ("DELETE", f"/v1/responses/{name}", f"/v1/responses/{name}".encode())
        for name in ("resp_up1", "resp_up2")
    ]
    assert all(asked.headers[b"authorization"] == b"Bearer mine" for asked in server.asked)
    assert caplog.messages == []
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/input_items")):
        gone = await asking(app, method, f"resp_up1{tail}", headers=[ME])
        assert (gone.status, gone.json) == (404, missing("resp_up1"))
    assert len(server.asked) == 4


async def test_that_the_model_server_cannot_delete_a_turn_is_logged_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for trouble in (OSError("no"), asyncio.CancelledError()):
        server = ModelServer(*KITE_TURNS, Answer([trouble], status=0), Answer([b"no"], status=500))
        app = middleware(server, Painter())
        await ask(app, draw())
        assert (await delete(app, "resp_up1")).json["deleted"] is True
        told = "a turn was not deleted: the "
        assert caplog.messages == [
            f"{told}inner application raised {type(trouble).__name__}",
            f"{told}model server answered with status 500",
        ]
        caplog.clear()


async def test_a_model_server_that_does_not_answer_holds_no_deletion_up_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    never = asyncio.Event()
    server = ModelServer(*KITE_TURNS, Answer([never], status=0), Answer([b"{}"], headers=JSON))
    app = middleware(server, Painter())
    await ask(app, draw())
    deleting = asyncio.create_task(delete(app, "resp_up1"))
    await server.was_asked(3)
    await clock.forward(9.9)
    assert len(server.asked) == 3
    await clock.forward(0.2)
    assert (await deleting).json["deleted"] is True
    assert len(server.asked) == 4
    assert caplog.messages == ["a turn was not deleted: the inner application raised TimeoutError"]


async def test_who_is_to_cancel_a_deletion_is_obeyed() -> None:
    server = ModelServer(*KITE_TURNS, Answer([asyncio.Event()], status=0))
    app = middleware(server, Painter())
    await ask(app, draw())
    client = Client(app, b"", post("/v1/responses/resp_up1", method="DELETE"))
    deleting = asyncio.create_task(client.run())
    await server.was_asked(3)
    deleting.cancel()
    await deleting
    assert isinstance(client.raised, asyncio.CancelledError)
    assert len(server.asked) == 3


async def test_what_an_application_does_after_its_answer_to_a_deletion_may_take_its_time() -> None:
    clock = Clock()
    goes_on = asyncio.Event()
    slow = Answer([b"{}"], headers=JSON, afterwards=[goes_on])
    server = ModelServer(*KITE_TURNS, slow, Answer([b"{}"], headers=JSON))
    app = middleware(server, Painter())
    await ask(app, draw())
    deleting = asyncio.create_task(delete(app, "resp_up1"))
    await server.was_asked(3)
    await clock.forward(60)
    goes_on.set()
    assert (await deleting).json["deleted"] is True
    assert not server.cancelled.is_set()


async def test_an_application_that_waits_for_its_client_to_go_is_told_so_after_its_answer() -> None:
    heard: list[Any] = []

    async def afterwards(receive: Any, send: Any) -> None:
        heard.append(await receive())

    answer = Answer([b"{}"], headers=JSON, afterwards=[afterwards])
    app = middleware(ModelServer(*KITE_TURNS, answer, answer), Painter())
    await ask(app, draw())
    assert (await delete(app, "resp_up1")).json["deleted"] is True
    assert heard == [{"type": "http.disconnect"}] * 2


# -- its input -------------------------------------------------------------------------------------


async def asked_with(count: int) -> Any:
    """Make a response whose input are `count` messages."""
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    messages = [{"role": "user", "content": f"Message {number}"} for number in range(count)]
    await ask(app, draw(input=messages))
    return app


def numbers(page: Any) -> list[int]:
    return [int(item["content"][0]["text"].removeprefix("Message ")) for item in page["data"]]


async def test_the_input_items_are_listed_newest_first() -> None:
    app = await asked_with(3)
    page = (await get(app, "resp_up1/input_items")).json
    assert numbers(page) == [2, 1, 0]
    ids = [item["id"] for item in page["data"]]
    assert page["data"][0] == {
        "id": ids[0],
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Message 2"}],
    }
    assert {key: page[key] for key in page if key != "data"} == {
        "object": "list",
        "first_id": ids[0],
        "last_id": ids[2],
        "has_more": False,
    }
    assert len(set(ids)) == 3


async def test_a_text_is_one_message() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw(input="Message 7"))
    assert numbers((await get(app, "resp_up1/input_items")).json) == [7]


async def test_no_input_is_an_empty_list() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw(input=None))
    page = (await get(app, "resp_up1/input_items")).json
    assert page == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


async def test_the_input_items_come_page_by_page() -> None:
    app = await asked_with(25)
    usual = (await get(app, "resp_up1/input_items")).json
    assert (numbers(usual), usual["has_more"]) == ([*range(24, 4, -1)], True)
    seen: list[int] = []
    after = ""
    while True:
        query = f"order=asc&limit=10{after}"
        page = (await get(app, "resp_up1/input_items", query)).json
        seen += numbers(page)
        if not page["has_more"]:
            break
        after = f"&after={page['last_id']}"
    assert seen == [*range(25)]


@pytest.mark.parametrize(
    ("query", "param", "message"),
    [
        ("limit=0", "limit", "Invalid 'limit': expected an integer between 1 and 100."),
        ("limit=101", "limit", "Invalid 'limit': expected an integer between 1 and 100."),
        ("limit=ten", "limit", "Invalid 'limit': expected an integer between 1 and 100."),
        ("limit=%C2%B2", "limit", "Invalid 'limit': expected an integer between 1 and 100."),
        ("order=up", "order", "Invalid 'order': expected 'desc' or 'asc'."),
        ("after=msg_0", "after", "No item with id 'msg_0' found in this list."),
    ],
)
async def test_a_wrong_page_is_refused_by_name(query: str, param: str, message: str) -> None:
    app = await asked_with(1)
    client = await get(app, "resp_up1/input_items", query)
    assert client.status == 400
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    assert client.json == {"error": error}


async def test_the_input_shows_image_items_and_never_the_pair_that_stands_for_one() -> None:
    server = ModelServer(*KITE_TURNS, calling("a blue kite", response_id="resp_up3"), KITE_TURNS[1])
    app = middleware(server, Painter())
    first = final(await ask(app, draw()))
    history = [*first["output"], {"role": "user", "content": "Make it blue."}]
    await ask(app, draw(input=history))
    page = (await get(app, "resp_up3/input_items", "order=asc")).json
    assert [item["type"] for item in page["data"]] == ["image_generation_call", "message", "message"]
    assert page["data"][0]["result"] == first["output"][0]["result"]


# -- cancellation ----------------------------------------------------------------------------------


async def test_only_what_runs_in_the_background_can_be_cancelled() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw())
    client = await asking(app, "POST", "resp_up1/cancel")
    assert client.status == 400
    assert client.json["error"]["message"] == "Cannot cancel a synchronous response."
