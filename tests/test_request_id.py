"""The name of a request: the client's or a new one, in the log, towards the model server and back."""

from __future__ import annotations

import asyncio
import logging

import pytest
from asgi import Client, ask, conversation, draw, middleware, post
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.request_id import RequestIdFilter, identified
from loopback import answering, http_scope, raw_server
from loopback import ask as request
from model_server import JSON, KITE_TURNS, SSE, Answer, ModelServer, saying
from painters import Painter, raising
from sockets import connected, create, handshake

NAME = b"x-request-id"


def name_of(client: Client) -> list[bytes]:
    return [value for name, value in client.headers if name == NAME]


@pytest.mark.parametrize("given", ["trace-1", "req_9f/a:b+c=d@e.f", "a" * 128])
async def test_a_clients_name_for_its_request_goes_to_the_model_server_and_comes_back(given: str) -> None:
    server = ModelServer(*KITE_TURNS)
    client = await ask(middleware(server, Painter()), draw(), post(headers=[(NAME, given.encode())]))
    assert name_of(client) == [given.encode()]
    assert [asked.headers[NAME] for asked in server.asked] == [given.encode()] * 2


@pytest.mark.parametrize(
    "given",
    [[], [b""], [b"a" * 129], [b"a b"], [b"a\x1b[31m"], ["ä".encode()], [b"one", b"two"]],
    ids=["none", "empty", "long", "space", "escape", "umlaut", "two"],
)
async def test_a_request_without_a_sane_name_gets_a_new_one(given: list[bytes]) -> None:
    server = ModelServer(*KITE_TURNS)
    scope = post(headers=[(NAME, value) for value in given])
    client = await ask(middleware(server, Painter()), draw(), scope)
    assert name_of(client) == [b"req_1"]
    for asked in server.asked:
        assert [value for name, value in asked.scope["headers"] if name == NAME] == [b"req_1"]


async def test_the_model_servers_own_name_for_a_request_is_kept() -> None:
    headers = [*SSE, (b"X-Request-Id", b"req_upstream")]
    server = ModelServer(Answer(saying("Hello."), headers=headers))
    client = await ask(middleware(server, Painter()), draw(), post(headers=[(NAME, b"mine")]))
    assert [value for name, value in client.headers if name.lower() == NAME] == [b"req_upstream"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_is_named_whoever_refuses(stream: bool) -> None:
    refused = Answer([b"{}"], status=429, headers=[*JSON])
    app = middleware(ModelServer(refused, Answer([b"<html>"])), Painter())
    named = post(headers=[(NAME, b"mine")])
    wrong = draw(tools=[{"type": "image_generation", "size": 1}])
    for body, status in ((draw(stream=stream), 429), (draw(stream=stream), 502), (wrong, 400)):
        client = await ask(app, body, named)
        assert (client.status, name_of(client)) == (status, [b"mine"])


async def test_an_answer_about_a_stored_response_is_named() -> None:
    app = middleware(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw())
    scope = post("/v1/responses/resp_up1", [(NAME, b"mine")], method="GET")
    client = await ask(app, b"", scope)
    assert (client.status, name_of(client)) == (200, [b"mine"])


async def test_records_of_two_requests_at_a_time_tell_them_apart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "imagecall")
    painter = Painter(waits=True)
    app = middleware(ModelServer(KITE_TURNS[0], KITE_TURNS[0], saying("1"), saying("2")), painter)
    one, two = (post(headers=[(NAME, name)]) for name in (b"one", b"two"))
    async with conversation(app, draw(), one):
        await painter.was_asked(1)
        async with asyncio.TaskGroup() as group:
            other = Client(app, draw(), two)
            group.create_task(other.run())
            await painter.was_asked(2)
            painter.may_finish.set()
    told = [(vars(record)["request_id"], record.getMessage().split(":")[0]) for record in caplog.records]
    assert sorted(told) == sorted(
        [
            ("one", "ig_1 is finished"),
            ("one", "response resp_up1 of 'local-model'"),
            ("two", "ig_2 is finished"),
            ("two", "response resp_up1 of 'local-model'"),
        ]
    )


