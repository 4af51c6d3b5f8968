"""The recordings in samples/: real servers' turns, translated again today, and judged by others' rules."""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from accumulator import accumulate
from driving import bytewise, drive
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from imagecall.middleware.recording import read_recording, replay_recording
from imagecall.middleware.replay import Recording, byte_by_byte, frame_by_frame, split_at
from rules import check_response, check_stream

SAMPLES = Path(__file__).parent.parent / "samples"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("*/meta.toml"))
SITUATIONS = ("text-only", "one-picture", "parallel-pictures", "mixed-calls", "text-before", "not-streamed")

every_sample = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def own_functions(recording: Recording) -> tuple[str, ...]:
    return tuple(tool["name"] for tool in recording.request["tools"] if tool["type"] == "function")


def is_stream(recording: Recording) -> bool:
    return recording.request.get("stream") is True


def test_there_are_recordings_of_three_servers_and_of_every_situation() -> None:
    servers = {tomllib.loads((folder / "meta.toml").read_text("utf-8"))["server"] for folder in FOLDERS}
    assert len(servers) >= 3
    for situation in SITUATIONS:
        assert any(folder.name.endswith(situation) for folder in FOLDERS), situation


@every_sample
def test_a_recording_tells_where_it_comes_from(folder: Path) -> None:
    meta = read_recording(folder).meta
    assert {"server", "packages", "model", "recorded", "command"} <= set(meta)


@every_sample
@pytest.mark.parametrize("chunks", [frame_by_frame, byte_by_byte])
def test_a_recording_translates_to_the_very_same_bytes(folder: Path, chunks: Any) -> None:
    recording = read_recording(folder)
    assert replay_recording(recording, chunks=chunks) == recording.client


@every_sample
@settings(max_examples=5)
@given(data=st.data())
def test_a_stream_is_translated_alike_however_its_bytes_are_cut(folder: Path, data: st.DataObject) -> None:
    recording = read_recording(folder)
    if not is_stream(recording):
        return
    turns = [turn.body for turn in recording.turns]
    points = st.lists(st.integers(0, max(map(len, turns))), max_size=12)
    cut = split_at(*data.draw(points))
    whole = drive(recording.request, turns).body
    assert drive(recording.request, turns, split=cut).body == whole
    assert drive(recording.request, turns, split=bytewise).body == whole


@every_sample
def test_what_the_client_got_keeps_every_rule(folder: Path) -> None:
    recording = read_recording(folder)
    told: dict[str, Any] = {"tools": recording.request["tools"], "client_functions": own_functions(recording)}
    if is_stream(recording):
        assert check_stream(recording.client, **told) == []
    else:
        assert check_response(json.loads(recording.client), **told) == []


@every_sample
def test_what_the_client_got_is_a_response_for_the_official_sdk(folder: Path) -> None:
    recording = read_recording(folder)
    if not is_stream(recording):
        return
    response = accumulate(recording.client)
    pictures = [item for item in response.output if item.type == "image_generation_call"]
    for picture in pictures:
        assert base64.b64decode(picture.result or "").startswith(b"\x89PNG")
    assert bool(pictures) == ("text-only" not in folder.name)


def test_the_quickstart_makes_a_picture_and_leaves_the_rest_of_the_app_alone() -> None:
    source = SAMPLES / "quickstart.py"
    assert len(source.read_text("utf-8").splitlines()) < 30
    scope: dict[str, Any] = {"__name__": "quickstart"}
    exec(compile(source.read_text("utf-8"), source, "exec"), scope)
    request = {
        "model": "m",
        "input": "Draw a cat",
        "tools": [{"type": "image_generation", "size": "128x128"}],
    }
    with TestClient(scope["app"]) as client:
        response = client.post("/v1/responses", json=request).json()
        assert client.get("/hello").json() == {"message": "Hello!"}
    assert [item["type"] for item in response["output"]] == [
        "reasoning",
        "image_generation_call",
        "message",
    ]
