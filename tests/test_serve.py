"""`imagecall serve` as a process: its log, its workers, what becomes of them, and its end."""

from __future__ import annotations

import json
import math
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from commands import run
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.serving import listening, worker_app
from imagecall.middleware.settings import Settings
from parts import require
from redis_server import redis_server
from serving import serve

TOOLS: Any = [{"type": "image_generation"}]
COMMAND = [sys.executable, "-c", "from imagecall.middleware.cli import main; main()", "serve"]
STARTED = re.compile(r"Started server process \[(\d+)\]")


class Serving:
    """A process of the command, and its log line by line."""

    def __init__(self, *words: str, **variables: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [*COMMAND, "--backend", "scene", "--port", str(self.port), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._hopeless = threading.Timer(60, self.kill)
        self._hopeless.start()

    def log(self, needle: str, times: int = 1) -> list[str]:
        """Read the log until so many lines hold `needle`; return these."""
        found: list[str] = []
        assert self.process.stderr is not None
        while len(found) < times:
            line = self.process.stderr.readline()
            assert line, "the log has ended:\n" + "".join(self.lines)
            self.lines.append(line)
            if needle in line:
                found.append(line)
        return found

    def listens(self) -> None:
        """Wait until clients can connect."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("Listening on ")

    def workers(self, count: int) -> list[int]:
        """Wait until so many more workers serve; return their process ids."""
        started = [line for line in self.log("Application startup complete", count) if line]
        assert started
        return [int(pid) for line in self.lines for pid in STARTED.findall(line)][-count:]

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="k", max_retries=0)

    def draw(self, name: str = "mine") -> str:
        with self.client() as client:
            headers = {"x-request-id": name}
            raw = client.responses.with_raw_response.create(
                model="m", input="Draw a cat", tools=TOOLS, extra_headers=headers
            )
            assert raw.headers["x-request-id"] == name
            return str(raw.parse().id)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.loads(answer.read())

    def stop(self) -> tuple[int, str]:
        """Tell it to stop, as a supervisor does; return its exit code and the rest of its log."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        rest = self.process.stderr.read()
        return self.process.wait(), rest

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        self._hopeless.cancel()
        self.kill()
        with self.process:
            pass


@contextmanager
def running(*words: str, **variables: str) -> Iterator[Serving]:
    serving = Serving(*words, **variables)
    try:
        yield serving
    finally:
        serving.close()


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    with serve(scripted_app()) as url:
        yield url


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_log_in_json_has_one_line_for_a_response_and_one_for_its_access(upstream: str) -> None:
    with running("--upstream", upstream, "--log-format", "json") as serving:
        serving.log("Application startup complete")
        assert serving.get("/healthz") == {"status": "alive"}
        assert serving.get("/readyz") == {"status": "ready"}
        response_id = serving.draw()
        access = json.loads(serving.log("POST /v1/responses")[0])
        told = [json.loads(line) for line in serving.lines if '"response_id"' in line]
        if not told:
            told = [json.loads(line) for line in serving.log('"response_id"')]
        code, rest = serving.stop()
    assert (access["logger"], access["request_id"]) == ("uvicorn.access", "mine")
    [response] = told
    assert (response["response_id"], response["request_id"]) == (response_id, "mine")
    assert (response["outcome"], response["turns"], response["pictures_completed"]) == ("completed", 2, 1)
    assert code in (0, -signal.SIGTERM)
    for line in [*serving.lines, *rest.splitlines()]:
        assert json.loads(line)["level"] == "INFO"
        assert "cat" not in line.replace("application", "").replace("Application", "")


def test_the_log_in_text_names_requests(upstream: str) -> None:
    with running("--upstream", upstream, IMAGECALL_LOG_FORMAT="text") as serving:
        serving.log("Application startup complete")
        serving.draw("mine")
        [line] = serving.log("POST /v1/responses")
    assert "INFO uvicorn.access [mine]: " in line


@pytest.mark.parametrize("workers", [1, 2])
def test_the_log_tells_no_more_than_its_level_wants(upstream: str, workers: int) -> None:
    words = ("--upstream", upstream, "--workers", str(workers), "--store", "none")
    with running(*words, "--log-level", "warning") as serving:
        serving.listens()
        serving.draw()
        _, rest = serving.stop()
    assert serving.lines == []
    assert rest == ""


def test_several_workers_share_a_port_and_a_store_and_one_that_dies_is_replaced(upstream: str) -> None:
    with (
        redis_server() as redis,
        running("--upstream", upstream, "--workers", "2", "--store", redis.url) as serving,
    ):
        first = serving.workers(2)
        assert len(set(first)) == 2
        response_id = serving.draw()
        os.kill(first[0], signal.SIGKILL)
        serving.log(f"Child process [{first[0]}] died")
        [replacement] = serving.workers(1)
        assert replacement not in first
        with serving.client() as client:
            assert client.responses.retrieve(response_id).status == "completed"
        serving.draw()
        code, _ = serving.stop()
        assert code == 0
        assert not any(alive(pid) for pid in (first[1], replacement))


@pytest.mark.parametrize("words", [(), ("--store", "memory")])
def test_several_workers_without_a_store_that_they_share_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("IMAGECALL_WORKERS", "2")
    given = ("--upstream", "http://h", "--backend", "scene", *words)
    assert run(monkeypatch, "serve", *given) == 1
    assert capsys.readouterr().err == (
        "imagecall: --workers 2 needs a store that all of them share: choose --store redis://…, or "
        "--store none to keep nothing\n"
    )


def test_a_worker_has_its_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_UPSTREAM", "http://127.0.0.1:1")
    monkeypatch.setenv("IMAGECALL_BACKEND", "scene")
    monkeypatch.setenv("IMAGECALL_MAX_TURNS", "3")
    served: Any = worker_app()
    assert served.app.settings.max_turns == 3


def test_options_travel_to_the_workers_as_variables(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("uvicorn.supervisors.Multiprocess.run", lambda self: seen.append(self.config))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for name in ("UPSTREAM", "MAX_TURNS", "STORE", "BACKEND"):
        monkeypatch.setenv(f"IMAGECALL_{name}", "")  # so that it is unset again at the end
        monkeypatch.delenv(f"IMAGECALL_{name}")
    words = ("--backend", "scene", "--store", "none", "--max-turns", "3", "--workers", "2")
    port = ("--port", str(unused_tcp_port))
    assert run(monkeypatch, "serve", "--upstream", "http://127.0.0.1:1", *words, *port) == 0
    [config] = seen
    assert (config.workers, config.factory, config.app) == (
        2,
        True,
        "imagecall.middleware.serving:worker_app",
    )
    served: Any = worker_app()
    assert (served.app.settings.max_turns, served.app.settings.store) == (3, "none")


def test_a_client_that_takes_nothing_for_as_long_as_a_response_may_last_is_closed_by_the_system(
    unused_tcp_port: int,
) -> None:
    require(hasattr(socket, "TCP_USER_TIMEOUT"), "this system has no TCP_USER_TIMEOUT")
    settings = Settings(response_timeout=0.5, disconnect_grace=0.5)
    listener, _ = listening("127.0.0.1", unused_tcp_port, settings)
    with listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as link:
        link.setblocking(False)
        while select.select([], [link], [], 0)[1]:
            link.send(bytes(1 << 16))
        select.select([link], [], [])
        with pytest.raises(TimeoutError):
            link.recv(1)


@pytest.mark.parametrize(("timeout", "able"), [(math.inf, True), (1_800.0, False)])
def test_a_port_is_opened_where_the_system_cannot_or_need_not_do_so(
    timeout: float, able: bool, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if not able:
        monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)
    listener, url = listening("127.0.0.1", unused_tcp_port, Settings(response_timeout=timeout))
    with listener:
        assert url == f"http://127.0.0.1:{unused_tcp_port}"
        assert option is None or listener.getsockopt(socket.IPPROTO_TCP, option) == 0
