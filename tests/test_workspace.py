"""Reading the workspace's pictures: what is inside, and nothing else."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.edits.workspace import Workspace

PICTURE = b"\x89PNG inside"
SECRET = b"secret outside"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with pictures and links, beside a folder with a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.png").write_bytes(SECRET)
    folder = tmp_path / "workspace"
    (folder / "shots" / "old").mkdir(parents=True)
    (folder / "cat.png").write_bytes(PICTURE)
    (folder / "shots" / "old" / "dog.png").write_bytes(PICTURE)
    return folder


def workspace(folder: Path | str, *, max_bytes: int = 100) -> Workspace:
    return Workspace(folder, max_bytes=max_bytes)


async def refused(folder: Path, path: str, *, max_bytes: int = 100) -> tuple[str, str]:
    """Ask for a file that must be refused; give the code and the message, which never names the folder."""
    with pytest.raises(ImageError) as caught:
        await workspace(folder, max_bytes=max_bytes).read(path)
    assert path.startswith("/") or str(folder.parent) not in caught.value.message
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    "path",
    [
        "cat.png",
        "./cat.png",
        "shots/old/dog.png",
        "shots//old/./dog.png",
        "shots/../cat.png",
        "../workspace/cat.png",
    ],
)
async def test_a_relative_path_counts_from_the_folder(folder: Path, path: str) -> None:
    assert await workspace(folder).read(path) == PICTURE


async def test_an_absolute_path_may_lead_into_the_folder(folder: Path) -> None:
    assert await workspace(folder).read(str(folder / "cat.png")) == PICTURE


async def test_the_folder_may_be_a_link_and_is_entered_by_either_name(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    for path in ("cat.png", str(link / "cat.png"), str(folder / "cat.png")):
        assert await workspace(link).read(path) == PICTURE


async def test_a_relative_folder_is_the_one_of_the_time_it_was_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    given_relative = workspace("workspace")
    monkeypatch.chdir("/")
    assert await given_relative.read("cat.png") == PICTURE


async def test_links_that_stay_inside_are_followed(folder: Path) -> None:
    (folder / "latest.png").symlink_to("shots/old/dog.png")
    (folder / "archive").symlink_to(folder / "shots")
    assert await workspace(folder).read("latest.png") == PICTURE
    assert await workspace(folder).read("archive/old/dog.png") == PICTURE


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside/secret.png",
        "shots/../../outside/secret.png",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "link.png",
        "link/secret.png",
        "chain.png",
        "../workspace-2/secret.png",
        "../outside/nothing.png",
    ],
)
async def test_what_leads_out_of_the_folder_is_refused(folder: Path, path: str) -> None:
    (folder / "link.png").symlink_to("../outside/secret.png")
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "chain.png").symlink_to("link.png")
    (folder.parent / "workspace-2").mkdir()
    (folder.parent / "workspace-2" / "secret.png").write_bytes(SECRET)
    assert await refused(folder, path) == (
        "path_not_allowed",
        f"The path {path!r} leads out of the workspace.",
    )


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "shots",
        "nothing.png",
        "shots/nothing/dog.png",
        "cat.png/x",
        "~/cat.png",
        "~root/cat.png",
        "$HOME/cat.png",
        "cat.png\0.jpg",
        "\ud800.png",
        "pipe",
        "socket",
        "loop",
        "cat%2Epng",
        "file:cat.png",
    ],
)
async def test_what_is_no_readable_file_is_not_found(
    folder: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    monkeypatch.chdir(folder)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert await refused(folder, path) == (
            "image_not_found",
            f"There is no readable picture file {path!r} in the workspace.",
        )


async def test_a_pipe_that_somebody_writes_to_is_not_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    writer = os.open(folder / "pipe", os.O_RDWR)
    try:
        os.write(writer, PICTURE)
        assert (await refused(folder, "pipe"))[0] == "image_not_found"
    finally:
        os.close(writer)


async def test_a_device_is_not_read() -> None:
    with pytest.raises(ImageError) as caught:
        await workspace("/dev").read("zero")
    assert caught.value.code == "image_not_found"


async def test_a_missing_folder_holds_nothing(folder: Path) -> None:
    assert (await refused(folder / "gone", "cat.png"))[0] == "image_not_found"


async def test_an_error_repeats_no_endless_path(folder: Path) -> None:
    code, message = await refused(folder, "x" * 100_000)
    assert code == "image_not_found"
    assert message == f"There is no readable picture file '{'x' * 200}…' in the workspace."


async def test_a_path_that_no_system_takes_is_not_even_resolved(folder: Path) -> None:
    assert await workspace(folder).read("./" * 2_044 + "cat.png") == PICTURE
    assert (await refused(folder, "./" * 2_045 + "cat.png"))[0] == "image_not_found"


async def test_a_file_of_the_greatest_length_is_read_and_a_longer_one_is_not(folder: Path) -> None:
    size = len(PICTURE)
    assert await workspace(folder, max_bytes=size).read("cat.png") == PICTURE
    assert await refused(folder, "cat.png", max_bytes=size - 1) == (
        "image_too_large",
        f"The file 'cat.png' is too long; max_image allows {size - 1:,} bytes.",
    )


async def test_a_long_file_is_not_read_at_all(folder: Path) -> None:
    with (folder / "huge.png").open("wb") as file:
        file.truncate(1 << 40)
    # Twice as long as is allowed, which no memory would hold.
    assert (await refused(folder, "huge.png", max_bytes=1 << 39))[0] == "image_too_large"


async def test_a_file_that_grows_while_it_is_read_is_too_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = (folder / "cat.png").stat()
    (folder / "cat.png").write_bytes(bytes(1_000))
    monkeypatch.setattr(os, "fstat", lambda _: facts)
    assert (await refused(folder, "cat.png"))[0] == "image_too_large"


@pytest.mark.parametrize("path", ["cat.png", "shots/old/dog.png"])
async def test_a_link_put_there_after_the_check_is_not_followed(
    folder: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = os.path.realpath

    def check_then_exchange(name: Path) -> str:
        real = check(name)
        if Path(name).name == Path(path).name:
            victim = folder / Path(path).parts[0]
            victim.rename(folder / "moved")
            (folder.parent / "outside" / "old").mkdir()
            (folder.parent / "outside" / "old" / "dog.png").write_bytes(SECRET)
            victim.symlink_to("../outside/secret.png" if victim.suffix else "../outside")
        return real

    monkeypatch.setattr(os.path, "realpath", check_then_exchange)
    assert (await refused(folder, path))[0] == "image_not_found"
    monkeypatch.undo()
    assert (folder / path).read_bytes() == SECRET


_PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "a",
        "b.png",
        "out",
        "in",
        "secret.png",
        "/",
        "~",
        "x\0",
        "\ud800",
        "workspace",
        "outside",
    ]
)


@given(st.lists(_PIECES, max_size=8).map("/".join) | st.text(max_size=30))
async def test_no_path_whatever_brings_up_what_is_outside(path: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        (folder / "a").mkdir(parents=True)
        (folder / "b.png").write_bytes(PICTURE)
        (folder / "a" / "b.png").write_bytes(PICTURE)
        (Path(name) / "outside").mkdir()
        (Path(name) / "outside" / "b.png").write_bytes(SECRET)
        (Path(name) / "outside" / "secret.png").write_bytes(SECRET)
        (folder / "out").symlink_to("../outside")
        (folder / "in").symlink_to("a")
        try:
            data = await workspace(folder).read(path)
        except ImageError as refusal:
            data, message = PICTURE, refusal.message
        else:
            message = ""
        assert data == PICTURE
        assert name not in message
