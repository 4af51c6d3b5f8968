"""A recording is a folder of files that can be read, diffed and trusted."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import pytest
from imagecall.events.sse import KEEPALIVE
from imagecall.middleware.recording import Recording, RecordingError, read_recording, write_recording
from imagecall.middleware.replay import RecordedTurn

REQUEST = {"model": "m", "input": "Zeichne einen Kätzchen-Drachen \ud83d", "stream": True}
TURNS = (
    RecordedTurn(b"data: {}\n\n", 200, ((b"content-type", b"text/event-stream; charset=utf-8"),)),
    RecordedTurn(b"\x1f\x8b", 429, ((b"content-type", b"application/json"), (b"retry-after", b"1"))),
)
CLIENT = b'event: a\ndata: {"text":": keepalive"}\n\n: no\n\n'
META = {"server": 'llama.cpp "b1"\\\n', "model é\x7f": "\x7f\x01é😀", "turns": 2, "seconds": 1.5, "ok": True}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    write_recording(folder, REQUEST, TURNS, CLIENT, META)
    assert read_recording(folder) == Recording(REQUEST, TURNS, CLIENT, META)
    assert names(folder) == ["client.sse", "meta.toml", "request.json", "upstream.1.sse", "upstream.2.json"]


def test_the_files_are_plain_and_always_the_same(tmp_path: Path) -> None:
    headers = ((b"set-cookie", b"secret"), (b"content-type", b"text/event-stream"), (b"retry-after", b"2"))
    turn = RecordedTurn(b"data: 1\n\n", 200, headers)
    write_recording(tmp_path, {"input": ["é"]}, [turn], b' {"id":1}', {"date": "2026-11-30"})
    assert (tmp_path / "request.json").read_text("utf-8") == '{\n  "input": [\n    "é"\n  ]\n}\n'
    assert (tmp_path / "upstream.1.sse").read_bytes() == b"data: 1\n\n"
    assert (tmp_path / "client.json").read_bytes() == b' {"id":1}'
    digest = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in names(tmp_path)}
    assert (tmp_path / "meta.toml").read_text("utf-8") == (
        'date = "2026-11-30"\n'
        "\n"
        "[turn.1]\n"
        "status = 200\n"
        'content-type = "text/event-stream"\n'
        'retry-after = "2"\n'
        "\n"
        "[sha256]\n"
        f'"request.json" = "{digest["request.json"]}"\n'
        f'"upstream.1.sse" = "{digest["upstream.1.sse"]}"\n'
        f'"client.json" = "{digest["client.json"]}"\n'
    )


def test_without_facts_the_meta_file_begins_with_the_first_table(tmp_path: Path) -> None:
    write_recording(tmp_path, {}, [], b"{}")
    assert (tmp_path / "meta.toml").read_text("utf-8").startswith("[sha256]\n")
    assert read_recording(tmp_path) == Recording({}, (), b"{}")


def test_keepalive_comments_are_not_recorded(tmp_path: Path) -> None:
    frame = b'event: a\ndata: {"text":"%b"}\n\n' % KEEPALIVE.strip()
    write_recording(tmp_path, {}, [], KEEPALIVE + frame + KEEPALIVE + KEEPALIVE + frame + KEEPALIVE)
    assert read_recording(tmp_path).client == frame + frame


def test_a_new_recording_takes_the_place_of_the_old_one_and_leaves_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    write_recording(tmp_path, REQUEST, [*TURNS, *TURNS], b"{}")
    write_recording(tmp_path, {}, TURNS[:1], CLIENT)
    assert names(tmp_path) == ["client.sse", "meta.toml", "notes.md", "request.json", "upstream.1.sse"]
    assert read_recording(tmp_path) == Recording({}, TURNS[:1], CLIENT)


def test_turns_that_the_meta_file_does_not_describe_are_ordinary_answers(tmp_path: Path) -> None:
    write_recording(tmp_path, {}, TURNS, CLIENT)
    meta = (tmp_path / "meta.toml").read_text("utf-8")
    (tmp_path / "meta.toml").write_text(meta[meta.index("[sha256]") :], "utf-8")
    assert read_recording(tmp_path).turns == (
        RecordedTurn(TURNS[0].body),
        RecordedTurn(TURNS[1].body, 200, ((b"content-type", b"application/json"),)),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_recording(tmp_path, REQUEST, TURNS, CLIENT, META)
    return tmp_path


def relist(folder: Path, old: str, new: str) -> None:
    """Rename a file together with its entry in the list."""
    (folder / old).rename(folder / new)
    meta = folder / "meta.toml"
    meta.write_text(meta.read_text("utf-8").replace(f'"{old}"', f'"{new}"'), "utf-8")


def refuses(folder: Path, complaint: str) -> None:
    with pytest.raises(RecordingError, match=re.escape(complaint)) as caught:
        read_recording(folder)
    assert str(folder) in str(caught.value)


def test_a_changed_file_is_named(folder: Path) -> None:
    with (folder / "upstream.1.sse").open("ab") as file:
        file.write(b"\n")
    refuses(folder, "upstream.1.sse is not as it was recorded: its SHA-256 differs from meta.toml")


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "client.sse").unlink()
    refuses(folder, "client.sse cannot be read: No such file or directory")


def test_an_added_file_is_named(folder: Path) -> None:
    (folder / "upstream.3.sse").write_bytes(b"")
    refuses(folder, "upstream.3.sse is not listed under [sha256] in meta.toml; record again")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("request.json", "notes.json"),
        ("client.sse", "notes.sse"),
        ("upstream.1.sse", "upstream.3.sse"),
        ("upstream.2.json", "upstream.1.json"),
    ],
)
def test_an_incomplete_recording_says_what_it_needs(folder: Path, old: str, new: str) -> None:
    relist(folder, old, new)
    refuses(folder, "is no whole recording: it needs request.json, upstream.1 and so on without a gap")


def test_a_folder_without_a_meta_file_is_no_recording(tmp_path: Path) -> None:
    refuses(tmp_path, "is no recording: meta.toml cannot be read: No such file or directory")


def test_a_broken_meta_file_is_an_error(folder: Path) -> None:
    (folder / "meta.toml").write_text("a = ")
    refuses(folder, "meta.toml is not TOML: ")


def test_facts_survive_any_toml_reader(folder: Path) -> None:
    meta = tomllib.loads((folder / "meta.toml").read_text("utf-8"))
    assert {key: meta[key] for key in META} == META
