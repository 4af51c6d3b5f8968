"""The model servers: how each is installed and started, alone and with the middleware inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from servers import (
    CACHE,
    LITELLM,
    LITELLM_ALONE,
    ServerError,
    environment,
    free_port,
    litellm,
    litellm_config,
    llama_cpp,
    pip,
    running,
    vllm,
    vllm_environment,
)

from .recipes import write_recipe
from .situations import BROKEN

__all__ = ["UPSTREAMS", "Upstream", "in_front"]

ROOT = Path(__file__).parents[2]
PICTURES = {
    "IMAGECALL_BACKEND": json.dumps(
        # Nobody listens on the discard port: these pictures fail as they do when an image server is down.
        {"*": "scene", BROKEN: {"backend": "openai", "url": "http://127.0.0.1:9/v1", "retries": 0}}
    )
}
OGX = "1.5.0"
SMG = "1.13.0"
Running = AbstractAsyncContextManager[str]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model server.

    Attributes:
        name: what it is called on the command line.
        title: what it is, in words.
        python: returns the Python that has it installed.
        packages: whose versions say what was tried.
        alone: starts it without the middleware; gives its base URL with `/v1`. None for no such thing.
        inside: starts it with the middleware inside. None where it is no ASGI app.
        model: the name it knows its model by.
        extra: whether it is left out unless it is named.
    """

    name: str
    title: str
    python: Callable[[], Path]
    packages: tuple[str, ...]
    alone: Callable[[], Running] | None
    inside: Callable[[], Running] | None = None
    model: str = "smollm2"
    extra: bool = False

    def versions(self) -> str:
        """Return its packages with the versions that are installed."""
        code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
        words = [str(self.python()), "-c", code, *self.packages]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        return ", ".join(map(" ".join, zip(self.packages, told, strict=True)))


@asynccontextmanager
async def in_front(upstream: str) -> AsyncIterator[str]:
    """Run `imagecall serve` in front of a base URL; give its own."""
    port = free_port()
    command: list[Path | str] = [
        sys.executable, "-c", "from imagecall.middleware.cli import main; main()",
        "serve", "--upstream", upstream, "--port", port,
    ]  # fmt: skip
    async with running("imagecall", command, PICTURES, port, "/healthz") as url:
        yield url


def _with_imagecall(python: Path) -> Path:
    """Install this checkout beside a server, with all that it requires."""
    pip(python, "install", "--editable", f"{ROOT}[scene]")
    return python


@asynccontextmanager
async def _app(
    name: str, python: Path, word: str, health: str, variables: Mapping[str, str]
) -> AsyncIterator[str]:
    """Serve an app of docs/recipes.md by uvicorn."""
    folder = write_recipe(f"{name}.py", CACHE / "recipes")
    port = free_port()
    command: list[Path | str] = [
        python, "-m", "uvicorn", "--app-dir", folder, f"{name}:{word}", "--host", "127.0.0.1", "--port", port,
    ]  # fmt: skip
    if word == "create_app":
        command.append("--factory")
    async with running(name, command, {**PICTURES, **variables}, port, health) as url:
        yield url


def _here() -> Path:
    return Path(sys.executable)


def _litellm() -> Path:
    return environment("litellm", f"litellm[proxy]=={LITELLM}")


@asynccontextmanager
async def _litellm_inside() -> AsyncIterator[str]:
    python = _with_imagecall(_litellm())
    async with llama_cpp() as behind:
        variables = {**LITELLM_ALONE, "CONFIG_FILE_PATH": str(litellm_config(behind))}
        async with _app("litellm_app", python, "app", "/health/liveliness", variables) as url:
            yield url


def _vllm_inside() -> Running:
    _with_imagecall(vllm_environment())
    return vllm(["--middleware", "imagecall.middleware.ImageGenerationMiddleware"], PICTURES)


def _own() -> Path:
    return _with_imagecall(environment("own", "fastapi==0.165.0", "litestar==2.25.0", "quart==0.22.0"))


