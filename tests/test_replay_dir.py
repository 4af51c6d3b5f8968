"""The replay of a folder of recordings: what it prints, and when it is not content."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
import replay_dir
from case_files import read_turns
from driving import drive
from imagecall.events.actions import Finish
from replay_dir import client_request, judge, main

CALL = read_turns("one_response_from_two_turns")[0]
TEXT = read_turns("no_picture_wanted")[0]
CUT = read_turns("cut_inside_the_arguments")[0]
REFUSED = b'{"error":{"message":"boom","type":"server_error","param":null,"code":null}}'
FUNCTION = {"type": "function", "name": "image_generation", "parameters": {}}
WEATHER = {"type": "function", "name": "get_weather", "parameters": {}}


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    (tmp_path / "server").mkdir()
    for name, body in {"call": CALL, "cut": CUT, "refused": REFUSED, "text": TEXT}.items():
        (tmp_path / "server" / f"{name}.sse").write_bytes(body)
    (tmp_path / "server" / "call.json").write_bytes(REFUSED)
    return tmp_path


def test_every_recording_is_judged_and_counted(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(recordings)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok    server/call.sse: completed after 2 turns, 1 runs: image_generation_call message",
        "ok    server/cut.sse: failed after 1 turns, 0 runs: message image_generation_call",
        "ok    server/refused.sse: refused",
        "ok    server/text.sse: completed after 1 turns, 0 runs: message",
        "4 of 4 valid",
    ]


def test_it_runs_as_a_command(recordings: Path) -> None:
    script = Path(replay_dir.__file__)
    done = subprocess.run([sys.executable, script, recordings], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (0, "4 of 4 valid", "")


def test_a_folder_without_recordings_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(tmp_path)) == 1
    assert capsys.readouterr().out == f"There is no *.sse file below {tmp_path}.\n"


def test_a_broken_rule_fails_the_folder(
    recordings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        replay_dir, "check_stream", lambda body, **known: ["It is wrong."] if b"ig_1" in body else []
    )
    assert main(str(recordings)) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == [
        "WRONG server/call.sse: completed after 2 turns, 1 runs: image_generation_call message",
        "      It is wrong.",
    ]
    assert told[-1] == "2 of 4 valid"


def test_a_crash_is_told_and_the_rest_still_judged(
    recordings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(body: bytes, **known: object) -> list[str]:
        raise KeyError("output_index")

    monkeypatch.setattr(replay_dir, "check_stream", crash)
    assert main(str(recordings)) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "WRONG server/call.sse: crashes"
    assert told[-1] == "1 of 4 valid"


def test_the_sdk_is_asked_as_well(recordings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(body: bytes) -> None:
        raise RuntimeError("Duplicate response output index 0.")

    recording = recordings / "server" / "call.sse"
    monkeypatch.setattr(replay_dir, "accumulate", refuse)
    assert judge(recording)[1] == ["openai-python raises RuntimeError('Duplicate response output index 0.')."]
    monkeypatch.setattr(
        replay_dir, "accumulate", lambda body: openai.types.responses.ParsedResponse.construct(output=[])
    )
    assert judge(recording)[1] == ["openai-python gathers another number of items."]


def test_a_stream_that_hangs_is_refused_or_ends_otherwise_is_not_valid(
    recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recordings / "server" / "cut.sse"
    real = drive(client_request(recording), [CUT])

    def say(**fields: Any) -> list[str]:
        monkeypatch.setattr(replay_dir, "drive", lambda *asked, **how: dataclasses.replace(real, **fields))
        return judge(recording)[1]

    success = drive(client_request(recording), [TEXT])
    assert say() == []
    assert say(finish=None) == ["The exchange does not finish."]
    assert say(body=b"", finish=Finish(None, failed=True)) == ["A stream is refused like an error page."]
    assert say(finish=Finish((b"{}",))) == ["Those who did not ask for a stream get another response."]
    assert say(body=success.body) == ["The recording has no end, but the stream ends in response.completed."]


def test_a_stream_that_depends_on_the_chunks_is_not_valid(
    recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recordings / "server" / "text.sse"
    monkeypatch.setattr(replay_dir, "_pieces", lambda body: [CUT])
    assert judge(recording)[1] == ["In small pieces the same recording gives another stream."]


def test_the_recorded_function_is_the_hosted_tool_again(tmp_path: Path) -> None:
    recording = tmp_path / "b_call.sse"
    recorded = {
        "tools": [WEATHER, FUNCTION],
        "tool_choice": {"type": "function", "name": "image_generation"},
        "input": [{"role": "user", "content": "old"}],
        "previous_response_id": "resp_0",
    }
    recording.with_name("b_call.request.json").write_text(json.dumps(recorded))
    assert client_request(recording) == {
        "model": "recorded",
        "input": "Draw a red cat.",
        "stream": True,
        "tools": [WEATHER, {"type": "image_generation"}],
        "tool_choice": {"type": "image_generation"},
    }


def test_a_recording_of_no_tools_gets_the_hosted_tool_added(tmp_path: Path) -> None:
    wrapped = {"request": {"tools": [WEATHER], "tool_choice": "auto"}}
    (tmp_path / "a.sse.request.json").write_text(json.dumps(wrapped))
    (tmp_path / "empty.request.json").write_text("")
    hosted = {"type": "image_generation"}
    plain = {"model": "recorded", "input": "Draw a red cat.", "stream": True}
    assert client_request(tmp_path / "a.sse") == {**plain, "tools": [WEATHER, hosted], "tool_choice": "auto"}
    assert client_request(tmp_path / "empty.sse") == {**plain, "tools": [hosted]}
    assert client_request(tmp_path / "b.sse") == {**plain, "tools": [hosted]}


def test_every_recording_of_the_samples_is_valid(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = Path(__file__).with_name("cases")
    for case in cases.iterdir():
        if (case / "turn1.sse").exists() and case.name != "name_taken_by_the_client":
            shutil.copy(case / "turn1.sse", tmp_path / f"{case.name}.sse")
            shutil.copy(case / "request.json", tmp_path / f"{case.name}.request.json")
    assert main(str(tmp_path)) == 0, capsys.readouterr().out