async def test_one_line_tells_of_each_response_and_nothing_of_what_it_shows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "imagecall")
    await ask(middleware(ModelServer(*KITE_TURNS), raising(ValueError("kite"))), draw(model="gpt\n-oss"))
    [record] = [one for one in caplog.records if one.getMessage().startswith("response")]
    told = record.__dict__
    assert record.levelname == "INFO"
    assert record.getMessage() == (
        f"response resp_up1 of 'gpt\\n-oss': completed after {told['duration']:.3f} s, 2 turn(s), "
        "pictures: 0 completed, 1 failed, 0 cancelled, 0 bytes"
    )
    facts = {
        "response_id": "resp_up1",
        "model": "gpt\n-oss",
        "outcome": "completed",
        "turns": 2,
        "pictures_completed": 0,
        "pictures_failed": 1,
        "pictures_cancelled": 0,
        "pictures_size": 0,
        "request_id": "req_1",
    }
    assert {name: told[name] for name in facts} == facts
    assert "kite" not in caplog.text.lower()


async def test_a_response_that_never_began_has_no_id_and_maybe_no_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "imagecall")
    request = draw()
    del request["model"]
    await ask(middleware(ModelServer(Answer(status=429, headers=[*JSON])), Painter()), request)
    assert caplog.messages[-1].startswith("response (none) of '': refused after ")


async def test_each_response_on_a_websocket_has_the_name_of_its_handshake() -> None:
    server = ModelServer(*KITE_TURNS)
    async with connected(middleware(server, Painter()), handshake(headers=[(NAME, b"mine")])) as socket:
        socket.say(create())
        await socket.heard_ends()
    assert [asked.headers[NAME] for asked in server.asked] == [b"mine"] * 2


async def test_a_record_outside_of_any_request_says_so_and_is_kept() -> None:
    with identified(post(headers=[(NAME, b"mine")]), lambda prefix: prefix):
        pass
    record = logging.makeLogRecord({"msg": "started"})
    assert RequestIdFilter().filter(record)
    assert vars(record)["request_id"] == "-"


# -- in front of a URL -----------------------------------------------------------------------------

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
NAMED = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Request-ID: theirs\r\n\r\nhi"


async def test_in_front_of_a_url_requests_that_are_none_of_ours_are_named_too() -> None:
    seen: list[bytes] = []
    async with raw_server(answering(PLAIN, NAMED, seen=seen)) as url:
        proxy = ProxyApp(url)
        app = middleware(proxy, Painter())
        answers = []
        for _ in range(2):
            head, *_ = await request(app, http_scope("/v1/models", method="GET", headers=[(NAME, b"mine")]))
            answers.append([value for name, value in head["headers"] if name == NAME])
        await proxy.aclose()
    assert answers == [[b"mine"], [b"theirs"]]
    assert all(b"\r\nx-request-id: mine\r\n" in one.lower() for one in seen)


async def test_a_proxy_by_itself_names_nothing() -> None:
    seen: list[bytes] = []
    async with raw_server(answering(PLAIN, seen=seen)) as url:
        proxy = ProxyApp(url)
        head, *_ = await request(proxy, http_scope("/v1/models", method="GET"))
        await proxy.aclose()
    assert NAME not in dict(head["headers"])
    assert NAME not in seen[0].lower()


async def test_an_upstream_that_cannot_be_reached_is_told_with_the_requests_name(
    unused_tcp_port: int,
) -> None:
    proxy = ProxyApp(f"http://127.0.0.1:{unused_tcp_port}")
    scope = http_scope("/v1/models", method="GET", headers=[(NAME, b"mine")])
    head, *_ = await request(middleware(proxy, Painter()), scope)
    await proxy.aclose()
    assert (head["status"], dict(head["headers"])[NAME]) == (502, b"mine")
