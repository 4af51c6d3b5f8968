"""The servers that are compared, each started the same way. Peers live in virtualenvs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .process import LOAD_CORE, SERVER_CORE, Process, free_port, listener
from .stream import DELTAS

__all__ = ["PEERS", "Contender", "Site"]

PEERS = {"smg": ["smg"], "litellm": ["litellm[proxy]"]}
"""The peers, and what pip installs for them."""

LITELLM_MODELS = (f"burst-{DELTAS}", "burst-1", "paced-200", "idle")
"""What LiteLLM is asked for: it must know each model by name."""


class Contender(NamedTuple):
    """A running server."""

    name: str
    process: Process
    url: str
    """Of the Responses endpoint."""


class Site:
    """Starts upstream, picture maker and contenders.

    Args:
        folder: takes logs, configurations and the peers' virtualenvs; what is there is used again.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._running: list[Process] = []
        socket = listener()
        self.upstream = f"http://127.0.0.1:{socket.getsockname()[1]}"
        command = [sys.executable, "-m", "bench.upstream", str(socket.fileno())]
        self._start("upstream", command, LOAD_CORE, fds=(socket.fileno(),))
        port = free_port()
        self.painter = f"http://127.0.0.1:{port}/mcp"
        painter = self._start("painter", [sys.executable, "-m", "bench.painter", str(port)], LOAD_CORE)
        painter.wait_until_up(self.painter)

    def direct(self) -> Contender:
        """No server at all: the upstream itself."""
        return Contender("direct", self._running[0], f"{self.upstream}/v1/responses")

    def in_process(self, name: str) -> Contender:
        """Start one of `bench.apps`."""
        socket = listener()
        command = [sys.executable, "-m", "bench.apps", name, str(socket.fileno())]
        return self._contender(name, command, socket.getsockname()[1], fds=(socket.fileno(),))

    def proxy(self, name: str) -> Contender:
        """Start a proxy before the upstream: `aiohttp`, `imagecall`, `smg` or `litellm`."""
        makers: dict[str, Callable[[int], Contender]] = {
            "aiohttp": self._aiohttp,
            "imagecall": self._imagecall,
            "smg": self._smg,
            "litellm": self._litellm,
        }
        return makers[name](free_port())

    def stop(self) -> None:
        """Kill them all."""
        for process in self._running:
            process.stop()

    def _aiohttp(self, _: int) -> Contender:
        socket = listener()
        command = [sys.executable, "-m", "bench.raw_proxy", self.upstream, str(socket.fileno())]
        return self._contender("aiohttp", command, socket.getsockname()[1], fds=(socket.fileno(),))

    def _imagecall(self, port: int) -> Contender:
        start = "from imagecall.middleware.cli import main; main()"
        command = [sys.executable, "-c", start, "serve", "--upstream", self.upstream]
        options = ["--port", str(port), "--backend", "mcp", "--backend-url", self.painter]
        options += ["--log-level", "warning"]  # as SMG's
        return self._contender("imagecall", [*command, *options], port)

    def _smg(self, port: int) -> Contender:
        config = self._folder / "smg.yaml"
        server = {
            "name": "painter",
            "protocol": "streamable",
            "url": self.painter,
            "builtin_type": "image_generation",
            "builtin_tool_name": "generate_image",
            "tools": {"generate_image": {"response_format": "image_generation_call"}},
        }
        config.write_text(json.dumps({"servers": [server]}))  # JSON is YAML, too
        command = [str(self._peer("smg") / "smg"), "launch", "--backend", "openai", "--log-level", "warn"]
        options = ["--worker-urls", self.upstream, "--host", "127.0.0.1", "--port", str(port)]
        ports = ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
        more = ["--mcp-config-path", str(config), "--history-backend", "none"]
        return self._contender("smg", [*command, *options, *ports, *more], port)

    def _litellm(self, port: int) -> Contender:
        config = self._folder / "litellm.yaml"
        models = [
            {
                "model_name": name,
                "litellm_params": {
                    "model": f"openai/{name}",
                    "api_base": f"{self.upstream}/v1",
                    "api_key": "-",
                },
                # Else it asks for the whole answer and pretends to stream it.
                "model_info": {"supports_native_streaming": True},
            }
            for name in LITELLM_MODELS
        ]
        config.write_text(json.dumps({"model_list": models}))
        command = [str(self._peer("litellm") / "litellm"), "--config", str(config)]
        options = ["--host", "127.0.0.1", "--port", str(port)]
        arguments = [*command, *options]
        return self._contender(
            "litellm", arguments, port, LITELLM_MASTER_KEY="sk-bench", LITELLM_LOCAL_MODEL_COST_MAP="true"
        )

    def _peer(self, name: str) -> Path:
        """Return the folder of a peer's commands; install it if need be."""
        home = self._folder / name
        if not (home / "bin" / name).exists():
            venv.create(home, with_pip=True)
            subprocess.run([home / "bin" / "pip", "install", "-q", *PEERS[name]], check=True)
        return home / "bin"

    def _contender(
        self, name: str, command: list[str], port: int, *, fds: tuple[int, ...] = (), **env: str
    ) -> Contender:
        process = self._start(f"contender-{name}", command, SERVER_CORE, fds=fds, **env)
        process.wait_until_up(f"http://127.0.0.1:{port}/v1/models")
        return Contender(name, process, f"http://127.0.0.1:{port}/v1/responses")

    def _start(
        self, name: str, command: list[str], core: int, *, fds: tuple[int, ...] = (), **env: str
    ) -> Process:
        process = Process(command, core, self._folder / f"{name}.log", pass_fds=fds, **env)
        self._running.append(process)
        return process
