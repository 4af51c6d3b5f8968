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

HERE = Path(__file__).parent


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
        (
            "cors_origins",
            "*,null,file://,http://localhost:3000,http://[::1]:80,app://obsidian.md",
            ("*", "null", "file://", "http://localhost:3000", "http://[::1]:80", "app://obsidian.md"),
        ),
        ("cors_origins", "", ()),
        (
            "fetch_hosts",
            "*:*,[2001:db8::1]:8443,img-?.example",
            ("*:*", "[2001:db8::1]:8443", "img-?.example"),
        ),
        ("workspace_dir", str(HERE), HERE),
        ("artifact_dir", str(HERE), HERE),
        ("artifact_dir", str(HERE / "made" / "later"), HERE / "made" / "later"),
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


ORIGIN = (
    "should be an origin as browsers write it, such as https://app.example or http://localhost:3000, "
    "in small letters and with nothing behind the host or port; or * or null"
)
PATH = "should be a path that begins with /, such as /v1/responses"
HOST = "should be a host without scheme or path, such as images.example.com, *.example.com or a.example:8443"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("cors_origins", "page.example", f"Entry 1 {ORIGIN}"),
        ("cors_origins", "https://a.example, https://page.example/", f"Entry 2 {ORIGIN}"),
        ("cors_origins", "https://page.example/app", f"Entry 1 {ORIGIN}"),
        ("cors_origins", "https://a.example https://b.example", f"Entry 1 {ORIGIN}"),
        ("cors_origins", "https://*.example", f"Entry 1 {ORIGIN}"),
        ("cors_origins", "https://Page.example", f"Entry 1 {ORIGIN}"),
        ("cors_origins", "https://page.example:", f"Entry 1 {ORIGIN}"),
        ("cors_origins", ("*", ""), f"Entry 2 {ORIGIN}"),
        ("paths", "/v1/responses,responses", f"Entry 2 {PATH}"),
        ("paths", "https://page.example/v1/responses", f"Entry 1 {PATH}"),
        ("paths", ("",), f"Entry 1 {PATH}"),
        ("fetch_hosts", "a.example,https://b.example", f"Entry 2 {HOST}"),
        ("fetch_hosts", "a.example/pictures", f"Entry 1 {HOST}"),
        ("fetch_hosts", "me@a.example", f"Entry 1 {HOST}"),
        ("fetch_hosts", ("",), f"Entry 1 {HOST}"),
        (
            "workspace_dir",
            HERE / "nowhere",
            "Input should be a folder that exists; make it, or mend the path",
        ),
        ("workspace_dir", __file__, "Input should be a folder that exists; make it, or mend the path"),
        ("artifact_dir", __file__, "Input should be a folder, not a file; name another path"),
    ],
)
def test_what_could_never_match_or_work_is_refused_in_one_line(name: str, value: Any, reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({name: value})
    assert str(caught.value) == f"{name} (IMAGECALL_{name.upper()}): {reason}."


@pytest.mark.parametrize(
    "name", [name for name, field in Settings.model_fields.items() if field.default is None]
)
def test_an_empty_variable_leaves_an_optional_setting_unset(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"IMAGECALL_{name.upper()}", "")
    assert getattr(load_settings({}), name) is None
    assert getattr(load_settings({name: ""}), name) is None


def test_a_keyword_beats_an_empty_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_BACKEND", "")
    assert load_settings({"backend": "scene"}).backend == "scene"


@pytest.mark.parametrize("routes", ['{"flux*": ""}', '{"flux*": {"backend": ""}}'])
def test_a_route_must_name_a_backend(routes: str) -> None:
    with pytest.raises(SettingsError, match=r"^backend .* should be 'scene', 'openai' or 'mcp'"):
        ImageGenerationMiddleware(ModelServer(), routes)


def test_an_empty_variable_is_an_empty_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGECALL_BACKEND_PASS_ON", "")
    assert load_settings({}).backend_pass_on == ()


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
