"""Settings: keyword arguments, variables, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from imagecall.events.calls import Limits
from imagecall.events.lowering import LoweringOptions
from imagecall.middleware import ImageGenerationMiddleware, SettingsError
from imagecall.middleware.backends.images_api.request import PAINTING
from imagecall.middleware.settings import Settings, load_settings
from model_server import ModelServer
from painters import Painter
from pydantic import SecretStr


def test_the_defaults_are_the_documented_ones() -> None:
    assert load_settings({}).model_dump() == {
        "backend": None,
        "backend_url": None,
        "backend_command": None,
        "backend_api_key": None,
        "backend_headers": {},
        "backend_model": None,
        "backend_models": {},
        "backend_body": {},
        "backend_drop": (),
        "backend_pass_on": PAINTING,
        "backend_edits": "multipart",
        "backend_response_format": "auto",
        "backend_stream": True,
        "backend_origins": (),
        "backend_tool": None,
        "backend_edit_tool": None,
        "backend_env": {},
        "backend_files_dir": None,
        "backend_arguments": None,
        "backend_timeout": 300.0,
        "backend_retries": 2,
        "backend_concurrency": 4,
        "backend_queue": 120.0,
        "keep_metadata": False,
        "store": "memory",
        "store_ttl": 86_400.0,
        "store_entries": 10_000,
        "store_bytes": 256 << 20,
        "workspace_dir": None,
        "artifact_dir": None,
        "artifact_hint": False,
        "fetch_hosts": (),
        "models": ("*",),
        "paths": ("/v1/responses", "/responses", "/openai/responses", "/openai/v1/responses"),
        "forced_choice": "required",
        "feedback": "text",
        "strict_arguments": False,
        "cors_origins": (),
        "keepalive": 15.0,
        "max_turns": 8,
        "max_images": 10,
        "max_prompt": 32_000,
        "max_arguments": 256 << 10,
        "max_body": 128 << 20,
        "max_event": 256 << 20,
        "max_image": 32 << 20,
        "max_pixels": 7680 * 4320,
        "call_timeout": 300.0,
        "response_timeout": 1800.0,
        "upstream_idle": 600.0,
        "concurrency": 8,
        "concurrency_per_response": 4,
        "disconnect_grace": 5.0,
        "shutdown_grace": 5.0,
    }


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("backend", "scene", "scene"),
        ("models", "gpt-oss*, qwen3 ,,", ("gpt-oss*", "qwen3")),
        ("paths", "/api/responses", ("/api/responses",)),
        ("cors_origins", "https://a.example,https://b.example", ("https://a.example", "https://b.example")),
        ("forced_choice", "auto", "auto"),
        ("feedback", "image", "image"),
        ("strict_arguments", "true", True),
        ("keepalive", "0", 0.0),
        ("max_body", "1000", 1000),
        ("disconnect_grace", "0.5", 0.5),
        ("backend", ' {"flux*": "scene"}', {"flux*": "scene"}),
        ("backend_headers", '{"api-key": "k"}', {"api-key": "k"}),
        ("backend_models", '{"gpt-image-*": "flux"}', {"gpt-image-*": "flux"}),
        ("backend_body", '{"seed": 7, "lora": null}', {"seed": 7, "lora": None}),
        ("backend_arguments", '{"params": {"prompt": "{prompt}"}}', {"params": {"prompt": "{prompt}"}}),
        ("backend_env", '{"FAL_KEY": "k"}', {"FAL_KEY": "k"}),
        ("backend_drop", "quality, background", ("quality", "background")),
        ("backend_pass_on", "seed,lora_*", ("seed", "lora_*")),
        ("backend_origins", "https://cdn.example", ("https://cdn.example",)),
        ("backend_stream", "false", False),
        ("backend_api_key", "k", SecretStr("k")),
        ("backend_queue", "0", 0.0),
        ("keep_metadata", "1", True),
        ("fetch_hosts", "*.example.com,a.example", ("*.example.com", "a.example")),
        ("workspace_dir", "/srv/pictures", Path("/srv/pictures")),
    ],
)
def test_a_variable_sets_what_its_keyword_would(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: Any
) -> None:
    monkeypatch.setenv(f"IMAGECALL_{name.upper()}", text)
    assert getattr(load_settings({}), name) == value
    assert getattr(load_settings({name: text}), name) == value


def test_a_keyword_beats_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_MODELS", "from-outside")
    monkeypatch.setenv("IMAGECALL_MAX_TURNS", "3")
    settings = load_settings({"models": ["from", "inside"]})
    assert (settings.models, settings.max_turns) == (("from", "inside"), 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backend": "dall-e"}, "backend (IMAGECALL_BACKEND): Input should be 'scene', 'openai' or 'mcp'."),
        ({"backend": "{oops"}, "backend (IMAGECALL_BACKEND): Input should be a JSON object."),
        (
            {"backend_headers": "api-key: k"},
            "backend_headers (IMAGECALL_BACKEND_HEADERS): Input should be a JSON object.",
        ),
        (
            {"backend_body": "[1]"},
            "backend_body (IMAGECALL_BACKEND_BODY): Input should be a valid dictionary.",
        ),
        (
            {"backend_models": '{"*": 1}'},
            "backend_models (IMAGECALL_BACKEND_MODELS): Input should be a valid string.",
        ),
        (
            {"forced_choice": "always"},
            "forced_choice (IMAGECALL_FORCED_CHOICE): Input should be 'required', 'function' or 'auto'.",
        ),
        (
            {"keepalive": -1},
            "keepalive (IMAGECALL_KEEPALIVE): Input should be greater than or equal to 0.",
        ),
        ({"max_turns": 0}, "max_turns (IMAGECALL_MAX_TURNS): Input should be greater than 0."),
        (
            {"call_timeout": "soon"},
            (
                "call_timeout (IMAGECALL_CALL_TIMEOUT): "
                "Input should be a valid number, unable to parse string as a number."
            ),
        ),
        ({"models": [1]}, "models (IMAGECALL_MODELS): Input should be a valid string."),
        ({"paths": 1}, "paths (IMAGECALL_PATHS): Input should be a valid tuple."),
        ({"keep_alive": 1}, "There is no setting 'keep_alive'."),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_is_named_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(given)
    assert str(caught.value) == message


def test_a_wrong_variable_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_CONCURRENCY", "many")
    with pytest.raises(SettingsError, match=r"^concurrency \(IMAGECALL_CONCURRENCY\): .*\.$"):
        ImageGenerationMiddleware(ModelServer())


def test_an_error_never_repeats_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_MAX_BODY", "s3cret")
    with pytest.raises(SettingsError) as caught:
        load_settings({})
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_may_be_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = '{"x": {"api_key": "s3cret"}}', '{"x": "s3cret"}'
    for name in ("backend", "backend_body"):
        monkeypatch.setenv(f"IMAGECALL_{name.upper()}", secret[0])
    for name in ("backend_headers", "backend_env"):
        monkeypatch.setenv(f"IMAGECALL_{name.upper()}", secret[1])
    monkeypatch.setenv("IMAGECALL_BACKEND_API_KEY", "s3cret")
    assert "s3cret" not in repr(load_settings({}))


def test_a_wrong_setting_is_an_error_of_the_middlewares_construction() -> None:
    with pytest.raises(SettingsError, match="backend"):
        ImageGenerationMiddleware(ModelServer(), "dall-e")
    with pytest.raises(SettingsError, match="There is no setting 'bakend'"):
        ImageGenerationMiddleware(ModelServer(), Painter(), bakend="scene")


async def test_a_backend_object_beats_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_BACKEND", "scene")
    painter = Painter()
    app = ImageGenerationMiddleware(ModelServer(), painter)
    assert await app._routing.owner(None).backend() is painter


def test_the_translator_and_the_lowering_get_their_share() -> None:
    settings = load_settings(
        {
            "max_event": 1,
            "max_arguments": 2,
            "max_prompt": 3,
            "max_images": 4,
            "max_turns": 5,
            "forced_choice": "auto",
            "models": "a,b",
        }
    )
    assert settings.limits() == Limits(max_event=1, max_arguments=2, max_prompt=3, max_images=4, max_turns=5)
    assert settings.lowering(backend=False) == LoweringOptions("auto", ("a", "b"), backend=False)
