"""Opening folders without following links."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from imagecall.middleware.edits.folders import open_folder


def names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def test_a_folder_is_opened_name_by_name(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    with open_folder(str(tmp_path), "a", "b") as folder:
        assert names(folder) == ["c"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(folder)


def test_the_root_may_be_a_link_and_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("inner")
    with open_folder(str(tmp_path / "root"), "inner") as folder:
        assert names(folder) == []
    with pytest.raises(OSError, match="link"), open_folder(str(tmp_path / "root"), "link"):
        pass


def test_a_file_is_no_folder_and_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    before = list(Path("/dev/fd").iterdir())
    with pytest.raises(NotADirectoryError), open_folder(str(tmp_path), "file"):
        pass
    assert len(list(Path("/dev/fd").iterdir())) == len(before)


def test_a_system_without_such_calls_is_told_from_a_missing_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(OSError) as caught, open_folder(str(tmp_path)):  # noqa: PT011  its number is checked below
        pass
    assert caught.value.errno == errno.ENOTSUP
