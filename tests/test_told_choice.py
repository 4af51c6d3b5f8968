"""The tool_choice, told to llama.cpp's chat template."""

from __future__ import annotations

import json

import pytest
from imagecall.middleware.embedded.told_choice import ToldChoice
from loopback import Client, ask, body_of, http_scope
from starlette.types import Message, Receive, Scope, Send


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body as it came, and its announced length as the status."""
    length = int(dict(scope["headers"]).get(b"content-length", 0))
    message: Message = await receive() if scope["method"] == "POST" else {}
    await send({"type": "http.response.start", "status": length, "headers": []})
    await send({"type": "http.response.body", "body": message.get("body", b""), "more_body": False})


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
async def test_a_choice_in_words_becomes_an_argument_of_the_template(choice: str) -> None:
    request = {"input": "Hello", "tool_choice": choice}
    body = json.dumps(request).encode()
    scope = http_scope(headers=[(b"content-length", b"%d" % len(body)), (b"x-other", b"1")])
    head, *rest = await ask(ToldChoice(echo), scope, body[:9], body[9:])
    told_ = body_of(rest)
    assert json.loads(told_) == {**request, "chat_template_kwargs": {"tool_choice": choice}}
    assert head["status"] == len(told_)


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"input": "Hello"}', b'{"tool_choice": {"type": "x"}}'])
async def test_without_such_a_choice_the_body_stays_as_it_is(body: bytes) -> None:
    _, *rest = await ask(ToldChoice(echo), http_scope(), body)
    assert body_of(rest) == body


async def test_requests_without_a_body_and_lifespans_pass_untouched() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    for scope in ({"type": "lifespan"}, http_scope(method="GET")):
        await Client(ToldChoice(app), scope).run()
        assert seen.pop() is scope


async def test_a_client_that_leaves_within_its_body_asks_nothing() -> None:
    client = Client(ToldChoice(echo), http_scope())
    client.send_body(b'{"input": ', more_body=True)
    client.say("http.disconnect")
    await client.run()
    assert client.rest() == []


async def test_after_the_body_the_inner_application_hears_the_client() -> None:
    heard: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([(await receive())["type"], (await receive())["type"]])

    client = Client(ToldChoice(app), http_scope())
    client.send_body(b"{}")
    client.say("http.disconnect")
    await client.run()
    assert heard == ["http.request", "http.disconnect"]
