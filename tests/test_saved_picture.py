"""Pictures become files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.terminal.saved_picture import save_pictures
from picture_files import encoded

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


def item(data: bytes, **fields: Any) -> dict[str, Any]:
    return {"type": "image_generation_call", "result": base64.b64encode(data).decode(), **fields}


def jpeg(width: int) -> bytes:
    return encoded(PIL.Image.new("RGB", (width, 10)), "jpeg")


def test_size_and_format_are_those_of_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "cat.jpg"
    (saved,) = save_pictures([item(jpeg(20), size="1x1", output_format="png", revised_prompt="a cat")], file)
    assert saved.facts() == {
        "file": str(file),
        "size": "20x10",
        "format": "jpeg",
        "revised_prompt": "a cat",
    }
    assert saved.image is not None
    assert saved.image.data == file.read_bytes() == jpeg(20)


def test_more_pictures_are_numbered_and_only_the_named_file_is_written_over(tmp_path: Path) -> None:
    file, taken = tmp_path / "cat.jpg", tmp_path / "cat-1.jpg"
    file.write_bytes(b"old")
    taken.write_bytes(b"mine")
    saved = save_pictures([item(jpeg(20)), item(jpeg(30)), item(jpeg(40))], file)
    assert [picture.file.name for picture in saved] == ["cat.jpg", "cat-2.jpg", "cat-3.jpg"]
    assert [picture.file.read_bytes() for picture in saved] == [jpeg(20), jpeg(30), jpeg(40)]
    assert taken.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("fields", "name", "told"),
    [
        ({"output_format": "svg", "size": "9x9"}, "picture.svg", ("9x9", "svg")),
        ({}, "picture.png", (None, "png")),
        ({"output_format": "/../../x"}, "picture.png", (None, "/../../x")),
    ],
)
def test_a_picture_in_an_unknown_format_is_kept_as_the_endpoint_calls_it(
    fields: dict[str, Any], name: str, told: tuple[Any, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (saved,) = save_pictures([item(SVG, **fields)], None)
    assert (saved.size, saved.format) == told
    assert saved.image is None
    assert (tmp_path / name).read_bytes() == SVG


def test_what_is_not_base64_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="base64"):
        save_pictures([{"result": "%%"}], tmp_path / "cat.png")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot be written: Is a directory") as told:
        save_pictures([item(jpeg(20))], tmp_path)
    assert str(told.value).startswith(str(tmp_path))
