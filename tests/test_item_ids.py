"""A server that uses its item ids again makes no two items of a conversation one."""

from __future__ import annotations

from typing import Any

from asgi import ask, draw, middleware
from imagecall.events.item_ids import ItemIds
from model_server import KITE_TURNS, ModelServer, saying
from painters import Painter
from rules import check_stream, read_events
from surface import delete, final


def test_an_id_is_taken_once_as_long_as_it_is_remembered() -> None:
    ids = ItemIds(most=2)
    assert [ids.claim(name) for name in ("a", "b", "a", "b")] == [True, True, False, False]
    assert [ids.claim(name) for name in ("c", "a", "b")] == [True, True, True]


async def test_a_reference_means_the_message_that_the_client_was_told_by_that_id() -> None:
    server = ModelServer(*[saying(word) for word in ("One.", "Two.", "Three.")], saying("So."))
    app = middleware(server, Painter())
    told = [await ask(app, draw(input=word)) for word in ("1?", "2?", "3?")]
    assert all(check_stream(client.body, tools=draw()["tools"]) == [] for client in told)
    names = [final(client)["output"][0]["id"] for client in told]
    assert names[0] == "msg_1"
    assert len({*names}) == 3
    references: list[Any] = [{"type": "item_reference", "id": name} for name in names]
    await ask(app, draw(input=[*references, {"role": "user", "content": "And?"}]))
    shown = [item["content"] for item in server.asked[3].json["input"]]
    assert [content[0]["text"] for content in shown[:3]] == ["One.", "Two.", "Three."]


async def test_a_deleted_response_takes_no_item_of_another_along() -> None:
    server = ModelServer(saying("One.", response_id="resp_1"), saying("Two.", response_id="resp_2"), [b"{}"])
    app = middleware(server, Painter())
    responses = [final(await ask(app, draw(input=word))) for word in ("1?", "2?")]
    await delete(app, responses[0]["id"])
    reference = {"type": "item_reference", "id": responses[1]["output"][0]["id"]}
    server._answers.append(server._answers[0])
    await ask(app, draw(input=[reference]))
    assert server.asked[3].json["input"][0]["content"][0]["text"] == "Two."


async def test_the_turns_of_one_response_may_share_an_id_with_an_earlier_one() -> None:
    server = ModelServer(*KITE_TURNS, *KITE_TURNS)
    app = middleware(server, Painter())
    first, second = [await ask(app, draw()) for _ in range(2)]
    assert len(read_events(first.body)) == len(read_events(second.body))
    ids = [item["id"] for client in (first, second) for item in final(client)["output"]]
    assert len({*ids}) == 4
