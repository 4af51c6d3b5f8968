"""`imagecall ask` when there is no picture, or trouble beside it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from commands import answers, live, run, sse
from imagecall.middleware import ImageError, ImageGenerationMiddleware
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.terminal import terminal
from kite import painted, stream, usage
from painters import raising
from serving import serve
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from transcript import encode, event, picture

KITE = painted("ig_1", "a kite")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder in which the command is run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


REFUSING = ImageGenerationMiddleware(scripted_app(), raising(ImageError("The paint is dry.", code="dry")))
GONE = PlainTextResponse("gone\n<p>", 410)
UNKNOWN = JSONResponse({"error": {"message": "No such model.", "code": "model_not_found"}}, 404)
FAILED = event("failed", response={"id": "r", "error": {"code": "server_error", "message": "no"}})


@pytest.mark.parametrize(
    ("app", "message", "code"),
    [
        (REFUSING, "the picture failed: The paint is dry.", "dry"),
        (answers(GONE), "the endpoint answered with status 410: gone <p>", None),
        (answers(UNKNOWN), "the endpoint answered with status 404: No such model.", "model_not_found"),
        (
            answers(JSONResponse({"error": {"message": "No.", "code": 500}}, 500)),
            "the endpoint answered with status 500: No.",
            None,
        ),
        (answers(Response(status_code=301)), "the endpoint answered with status 301: no reason given", None),
        (answers(Response(b" \n", 502)), "the endpoint answered with status 502: no reason given", None),
        (
            answers(JSONResponse({"error": {"message": None}}, 500)),
            "the endpoint answered with status 500: no reason given",
            None,
        ),
        (sse(encode([FAILED])), "no", "server_error"),
        (sse(b""), "the answer ended before the response did", None),
        (sse(encode(stream(spent=usage(1, 1)))), "the model made no picture", None),
        (sse(encode(picture(0, {**KITE, "result": "%"}))), "The", "invalid_base64_image"),
    ],
)
def test_why_there_is_no_picture_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    app: ASGIApp,
    message: str,
    code: str | None,
) -> None:
    with serve(app) as url:
        assert run(monkeypatch, "ask", "a red cat", "--url", url) == 1
        told = capsys.readouterr()
        assert run(monkeypatch, "ask", "a red cat", "--url", url, "--json") == 1
    assert told.out == ""
    assert told.err.startswith(f"imagecall: {message}")
    assert told.err.count("\n") == 1
    scripts = capsys.readouterr()
    assert scripts.err == told.err
    report = json.loads(scripts.out)
    assert report["file"] is None
    assert " ".join(report["error"]["message"].split()) == told.err.removeprefix("imagecall: ").strip()
    assert report["error"]["code"] == code
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    "key", ["sk-mine\n", "sk-\tmine", "sk-m\N{LATIN SMALL LETTER E WITH ACUTE}", "sk-\udcff"]
)
def test_a_key_that_no_header_can_carry_is_told_by_its_variables_name_before_anybody_is_asked(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    asked: list[Scope] = []

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
        else:
            asked.append(scope)

    monkeypatch.setenv("IMAGECALL_API_KEY", key)
    with serve(endpoint) as url:
        assert run(monkeypatch, "ask", "a cat", "--url", url) == 1
    problem = "IMAGECALL_API_KEY holds a line break or another character that a key cannot have; "
    assert capsys.readouterr() == ("", f"imagecall: {problem}set it to the key alone\n")
    assert asked == []


def cut(body: bytes) -> ASGIApp:
    """An endpoint that breaks off after this."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
            return
        headers = [(b"content-type", b"text/event-stream"), (b"content-length", b"%d" % (len(body) + 1))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})

    return answer


@pytest.mark.parametrize("whole", [True, False])
def test_a_picture_that_has_come_is_kept_when_the_endpoint_breaks_off(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str], whole: bool
) -> None:
    body = encode(picture(0, KITE)[: None if whole else -1])
    with serve(cut(body)) as url:
        assert run(monkeypatch, "ask", "a kite", "--url", url) == (0 if whole else 1)
        told = capsys.readouterr()
        assert told.out == ("picture.png\n" if whole else "")
        assert told.err == f"imagecall: {url} broke off in the middle of its answer\n"
        run(monkeypatch, "ask", "a kite", "--url", url, "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["file"] == ("picture-1.png" if whole else None)
    assert report["error"]["message"] == f"{url} broke off in the middle of its answer"


def test_the_folder_is_looked_for_before_a_picture_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "cat.png"
    assert run(monkeypatch, "ask", "a cat", "-o", str(file), "--json") == 1
    told = capsys.readouterr()
    assert told.err == f"imagecall: {file} cannot be written: its folder does not exist\n"
    assert json.loads(told.out)["error"]["message"] == f"{file} cannot be written: its folder does not exist"


def test_an_error_without_words_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(model: str) -> ASGIApp:
        raise ZeroDivisionError

    monkeypatch.setattr(terminal, "demo_app", broken)
    assert run(monkeypatch, "ask", "a cat", "--json") == 1
    told = capsys.readouterr()
    assert told.err == "imagecall: ZeroDivisionError\n"
    assert json.loads(told.out)["error"] == {"message": "ZeroDivisionError", "code": None}


def test_trouble_after_the_picture_is_told_beside_it(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = {"reason": "max_output_tokens"}
    short = event("incomplete", response={"id": "r", "status": "incomplete", "incomplete_details": reason})
    monkeypatch.setattr(terminal, "demo_app", lambda model: sse(encode([*picture(0, KITE), short])))
    assert run(monkeypatch, "ask", "a kite") == 0
    problem = "the response is incomplete: max_output_tokens"
    assert capsys.readouterr() == ("picture.png\n", f"imagecall: {problem}\n")
    assert run(monkeypatch, "ask", "a kite", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["file"] == "picture-1.png"
    assert told["error"] == {"message": problem, "code": "max_output_tokens"}


@pytest.mark.parametrize("scripts", [True, False])
def test_interrupted_it_stops_with_one_line(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str], scripts: bool
) -> None:
    seen: list[str] = []

    async def interrupting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
            return
        assert (await receive())["more_body"] is False
        os.kill(os.getpid(), signal.SIGINT)
        seen.append((await receive())["type"])

    with serve(interrupting) as url:
        words = ["ask", "a cat", "--url", url, *(["--json"] if scripts else [])]
        assert run(monkeypatch, *words) == 130
    told = capsys.readouterr()
    assert told.err == "imagecall: stopped\n"
    if scripts:
        assert json.loads(told.out)["error"] == {"message": "stopped", "code": "stopped"}
    else:
        assert told.out == ""
    assert seen == ["http.disconnect"]


def test_interrupted_before_anybody_was_asked_it_stops_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def starting(model: str) -> ASGIApp:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "demo_app", starting)
    assert run(monkeypatch, "ask", "a cat") == 130
    assert capsys.readouterr() == ("", "imagecall: stopped\n")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("nothing.png", "the picture nothing.png cannot be read: No such file or directory"),
        ("notes.txt", "notes.txt cannot be changed: The data is not a PNG, JPEG, WebP or GIF picture."),
    ],
)
def test_what_is_no_picture_cannot_be_changed(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str], file: str, message: str
) -> None:
    Path("notes.txt").write_text("a cat")
    assert run(monkeypatch, "ask", "make it red", "--edit", file) == 1
    assert capsys.readouterr() == ("", f"imagecall: {message}\n")
