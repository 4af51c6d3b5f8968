"""Two workers on one Redis: what one has begun the other goes on with, whatever becomes of the first."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from redis_server import redis_server

TOOLS: Any = [{"type": "image_generation", "partial_images": 1}]


class Worker:
    """A process that serves `worker:app`, and a client of it."""

    def __init__(self, store: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        number = self._listener.fileno()
        command = [sys.executable, "-m", "uvicorn", "worker:app", "--fd", str(number), "--log-level", "error"]
        self._serves = False
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  closed by `kill`
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parent,
            pass_fds=[number],
            env={**os.environ, "IMAGECALL_STORE": store},
            stdout=subprocess.PIPE,
            stderr=self._words,
        )
        url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._client = openai.OpenAI(base_url=url, api_key="k", max_retries=0, timeout=60)
        self.responses = self._client.responses

    def serves(self) -> None:
        """Wait until it does.

        Raises:
            RuntimeError: it has ended instead; with its own words.
        """
        assert self._process.stdout is not None
        self._serves = self._serves or bool(self._process.stdout.readline())
        if not self._serves:
            self._words.seek(0)
            raise RuntimeError(self._words.read().decode())

    def draw(self, words: Any, **more: Any) -> Response:
        *_, last = self.responses.create(model="m", input=words, tools=TOOLS, stream=True, **more)
        assert last.type == "response.completed", last
        return last.response

    def begin(self, words: str) -> Response:
        """Begin a response in the background whose picture is never finished; return once one is begun."""
        queued = self.responses.create(model="m", input=words, tools=TOOLS, background=True)
        for event in self.responses.retrieve(queued.id, stream=True):
            if event.type == "response.image_generation_call.partial_image":
                break
        return queued

    def kill(self) -> None:
        self._client.close()
        self._listener.close()
        self._words.close()
        with self._process as process:
            process.kill()


@contextmanager
def killed_at_last(worker: Worker) -> Iterator[Worker]:
    try:
        yield worker
    finally:
        worker.kill()


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    with redis_server() as server:
        yield server.url


@pytest.fixture(scope="module")
def survivor(redis: str) -> Iterator[Worker]:
    with killed_at_last(Worker(redis)) as worker:
        yield worker


@pytest.fixture
def workers(redis: str, survivor: Worker) -> Iterator[tuple[Worker, Worker]]:
    """A worker that a test may kill, and one that serves all tests."""
    with killed_at_last(Worker(redis)) as worker:
        survivor.serves()
        worker.serves()
        yield worker, survivor


def picture(response: Response) -> str:
    item = next(item for item in response.output if item.type == "image_generation_call")
    assert item.result
    return item.result


def test_a_worker_that_cannot_start_says_why() -> None:
    with killed_at_last(Worker("a cellar")) as worker, pytest.raises(RuntimeError, match="IMAGECALL_STORE"):
        worker.serves()


def test_a_conversation_goes_on_at_the_other_worker_when_the_first_was_killed(
    workers: tuple[Worker, Worker],
) -> None:
    one, two = workers
    first = one.draw("A red kite.")
    item, said = first.output
    one.kill()
    assert two.responses.retrieve(first.id).to_dict() == first.to_dict()
    *_, last = two.responses.retrieve(first.id, stream=True, starting_after=3)
    assert last.to_dict()["response"] == first.to_dict()
    blue = {"role": "user", "content": "Make it blue."}
    for replayed in (item.to_dict(), {"id": item.id}, {"type": "item_reference", "id": item.id}):
        second = two.draw([{"role": "user", "content": "A red kite."}, replayed, said.to_dict(), blue])
        assert picture(second) == picture(first)
    second = two.draw("Make it blue.", previous_response_id=first.id)
    assert (second.previous_response_id, picture(second)) == (first.id, picture(first))
    third = two.draw("Make it blue again.", previous_response_id=second.id)
    assert picture(third) == picture(first)
    two.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        two.draw("And?", previous_response_id=second.id)


def test_a_response_in_the_background_is_seen_and_cancelled_from_the_other_worker(
    workers: tuple[Worker, Worker],
) -> None:
    one, two = workers
    queued = one.begin("A slow kite.")
    assert two.responses.retrieve(queued.id).status == "in_progress"
    assert two.responses.cancel(queued.id).status == "cancelled"
    assert one.responses.retrieve(queued.id).status == "cancelled"
    *_, last = two.responses.retrieve(queued.id, stream=True)
    assert last.to_dict()["response"]["status"] == "cancelled"  # type: ignore[index]  # a typed object


def test_a_response_in_the_background_whose_worker_is_killed_has_failed(
    workers: tuple[Worker, Worker],
) -> None:
    one, two = workers
    queued = one.begin("A slow kite.")
    one.kill()
    *_, last = two.responses.retrieve(queued.id, stream=True)
    assert last.type == "response.failed"
    assert two.responses.retrieve(queued.id).status == "failed"
