"""Secrets, prompts and pictures stay out of logs, errors and terminals; ids cannot be guessed."""

from __future__ import annotations

import ast
import base64
import json
import logging
import secrets
from pathlib import Path
from typing import Any

import imagecall.events
import imagecall.middleware
import pytest
from asgi import ask, draw, lifespan, post
from commands import run, sse
from image_servers import OpenAI
from imagecall.middleware import ImageError, ImageGenerationMiddleware, SettingsError
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from imagecall.middleware.settings import load_settings
from kite import painted, stream, usage
from model_server import JSON, KITE_TURNS, Answer, ModelServer, calling, saying
from painters import Painter, png, raising
from rules import read_events
from serving import serve
from transcript import encode, event, message, picture

# -- ids -------------------------------------------------------------------------------------------


async def test_ids_of_our_own_are_24_random_bytes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    token_hex = secrets.token_hex

    def counted(size: int) -> str:
        drawn.append(size)
        return token_hex(size)

    monkeypatch.setattr(secrets, "token_hex", counted)
    ids: set[str] = set()
    for _ in range(3):
        app = ImageGenerationMiddleware(ModelServer(*KITE_TURNS), Painter())
        client = await ask(app, draw())
        item, _ = read_events(client.body)[-1]["response"]["output"]
        prefix, _, rest = item["id"].partition("_")
        assert (prefix, len(bytes.fromhex(rest))) == ("ig", 24)
        ids.add(item["id"])
    assert len(ids) == 3
    assert {size for size in drawn if size != 8} == {24}  # 8: names of files that nobody asks for


SEEDED = {"scene.py", "ground.py", "land.py", "figures.py"}
"""Their chance decides where a flower grows."""


def test_no_other_source_of_chance_is_there() -> None:
    for package in (imagecall.events, imagecall.middleware):
        for file in Path(str(package.__file__)).parent.rglob("*.py"):
            imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import)]
            froms = [
                node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)
            ]
            named = {alias.name for node in imports for alias in node.names}
            named |= {node.module or "" for node in froms if not node.level}
            assert not named & {"random", "uuid", "numpy.random"} or file.name in SEEDED, file


# -- logs ------------------------------------------------------------------------------------------

PROMPT = "canary-prompt a kite over the harbour"
SECRET = "canary-client-secret"
PICTURE = base64.b64encode(png(PROMPT)).decode()
SENT = base64.b64encode(png("sent")).decode()


def _failing() -> Painter:
    return raising(ValueError(f"bad prompt {PROMPT}, key {SECRET}"))


