"""Writing pictures into a folder: where they land, what they never replace, and how it may fail."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import resource
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from imagecall.middleware.backends.base import Image
from imagecall.middleware.edits.artifacts import Artifacts, file_name
from waiting import Clock, no_hanging


def picture(data: bytes = b"a picture", output_format: str = "png") -> Image:
    return Image(data, output_format, 48, 32)


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set what the process keeps from others in new files."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def failed(caplog: pytest.LogCaptureFixture, artifacts: Artifacts, image: Image | None = None) -> str:
    """Write a picture that cannot be written; give the one warning."""
    caplog.clear()
    assert await artifacts.write("resp_1", "ig_1", image or picture()) is None
    ((_, level, message),) = caplog.record_tuples
    assert level == 30
    return message


# -- where pictures land ---------------------------------------------------------------------------


@pytest.mark.parametrize("output_format", ["png", "jpeg", "webp", "gif"])
async def test_a_picture_is_kept_by_response_and_item(tmp_path: Path, output_format: str) -> None:
    folder = tmp_path / "made" / "when needed"
    path = await Artifacts(folder).write("resp_1", "ig_1", picture(output_format=output_format))
    assert path == folder / "resp_1" / f"ig_1.{output_format}"
    assert tree(tmp_path) == {f"made/when needed/resp_1/ig_1.{output_format}": b"a picture"}
    assert path.stat().st_nlink == 1


@pytest.mark.parametrize("umask", [0, 0o027, 0o077], indirect=True)
async def test_the_process_decides_who_else_may_read_a_picture(tmp_path: Path, umask: int) -> None:
    path = await Artifacts(tmp_path).write("resp_1", "ig_1", picture())
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~umask
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755 & ~umask


async def test_the_path_is_absolute_also_for_a_relative_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    artifacts = Artifacts("out")
    monkeypatch.chdir("/")
    assert await artifacts.write("resp_1", "ig_1", picture()) == tmp_path / "out" / "resp_1" / "ig_1.png"


async def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    path = await Artifacts(tmp_path / "link").write("resp_1", "ig_1", picture())
    assert path == tmp_path / "link" / "resp_1" / "ig_1.png"
    assert (tmp_path / "real" / "resp_1" / "ig_1.png").read_bytes() == b"a picture"


async def test_pictures_of_one_name_are_numbered_and_none_is_replaced(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    (tmp_path / "resp_1").mkdir()
    (tmp_path / "resp_1" / "ig_1.png").symlink_to("nowhere")
    for count in (2, 3):
        path = await artifacts.write("resp_1", "ig_1", picture(b"%d" % count))
        assert path == tmp_path / "resp_1" / f"ig_1-{count}.png"
    assert tree(tmp_path) == {"resp_1/ig_1-2.png": b"2", "resp_1/ig_1-3.png": b"3"}
    assert not (tmp_path / "resp_1" / "nowhere").exists()


async def test_many_pictures_at_a_time_all_arrive(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    async with asyncio.TaskGroup() as group:
        for count in range(20):
            group.create_task(artifacts.write("resp_1", "ig_1", picture(b"%d" % count)))
    assert sorted(tree(tmp_path).values()) == sorted(b"%d" % count for count in range(20))


async def test_without_hard_links_nothing_is_replaced_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", link)
    artifacts = Artifacts(tmp_path)
    paths = [await artifacts.write("resp_1", "ig_1", picture(b"%d" % count)) for count in (1, 2)]
    assert paths == [tmp_path / "resp_1" / "ig_1.png", tmp_path / "resp_1" / "ig_1-2.png"]
    assert tree(tmp_path) == {"resp_1/ig_1.png": b"1", "resp_1/ig_1-2.png": b"2"}


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("identifier", ["ig_1", "resp_68a9-x.y", "A" * 100, "_"])
def test_a_plain_id_is_its_own_name(identifier: str) -> None:
    assert file_name(identifier) == identifier


@pytest.mark.parametrize(
    ("identifier", "begins"),
    [
        ("", "-"),
        (".", "_-"),
        ("..", "_.-"),
        ("../../etc/passwd", "_._.._etc_passwd-"),
        (".hidden", "_hidden-"),
        ("a/b", "a_b-"),
        ("a\0b\n", "a_b_-"),
        ("größe", "gr__e-"),
        ("A" * 101, "A" * 100 + "-"),
        ("\ud800", "_-"),
    ],
)
def test_any_other_id_is_written_plainly_with_a_part_of_its_hash(identifier: str, begins: str) -> None:
    name = file_name(identifier)
    assert name.startswith(begins)
    assert re.fullmatch("[0-9a-f]{8}", name.removeprefix(begins))


@given(st.text(max_size=300))
def test_every_name_is_safe(identifier: str) -> None:
    assert re.fullmatch(r"(?!\.)[A-Za-z0-9._-]{1,109}", file_name(identifier))


@given(st.text(st.sampled_from("a./_-\0"), max_size=4), st.text(st.sampled_from("a./_-\0"), max_size=4))
def test_different_ids_have_different_names(one: str, other: str) -> None:
    assume(one != other)
    assert file_name(one) != file_name(other)


@given(st.text(max_size=300), st.text(max_size=300))
async def test_whatever_the_ids_a_picture_lands_two_levels_below_the_folder(response: str, item: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "artifacts"
        path = await Artifacts(folder).write(response, item, picture())
        assert path is not None
        assert [str(path.relative_to(name))] == list(tree(Path(name)))
        assert len(path.relative_to(folder).parts) == 2


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
async def test_a_link_in_place_of_the_responses_folder_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, target: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "resp_1").symlink_to(f"../{target}")
    message = await failed(caplog, Artifacts(tmp_path / "out"))
    assert message.startswith("ig_1 was not written into the artifact folder: ")
    assert tree(tmp_path) == {}


async def test_a_file_in_place_of_a_folder_fails_the_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    message = await failed(caplog, Artifacts(tmp_path / "out"))
    assert message == "ig_1 was not written into the artifact folder: File exists"
    assert tree(tmp_path) == {"out": b"mine"}


async def test_a_link_that_leads_nowhere_is_no_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "out").symlink_to("nowhere")
    message = await failed(caplog, Artifacts(tmp_path / "out"))
    assert message == "ig_1 was not written into the artifact folder: File exists"


async def test_a_folder_that_can_be_none_fails_the_write(caplog: pytest.LogCaptureFixture) -> None:
    message = await failed(caplog, Artifacts("/tmp/a\0b"))
    assert message == "ig_1 was not written into the artifact folder: ValueError"


async def test_a_picture_beyond_the_limit_is_not_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await Artifacts(tmp_path).write("resp_1", "ig_0", picture(bytes(32 << 20))) is not None
    message = await failed(caplog, Artifacts(tmp_path), picture(bytes((32 << 20) + 1)))
    assert message == "ig_1 was not written into the artifact folder: File too large"
    assert list(tree(tmp_path)) == ["resp_1/ig_0.png"]


async def test_a_disk_that_takes_half_a_picture_keeps_none_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        message = await failed(caplog, Artifacts(tmp_path), picture(bytes(2_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert message == "ig_1 was not written into the artifact folder: File too large"
    assert tree(tmp_path) == {}


async def test_a_name_that_was_taken_for_a_picture_is_given_back_when_it_cannot_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(os, "replace", full)
    message = await failed(caplog, Artifacts(tmp_path))
    assert message == "ig_1 was not written into the artifact folder: No space left on device"
    assert tree(tmp_path) == {}


async def test_a_hundred_pictures_of_one_name_are_enough(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "resp_1").mkdir()
    (tmp_path / "resp_1" / "ig_1.png").touch()
    for count in range(2, 101):
        (tmp_path / "resp_1" / f"ig_1-{count}.png").touch()
    message = await failed(caplog, Artifacts(tmp_path))
    assert message == "ig_1 was not written into the artifact folder: File exists"
    assert len(tree(tmp_path)) == 100


async def test_a_folder_that_has_gone_silent_is_not_waited_for_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    loop = asyncio.get_running_loop()
    begun, may_end = asyncio.Event(), threading.Event()
    make_folder = Path.mkdir

    def stuck(self: Path, **options: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait()
        make_folder(self, **options)

    monkeypatch.setattr(Path, "mkdir", stuck)
    with no_hanging() as hopeless, ExitStack() as at_last:
        at_last.callback(may_end.set)
        async with hopeless, asyncio.TaskGroup() as group:
            writing = group.create_task(failed(caplog, Artifacts(tmp_path)))
            await begun.wait()
            await clock.forward(30)
            assert await writing == "ig_1 was not written into the artifact folder: TimeoutError"
