"""`imagecall ask`, run as a user runs it, against real servers on sockets; here without a terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands import run, sse
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.demo import demo_app
from imagecall.middleware.embedded.llm import available
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.terminal import terminal
from kite import painted, stream, usage
from painters import Painter, png
from parts import require
from PIL import Image
from serving import serve
from starlette.types import Receive, Scope, Send
from transcript import encode, message, picture

KITE = painted("ig_1", "a kite")


class Endpoint:
    """An endpoint with the tool; keeps what it is asked."""

    def __init__(self, backend: Any = None) -> None:
        self.asked: list[Any] = []
        self.keys: list[bytes | None] = []
        self._app = ImageGenerationMiddleware(scripted_app(), backend or Painter())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def kept() -> Any:
            message = await receive()
            if message.get("body"):
                self.asked.append(json.loads(message["body"]))
            return message

        if scope["type"] == "http":
            self.keys.append(dict(scope["headers"]).get(b"authorization"))
        await self._app(scope, kept, send)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder in which the command is run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the embedded model be the scripted one, which always calls."""
    monkeypatch.setattr(terminal, "demo_app", lambda model: demo_app("scripted"))


def test_the_picture_of_the_embedded_model_is_written_and_its_file_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scripted: None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cat.webp"
    assert run(monkeypatch, "ask", "a red cat", "-o", str(file), "--size", "96x64") == 0
    picture = Image.open(io.BytesIO(file.read_bytes()))
    assert (picture.format, picture.size) == ("WEBP", (96, 64))  # as the file's name ends
    assert capsys.readouterr() == (f"{file}\n", "")


@pytest.mark.llm
def test_the_embedded_model_may_be_a_real_one_that_cannot_see(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require(available() is None, str(available()))
    Path("old.png").write_bytes(png("old"))
    assert run(monkeypatch, "ask", "make it blue", "--edit", "old.png", "--size", "64x64", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["size"], told["error"]) == ("picture.png", "64x64", None)


def test_no_picture_is_written_over_when_no_name_is_given(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("picture.png").write_bytes(b"mine")
    with serve(Endpoint()) as url:
        assert run(monkeypatch, "ask", "a red cat", "--url", f"{url}/v1") == 0
    assert Path("picture.png").read_bytes() == b"mine"
    assert Path("picture-1.png").read_bytes() == png("a red cat")
    assert capsys.readouterr() == ("picture-1.png\n", "")


def test_an_endpoints_key_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    with serve(endpoint := Endpoint()) as url:
        assert run(monkeypatch, "ask", "a red cat", "--url", url) == 0
        monkeypatch.setenv("IMAGECALL_API_KEY", "sk-mine")
        assert run(monkeypatch, "ask", "a red cat", "--url", url) == 0
    assert endpoint.keys == [None, b"Bearer sk-mine"]


def test_every_picture_of_the_answer_is_kept(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "Draw a red cat and a blue dog"
    with serve(Endpoint()) as url:
        assert run(monkeypatch, "ask", words, "--url", url, "-o", "pets.png") == 0
        assert capsys.readouterr().out == "pets.png\npets-1.png\n"
        assert run(monkeypatch, "ask", words, "--url", url, "-o", "pets.png", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert Path("pets.png").read_bytes() == png("a red cat")
    assert (told["file"], told["revised_prompt"]) == ("pets.png", "a red cat")
    assert Path("pets-2.png").read_bytes() == png("a blue dog")
    facts = {"size": told["size"], "format": "png", "revised_prompt": "a blue dog"}
    assert told["others"] == [{"file": "pets-2.png", **facts}]


def test_options_become_those_of_the_tool_and_none_is_made_up(
    monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    endpoint = Endpoint()
    options = {"size": "64x64", "quality": "low", "background": "opaque", "format": "png", "partials": "2"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    with serve(endpoint) as url:
        assert run(monkeypatch, "ask", "a cat", "--url", url, "--model", "m", *words, "-o", "cat.jpg") == 0
        assert run(monkeypatch, "ask", "a cat", "--url", url) == 0
    tool = {"type": "image_generation", "size": "64x64", "quality": "low", "background": "opaque"}
    asked = {"input": "a cat", "stream": True, "tool_choice": {"type": "image_generation"}}
    assert endpoint.asked == [
        {"model": "m", **asked, "tools": [{**tool, "output_format": "png", "partial_images": 2}]},
        {"model": "local", **asked, "tools": [{"type": "image_generation"}]},
    ]


def test_a_picture_to_change_travels_in_the_message(
    monkeypatch: pytest.MonkeyPatch, here: Path, scripted: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (160, 120), "grey").save("old.webp", lossless=True)
    words = ("ask", "make it red", "--edit", "old.webp", "-o", "new.png")
    assert run(monkeypatch, *words) == 0
    assert capsys.readouterr() == ("new.png\n", "")
    with Image.open("new.png") as changed:
        assert changed.size == (160, 120)
    request = terminal.picture_request("x", model="m", tool={"size": None}, edit=Path("old.webp"))
    assert request["tools"] == [{"type": "image_generation", "action": "edit"}]
    words_part, picture_part = request["input"][0]["content"]
    assert words_part == {"type": "input_text", "text": "x"}
    assert picture_part["image_url"].startswith("data:image/webp;base64,UklGR")


def test_a_script_gets_one_json_object(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = encode(stream(picture(0, KITE), message(1, "m", "Here ", "it is."), spent=usage(10, 5)))
    monkeypatch.setattr(terminal, "demo_app", lambda model: sse(body))
    assert run(monkeypatch, "ask", "a kite", "--json") == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert json.loads(told.out) == {
        "file": "picture.png",
        "size": "48x32",
        "format": "png",
        "revised_prompt": "a kite",
        "response_id": "resp_up1",
        "text": "Here it is.",
        "usage": usage(10, 5),
        "error": None,
        "others": [],
    }