CASES: dict[str, tuple[Any, Any]] = {
    "a picture": (KITE_TURNS, Painter),
    "a refusal that repeats the prompt": (KITE_TURNS, lambda: raising(ImageError(f"No: {PROMPT}"))),
    "a bug that repeats the prompt": (KITE_TURNS, _failing),
    "no picture": (KITE_TURNS, lambda: Painter(makes=lambda prompt: prompt.encode())),
    "arguments that are none": ((calling(arguments=f'{{"prompt": "{PROMPT}"'), saying("Oh.")), Painter),
    "an error that repeats the prompt": (
        (Answer([encode([event("failed", response={"error": {"message": PROMPT + SECRET}})])]),),
        Painter,
    ),
    "a refused follow-up that repeats it": (
        (calling(PROMPT), Answer([PROMPT.encode()], 418, [*JSON])),
        Painter,
    ),
    "no answer": ((Answer([f"<html>{PROMPT}{SECRET}".encode()], headers=[*JSON]),), Painter),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", CASES)
async def test_no_prompt_key_or_picture_is_logged_above_debug(
    case: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    turns, make = CASES[case]
    turns = (calling(PROMPT), *turns[1:]) if turns is KITE_TURNS else turns
    app = ImageGenerationMiddleware(ModelServer(*turns), make())
    look = {"type": "input_image", "image_url": f"data:image/png;base64,{SENT}"}
    wish = {"role": "user", "content": [{"type": "input_text", "text": PROMPT}, look]}
    headers = [(b"authorization", f"Bearer {SECRET}".encode())]
    await ask(app, draw(stream=stream, input=[wish]), post(headers=headers))
    shown = [record for record in caplog.records if record.levelno > logging.DEBUG]
    told = "".join(f"{record.getMessage()} {vars(record)}" for record in shown)
    assert not [word for word in ("canary", PICTURE[:40], PICTURE[-40:], SENT[-40:]) if word in told]


async def test_no_key_of_an_image_server_is_in_any_log_or_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = OpenAI()
    with server.served() as url:
        app = ImageGenerationMiddleware(
            ModelServer(*KITE_TURNS),
            OpenAIImagesBackend(url, api_key="canary-wrong-key", model="gpt-image-2"),
        )
        async with lifespan(app):
            client = await ask(app, draw(), owners=1)
    assert b"image_backend_unauthorized" in client.body or b"invalid_api_key" in client.body
    assert server.asked[0].headers["authorization"] == "Bearer canary-wrong-key"
    own = [record for record in caplog.records if not record.name.startswith("uvicorn")]  # not the stub's
    assert "canary" not in "".join(f"{record.getMessage()} {vars(record)}" for record in own)
    assert b"canary" not in client.body


# -- settings --------------------------------------------------------------------------------------

SETTINGS: dict[str, Any] = {
    "backend": "openai",
    "backend_url": "http://127.0.0.1:1/v1?key=canary-url",
    "backend_api_key": "canary-key",
    "backend_headers": {"x-key": "canary-header"},
    "backend_body": {"key": "canary-body"},
    "backend_env": {"KEY": "canary-env"},
    "store": "redis://user:canary-store@127.0.0.1:1/0",
}


def test_settings_show_no_secret() -> None:
    assert "canary" not in f"{load_settings(SETTINGS)!r} {load_settings(SETTINGS)}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backend_url", "ftp://canary@host"),
        ("backend_url", "http://user:canary@host/v1"),
        ("backend_api_key", "canary\r\nx: y"),
        ("backend_headers", {"x": "canary\r\nx: y"}),
        ("backend_headers", "{canary"),
        ("backend_env", "canary"),
        ("store", "redis://user:canary@host:canary"),
        ("store", "redis://:canary/word@host"),
        ("store", "canary://host"),
        ("backend", "canary"),
    ],
)
def test_an_error_about_a_setting_repeats_no_secret(name: str, value: object) -> None:
    given = {**SETTINGS, "backend_env": {}, name: value}
    with pytest.raises(SettingsError) as caught:
        ImageGenerationMiddleware(ModelServer(), **given)
    assert name in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("command", ["serve", "record", "ask", "demo"])
def test_help_shows_no_secret_of_the_environment(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in SETTINGS.items():
        text = json.dumps(value) if isinstance(value, dict) else value
        monkeypatch.setenv(f"IMAGECALL_{name.upper()}", text)
    assert run(monkeypatch, command, "--help") == 0
    told = capsys.readouterr()
    assert "Usage" in told.out
    assert "canary" not in told.out + told.err


# -- terminals -------------------------------------------------------------------------------------

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x1b]52;c;Y2FuYXJ5\x07\r\u202e"
CONTROLS = {chr(code) for code in [*range(32), *range(127, 160)]} - {"\n", "\t"}


@pytest.mark.parametrize(
    "app",
    [
        sse(encode(stream(message(0, "m", EVIL), picture(1, painted(prompt=EVIL)), spent=usage(1, 1)))),
        sse(encode([event("failed", response={"id": EVIL, "error": {"code": EVIL, "message": EVIL}})])),
        sse(
            encode(
                picture(
                    0,
                    {**painted(), "result": "", "status": "failed", "error": {"message": EVIL, "code": EVIL}},
                )
            )
        ),
        sse(EVIL.encode()),
        sse(b'data: {"error": {"message": ' + json.dumps(EVIL).encode() + b"}}\n\n"),
    ],
    ids=["a picture", "a failure", "a failed picture", "no stream", "an error"],
)
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["shown", "as JSON"])
def test_no_text_of_a_model_or_server_is_obeyed_by_a_terminal(
    app: Any,
    more: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with serve(app) as url:
        run(monkeypatch, "ask", "a kite", "--url", url, "--no-inline", *more)
    told = capsys.readouterr()
    assert told.out + told.err
    assert not CONTROLS & {*told.out, *told.err}
