"""Backends by name: each option reaches its backend, and a missing one is named."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from imagecall.middleware import ImageGenerationMiddleware, SettingsError
from imagecall.middleware.backends import mcp, openai_images
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.named import named_backend
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.settings import load_settings
from model_server import ModelServer


def named(name: str | None, **settings: Any) -> Any:
    return named_backend(load_settings({"backend": name, **settings}))


def noted(monkeypatch: pytest.MonkeyPatch, module: Any, backend: type[object]) -> list[dict[str, Any]]:
    """Note how a backend is built, by the names of its own parameters."""
    built: list[dict[str, Any]] = []
    parameters = inspect.signature(backend)

    def build(*args: Any, **more: Any) -> object:
        built.append(dict(parameters.bind(*args, **more).arguments))
        return object()

    monkeypatch.setattr(module, backend.__name__, build)
    return built


def test_each_name_gives_its_backend() -> None:
    assert named(None) is None
    assert isinstance(named("scene"), SceneBackend)
    assert isinstance(named("openai", backend_url="http://127.0.0.1:8000/v1"), OpenAIImagesBackend)
    assert isinstance(named("mcp", backend_url="http://127.0.0.1:8000/mcp"), MCPBackend)
    assert isinstance(named("mcp", backend_command="image-server --stdio"), MCPBackend)


def test_every_option_reaches_the_images_api(monkeypatch: pytest.MonkeyPatch) -> None:
    built = noted(monkeypatch, openai_images, OpenAIImagesBackend)
    named(
        "openai",
        backend_url="http://127.0.0.1:8000/v1",
        backend_api_key="k",
        backend_model="flux",
        backend_models={"gpt-image-*": "flux-pro"},
        backend_headers={"x-team": "art"},
        backend_body={"seed": 7},
        backend_drop="quality",
        backend_pass_on="lora_*",
        backend_edits="json",
        backend_response_format="none",
        backend_stream=False,
        backend_origins="https://cdn.example",
        backend_timeout=9,
        backend_retries=0,
        max_image=1000,
    )
    assert built == [
        {
            "url": "http://127.0.0.1:8000/v1",
            "api_key": "k",
            "model": "flux",
            "models": {"gpt-image-*": "flux-pro"},
            "headers": {"x-team": "art"},
            "body": {"seed": 7},
            "drop": ("quality",),
            "pass_on": ("lora_*",),
            "edits": "json",
            "response_format": "none",
            "stream": False,
            "origins": ("https://cdn.example",),
            "timeout": 9.0,
            "retries": 0,
            "max_bytes": 1000,
        }
    ]


def test_every_option_reaches_the_mcp_server(monkeypatch: pytest.MonkeyPatch) -> None:
    built = noted(monkeypatch, mcp, MCPBackend)
    server = {"backend_url": "http://127.0.0.1:8000/mcp", "backend_api_key": "k"}
    tools = {
        "backend_tool": "draw",
        "backend_edit_tool": "redraw",
        "backend_arguments": {"prompt": "{prompt}"},
    }
    more = {
        "backend_headers": {"x-team": "art"},
        "backend_model": "flux",
        "backend_origins": "https://cdn.example",
    }
    named("mcp", **server, **tools, **more, backend_files_dir="/srv/made", backend_timeout=9, max_image=1000)
    named("mcp", backend_command="image-server", backend_env={"FAL_KEY": "k"})
    common = {"headers": {}, "env": {}, "api_key": None, "tool": None, "edit_tool": None, "arguments": None}
    common |= {"model": None, "files_dir": None, "origins": (), "timeout": 300.0, "max_bytes": 32 << 20}
    assert built == [
        {
            "url": "http://127.0.0.1:8000/mcp",
            "command": None,
            "headers": {"x-team": "art"},
            "env": {},
            "api_key": "k",
            "tool": "draw",
            "edit_tool": "redraw",
            "arguments": {"prompt": "{prompt}"},
            "model": "flux",
            "files_dir": Path("/srv/made"),
            "origins": ("https://cdn.example",),
            "timeout": 9.0,
            "max_bytes": 1000,
        },
        {**common, "url": None, "command": "image-server", "env": {"FAL_KEY": "k"}},
    ]


_API = "the backend openai needs the Images API's base, such as http://127.0.0.1:8000/v1."
_SERVER = "the backend mcp needs the server's URL, or a command that starts it."
_BOTH = {"backend": "mcp", "backend_url": "http://x/mcp", "backend_command": "serve"}


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        ({"backend": "openai"}, "backend_url", _API),
        ({"backend": "openai", "backend_url": ""}, "backend_url", _API),
        ({"backend": "mcp"}, "backend_url", _SERVER),
        (_BOTH, "backend_command", "the backend mcp takes a URL or a command, not both."),
    ],
)
def test_a_missing_or_contradictory_option_is_named_in_one_line(
    settings: dict[str, Any], name: str, reason: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        ImageGenerationMiddleware(ModelServer(), **settings)
    assert str(caught.value) == f"{name} (IMAGECALL_{name.upper()}): {reason}"


_OPENAI = {"backend": "openai", "backend_url": "http://x/v1"}
_MCP = {"backend": "mcp", "backend_url": "http://x/mcp"}
_STDIO = {"backend": "mcp", "backend_command": "x"}


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"backend": "openai", "backend_url": "ftp://s3cret"}, "url"),
        ({**_OPENAI, "backend_headers": {"X Y": "s3cret"}}, "headers"),
        ({**_OPENAI, "backend_api_key": "s3cret\nX: Y"}, "api_key"),
        ({**_OPENAI, "backend_origins": "cdn.example.com"}, "origins"),
        ({"backend": "mcp", "backend_url": "ftp://s3cret"}, "url"),
        ({**_MCP, "backend_env": {"KEY": "s3cret"}}, "env"),
        ({**_MCP, "backend_headers": {"X Y": "s3cret"}}, "headers"),
        ({**_MCP, "backend_arguments": {"prompt": "s3cret"}}, "arguments"),
        ({**_STDIO, "backend_command": "'s3cret"}, "command"),
        ({**_STDIO, "backend_headers": {"X": "s3cret"}}, "headers"),
        ({**_STDIO, "backend_api_key": "s3cret"}, "api_key"),
    ],
)
def test_what_a_backend_itself_refuses_is_told_in_its_own_line(settings: dict[str, Any], option: str) -> None:
    name = f"backend_{option}"
    start = re.escape(f"{name} (IMAGECALL_{name.upper()}): ")
    with pytest.raises(SettingsError, match=rf"^{start}[A-Z'][^\n]+[^.]\.$") as caught:
        ImageGenerationMiddleware(ModelServer(), **settings)
    assert "s3cret" not in str(caught.value)
    route = {key.removeprefix("backend_"): value for key, value in settings.items()}
    with pytest.raises(SettingsError) as routed:
        ImageGenerationMiddleware(ModelServer(), {"x": route})
    reason = str(caught.value).partition("): ")[2]
    assert str(routed.value) == f"backend (IMAGECALL_BACKEND), for 'x': {option}: {reason}"
