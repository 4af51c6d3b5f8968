"""A real LiteLLM proxy in front of a server with an Images API."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from images_api import KEY

__all__ = ["MASTER_KEY", "litellm_proxy"]

MASTER_KEY = "sk-canary-proxy-71c0a4"

_SURROUNDINGS = {"LITELLM_LOCAL_MODEL_COST_MAP": "true", "PYTHONUNBUFFERED": "1"}

_LISTENS = b"Uvicorn running on"

_STARTUP = 240.0
"""Seconds after which it will never start; it needs about twenty."""


@contextmanager
def litellm_proxy(command: str, behind: str, folder: Path) -> Iterator[str]:
    """Run the proxy; yield the base URL of its Images API.

    Args:
        command: its executable.
        behind: the Images API that it forwards to, under the model name `painter`.
        folder: for its configuration.
    """
    config = folder / "litellm.yaml"
    config.write_text(
        "model_list:\n- model_name: painter\n  litellm_params:\n"
        f"    {{model: openai/gpt-image-1, api_base: {behind}, api_key: {KEY}}}\n"
        f"general_settings: {{master_key: {MASTER_KEY}}}\n"
        "litellm_settings: {telemetry: false, num_retries: 0}\n"
        "router_settings: {num_retries: 0, disable_cooldowns: true}\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    child = subprocess.Popen(
        [command, "--config", str(config), "--host", "127.0.0.1", "--port", port],
        env={**os.environ, **_SURROUNDINGS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert child.stdout is not None
    patience = threading.Timer(_STARTUP, _kill, [child])
    patience.start()
    try:
        said = b""
        while _LISTENS not in said:
            line = child.stdout.readline()
            if not line:
                raise RuntimeError(f"LiteLLM did not start: {said.decode(errors='replace')}")
            said += line
        patience.cancel()
        drain = threading.Thread(target=child.stdout.read, name="litellm")
        drain.start()
        yield f"http://127.0.0.1:{port}/v1"
        _kill(child)
        drain.join()
    finally:
        patience.cancel()
        _kill(child)
        child.wait()
        child.stdout.close()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End it with whatever processes it has started itself."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