def _own_app(name: str) -> Callable[[], Running]:
    @asynccontextmanager
    async def start() -> AsyncIterator[str]:
        async with (
            llama_cpp() as behind,
            _app(name, _own(), "app", "/health", {"ENGINE": behind}) as url,
        ):
            yield url

    return start


def _ogx() -> Path:
    base = os.environ.get("PYTHON312") or (sys.executable if sys.version_info >= (3, 12) else None)
    if base is None:
        raise ServerError("OGX needs Python 3.12: name one in PYTHON312.")
    providers = (
        "sqlalchemy[asyncio]",
        "aiosqlite",
        "asyncpg",
        "sqlite-vec",
        "pypdf",
        "numpy",
        "chardet",
        "pillow",
    )
    return environment("ogx", f"ogx=={OGX}", "fastapi", "uvicorn", "httpx", *providers, base=base)


@asynccontextmanager
async def _ogx_variables() -> AsyncIterator[dict[str, str]]:
    """Start llama.cpp for OGX; give the variables with which OGX finds it, and itself a folder."""
    folder = CACHE / "ogx"
    folder.mkdir(parents=True, exist_ok=True)
    # It would fetch its tokenizer's words from the internet; LiteLLM's package has them, named as a cache.
    words = next(
        _litellm().parent.parent.glob("lib/python*/site-packages/litellm/litellm_core_utils/tokenizers")
    )
    async with llama_cpp() as behind:
        yield {
            "ENGINE": behind,
            "STATE": str(folder),
            "TIKTOKEN_CACHE_DIR": str(words),
            "OGX_CONFIG": str(Path(__file__).with_name("ogx.yaml")),
        }


@asynccontextmanager
async def _ogx_alone() -> AsyncIterator[str]:
    port = free_port()
    async with _ogx_variables() as variables:
        command: list[Path | str] = [
            _ogx().parent / "ogx", "run", variables["OGX_CONFIG"], "--insecure", "--port", port
        ]  # fmt: skip
        async with running("ogx", command, variables, port, "/v1/health") as url:
            yield url


@asynccontextmanager
async def _ogx_inside() -> AsyncIterator[str]:
    python = _with_imagecall(_ogx())
    async with (
        _ogx_variables() as variables,
        _app("ogx_app", python, "create_app", "/v1/health", variables) as url,
    ):
        yield url


def _smg() -> Path:
    return environment("smg", f"smg=={SMG}")


@asynccontextmanager
async def _smg_alone() -> AsyncIterator[str]:
    port = free_port()
    async with llama_cpp() as behind:
        command: list[Path | str] = [
            _smg().parent / "smg", "launch", "--backend", "openai",
            "--worker-urls", behind.removesuffix("/v1"), "--host", "127.0.0.1", "--port", port,
            "--prometheus-host", "127.0.0.1", "--prometheus-port", free_port(),
        ]  # fmt: skip
        async with running("smg", command, {}, port, "/health") as url:
            yield url


UPSTREAMS = (
    Upstream("llama.cpp", "llama.cpp", _here, ("xllamacpp",), llama_cpp),
    Upstream(
        "litellm",
        "LiteLLM, its bridge to llama.cpp's chat completions",
        _litellm,
        ("litellm",),
        litellm,
        _litellm_inside,
    ),
    Upstream("vllm", "vLLM on a CPU", vllm_environment, ("vllm",), vllm, _vllm_inside),
    Upstream("fastapi", "an app of one's own, FastAPI", _own, ("fastapi",), None, _own_app("fastapi_app")),
    Upstream(
        "litestar", "an app of one's own, Litestar", _own, ("litestar",), None, _own_app("litestar_app")
    ),
    Upstream("quart", "an app of one's own, Quart", _own, ("quart",), None, _own_app("quart_app")),
    Upstream(
        "ogx",
        "OGX, in front of llama.cpp",
        _ogx,
        ("ogx",),
        _ogx_alone,
        _ogx_inside,
        "local/smollm2",
        extra=True,
    ),
    Upstream("smg", "smg, in front of llama.cpp", _smg, ("smg",), _smg_alone, extra=True),
)
