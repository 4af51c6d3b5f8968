"""The second turn of a conversation, in each way in which clients speak of the first."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from asgi import Client, ask, draw, middleware, post
from exchanges import WEATHER, oslo, painting
from imagecall.middleware.store import MemoryStore
from model_server import HOSTED, JSON, KITE_TURNS, Answer, ModelServer, calling, frames, saying, whole
from painters import Painter, png
from rules import read_events
from surface import delete, final, get
from test_asgi import Mirror

ME = (b"authorization", b"Bearer mine")
YOU = (b"authorization", b"Bearer yours")

BLUE = calling(
    "make it blue",
    arguments='{"prompt":"a blue kite","num_last_images_to_include":1}',
    response_id="resp_up3",
)
BLUE_TURNS = (BLUE, saying("Blue ", "now.", response_id="resp_up4"))


def again(first: Any, way: str) -> dict[str, Any]:
    """Make the second request as a client makes it that replays the first in some way."""
    words = {"role": "user", "content": "Make it blue."}
    asked = {"role": "user", "content": "Draw a kite."}
    item, said = first["output"]
    replayed = {
        "whole": item,
        "without its result": {**item, "result": None},
        "by id": {"type": item["type"], "id": item["id"]},
        "by reference": {"type": "item_reference", "id": item["id"]},
        "by a bare id": {"id": item["id"]},
    }
    if way == "the response's id":
        return {"input": [words], "previous_response_id": first["id"]}
    return {"input": [asked, replayed[way], said, words]}


@pytest.mark.parametrize(
    "way",
    ["whole", "without its result", "by id", "by reference", "by a bare id", "the response's id"],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_make_it_blue_edits_the_first_picture_however_it_is_replayed(way: str, stream: bool) -> None:
    turns = (*KITE_TURNS, *BLUE_TURNS)
    server = ModelServer(*(Answer(turn) if stream else Answer([whole(turn)], headers=JSON) for turn in turns))
    painter = Painter()
    app = middleware(server, painter)
    client = await ask(app, draw(stream=stream))
    first = final(client) if stream else client.json
    picture = base64.b64decode(first["output"][0]["result"])
    client = await ask(app, draw(stream=stream, **again(first, way)))
    second = final(client) if stream else client.json
    assert [image.data for image in painter.asked[1].images] == [picture]
    assert second["output"][0]["action"] == "edit"
    assert second["output"][0]["result"] == base64.b64encode(png("a blue kite")).decode()
    encoded = first["output"][0]["result"].encode()
    assert all(encoded not in asked.body for asked in server.asked)
    assert {kind for asked in server.asked for kind in kinds(asked.json["input"])} <= {
        "message",
        "function_call",
        "function_call_output",
    }


def kinds(items: Any) -> list[str]:
    return [] if isinstance(items, str) else [item.get("type", "message") for item in items]


async def test_a_chain_goes_on_from_the_turn_that_answered_and_shows_the_clients_own_id() -> None:
    server = ModelServer(*KITE_TURNS, *BLUE_TURNS)
    app = middleware(server, Painter())
    await ask(app, draw())
    client = await ask(app, draw(input="Make the kite blue.", previous_response_id="resp_up1"))
    asked = [one.json.get("previous_response_id") for one in server.asked]
    assert asked == [None, None, "resp_up2", "resp_up2"]
    shown = [one["response"] for one in read_events(client.body) if "response" in one]
    assert {(one["id"], one["previous_response_id"]) for one in shown} == {("resp_up3", "resp_up1")}
    assert (await get(app, "resp_up3")).json == final(client)


async def test_a_chain_holds_over_turns_that_do_not_declare_the_tool() -> None:
    said = [saying("Hm.", response_id=name) for name in ("resp_a", "resp_b")]
    server = ModelServer(*KITE_TURNS, *said, *BLUE_TURNS)
    painter = Painter()
    app = middleware(server, painter)
    first = final(await ask(app, draw()))
    before = first["id"]
    for _ in said:
        request = {"model": "m", "input": "Nice.", "previous_response_id": before, "stream": True}
        response = final(await ask(app, request))
        assert response["previous_response_id"] == before
        before = response["id"]
    await ask(app, draw(input="Make it blue.", previous_response_id=before))
    asked = [one.json.get("previous_response_id") for one in server.asked[2:]]
    assert asked == ["resp_up2", "resp_a", "resp_b", "resp_b"]
    assert [image.data for image in painter.asked[1].images] == [
        base64.b64decode(first["output"][0]["result"])
    ]


@pytest.mark.parametrize("why", ["deleted", "somebody else's", "a turn's own"])
async def test_a_previous_response_that_may_not_be_had_is_refused_before_any_byte(why: str) -> None:
    server = ModelServer(*KITE_TURNS, *[Answer([b"{}"], status=404)] * 2)
    app = middleware(server, Painter())
    await ask(app, draw(), post(headers=[ME]))
    identifier, owner = "resp_up1", YOU if why == "somebody else's" else ME
    if why == "deleted":
        await delete(app, identifier, headers=[ME])
    if why == "a turn's own":
        identifier = "resp_up2"
    asked = len(server.asked)
    request = draw(previous_response_id=identifier, tools=[])
    client = await ask(app, request, post(headers=[owner]))
    assert client.status == 404
    assert (b"content-type", b"application/json") in client.headers
    assert client.json["error"] == {
        "message": f"Previous response with id '{identifier}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    assert len(server.asked) == asked


async def test_a_previous_response_never_seen_is_the_model_servers_to_judge() -> None:
    server = ModelServer(*KITE_TURNS)
    client = await ask(middleware(server, Painter()), draw(previous_response_id="resp_of_old"))
    assert [one.json["previous_response_id"] for one in server.asked] == ["resp_of_old"] * 2
    assert final(client)["previous_response_id"] == "resp_of_old"


async def test_a_conversation_keeps_its_pictures_in_reach() -> None:
    server = ModelServer(*KITE_TURNS, *BLUE_TURNS)
    painter = Painter()
    app = middleware(server, painter)
    first = final(await ask(app, draw(conversation={"id": "conv_1"})))
    await ask(app, draw(input="Make it blue.", conversation="conv_1"))
    assert [image.data for image in painter.asked[1].images] == [
        base64.b64decode(first["output"][0]["result"])
    ]


@pytest.mark.parametrize("name", ['"conversation"', '"\\u0063onversation"'])
async def test_a_conversation_is_given_what_it_waits_for_once_also_by_a_request_without_the_tool(
    name: str,
) -> None:
    mixed = frames(painting("a kite"), oslo(1), response_id="resp_up1")
    server = ModelServer(mixed, saying("Rain."), saying("Yes."))
    app = middleware(server, Painter())
    await ask(app, draw(conversation="conv_1", tools=[HOSTED, WEATHER]))
    for words in ([{"type": "function_call_output", "call_id": "call_fc_o", "output": "rain"}], "Sure?"):
        asked = {"model": "m", "input": words, "stream": True, "conversation": {"id": "conv_1"}}
        body = json.dumps(asked).replace('"conversation"', name).encode()
        assert final(await ask(app, body))["status"] == "completed"
    first, second, third = (one.json for one in server.asked)
    owed, given = second["input"]
    assert (owed["type"], owed["call_id"]) == ("function_call_output", "call_fc_a")
    assert json.loads(owed["output"])["status"] == "completed"
    assert (given["call_id"], given["output"]) == ("call_fc_o", "rain")
    assert third["input"] == "Sure?"
    assert {first["conversation"], second["conversation"]["id"], third["conversation"]["id"]} == {"conv_1"}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_conversation_is_given_what_it_waits_for_once_also_by_what_nobody_may_keep(
    stream: bool,
) -> None:
    server = ModelServer(
        frames(painting("a kite"), oslo(1)),
        Answer([b"{}"], 429, JSON),
        Answer(saying("Rain.")) if stream else Answer([whole(saying("Rain."))], headers=JSON),
        *BLUE_TURNS,
    )
    painter = Painter()
    app = middleware(server, painter)
    await ask(app, draw(conversation="conv_1", tools=[HOSTED, WEATHER]))
    given = [{"type": "function_call_output", "call_id": "call_fc_o", "output": "rain"}]
    unkept = {"conversation": "conv_1", "store": False, "stream": stream, "input": given}
    assert (await ask(app, {"model": "m", **unkept})).status == 429
    client = await ask(app, {"model": "m", **unkept})
    assert (final(client) if stream else client.json)["status"] == "completed"
    await ask(app, draw(input="Make it blue.", conversation="conv_1"))
    sent = [kinds(one.json["input"]) for one in server.asked[1:4]]
    assert sent == [["function_call_output"] * 2, ["function_call_output"] * 2, []]
    assert len(painter.asked[1].images) == 1


async def test_a_picture_that_the_user_sent_stays_in_reach_of_the_next_turn() -> None:
    server = ModelServer(saying("A kite."), *BLUE_TURNS)
    painter = Painter()
    app = middleware(server, painter)
    url = f"data:image/png;base64,{base64.b64encode(png('mine')).decode()}"
    content = [{"type": "input_image", "detail": "auto", "image_url": url}]
    first = final(await ask(app, draw(input=[{"role": "user", "content": content}])))
    await ask(app, draw(input="Make it blue.", previous_response_id=first["id"]))
    assert [image.data for image in painter.asked[0].images] == [png("mine")]
    page = (await get(app, f"{first['id']}/input_items")).json
    assert page["data"][0]["content"] == content


async def test_items_of_other_types_are_known_by_reference_too() -> None:
    server = ModelServer(*KITE_TURNS, saying("Yes."))
    app = middleware(server, Painter())
    first = final(await ask(app, draw()))
    reference = {"type": "item_reference", "id": first["output"][1]["id"]}
    request = {"model": "m", "input": [reference, {"role": "user", "content": "Did you say that?"}]}
    await ask(app, request)
    said, words = server.asked[2].json["input"]
    assert said["content"][0]["text"] == first["output"][1]["content"][0]["text"]
    assert words["content"] == "Did you say that?"


async def test_a_reference_that_is_not_ours_travels_on_untouched() -> None:
    mirror = Mirror()
    request = json.dumps({"input": [{"type": "item_reference", "id": "msg_of_old"}]}).encode()
    client = Client(middleware(mirror, Painter()), request, post())
    await client.run()
    assert mirror.received[0] is client.said[0]
    assert mirror.send is client.send


async def test_an_unknown_picture_is_named_before_anything_is_asked() -> None:
    server = ModelServer()
    client = await ask(middleware(server, Painter()), draw(input=[{"type": "item_reference", "id": "ig_x"}]))
    assert client.status == 400
    assert "'ig_x'" in client.json["error"]["message"]


async def test_many_conversations_stay_within_the_store() -> None:
    kept = MemoryStore(entries=40, max_bytes=200_000)

    class Endless(ModelServer):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            number = len(self.asked)
            made = calling if number % 2 == 0 else saying
            self._answers.append(Answer(made(f"kite {number}", response_id=f"resp_{number}")))
            await super().__call__(scope, receive, send)

    app = middleware(Endless(), Painter(), store=kept)
    for _ in range(100):
        assert (await ask(app, draw())).complete
        assert kept._values._size + kept._logs._size <= 200_000
        assert len(kept._values._kept) + len(kept._logs._kept) <= 40
        assert len(kept._values._gone) + len(kept._logs._gone) <= 80
    assert (await get(app, "resp_198")).status == 200
