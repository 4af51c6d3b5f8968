"""Pictures as a tool's arguments: the ones to edit, and the mask.

MCP has no type for a picture that goes in. Tools take a string or a list of strings; whether it is bare
base64 or a data URL shows in the argument's name or in its description. A path is of no use to a server
that does not share our files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base import Image, ImageError
from .schema import Argument, plain

__all__ = ["bare", "data_url", "fill_pictures", "takes_pictures"]

_PICTURES = (
    "image",
    "images",
    "inputimage",
    "inputimages",
    "referenceimage",
    "referenceimages",
    "initimage",
    "initimages",
    "sourceimage",
    "baseimage",
    "imagebase64",
    "imageb64",
    "imagedata",
    "imageurl",
    "imageurls",
    "inputimageurl",
)
_MASKS = ("mask", "maskimage", "maskbase64", "maskb64", "maskdata", "maskurl", "maskimageurl")


def bare(image: Image) -> str:
    """Write a picture as base64."""
    return base64.b64encode(image.data).decode()


def data_url(image: Image) -> str:
    """Write a picture as a data URL."""
    return f"data:image/{image.output_format};base64,{bare(image)}"


def takes_pictures(arguments: Iterable[Argument]) -> bool:
    """Whether a tool with these arguments takes a picture, be it within its one object."""
    arguments = tuple(arguments)
    return bool(_able(arguments, _PICTURES)) or any(takes_pictures(one.fields) for one in arguments)


def fill_pictures(
    arguments: Sequence[Argument], images: Sequence[Image], mask: Image | None
) -> dict[str, Any]:
    """Fill the arguments that take the pictures of an edit; one picture at least.

    Raises:
        ImageError: the tool takes none (`edit_not_supported`), no mask, or fewer pictures than there are
            (`too_many_images`).
    """
    able = _able(arguments, _PICTURES)
    if not able:
        raise ImageError("The MCP server's tool takes no picture to edit.", code="edit_not_supported")
    if len(images) > 1:
        able = [argument for argument in able if argument.items is not None]
        if not able:
            message = f"This server edits one picture at a time, and {len(images)} were given."
            raise ImageError(message, code="too_many_images")
    needed = [argument for argument in able if argument.needed]
    filled = {argument.name: _written(argument, images) for argument in needed or able[:1]}
    if mask is not None:
        masks = _able(arguments, _MASKS)
        if not masks:
            raise ImageError("The MCP server's tool takes no mask.", code="edit_not_supported")
        filled[masks[0].name] = _written(masks[0], [mask])
    return filled


def _able(arguments: Iterable[Argument], names: Sequence[str]) -> list[Argument]:
    by_name: Mapping[str, Argument] = {plain(argument.name): argument for argument in arguments}
    found = (by_name[name] for name in names if name in by_name)
    return [argument for argument in found if _takes_one(argument)]


def _takes_one(argument: Argument) -> bool:
    if argument.types == {"array"}:
        return argument.items is not None and argument.items.takes("string") and not _is_path(argument)
    return argument.takes("string") and not argument.enum and not _is_path(argument)


def _is_path(argument: Argument) -> bool:
    notes = _notes(argument)
    said = any(word in notes for word in ("base64", "data url", "data uri", "data:", "url"))
    return "path" in notes and not said


def _written(argument: Argument, images: Sequence[Image]) -> Any:
    write = data_url if _wants_url(argument) else bare
    if argument.items is not None and (argument.types == {"array"} or len(images) > 1):
        return [write(image) for image in images]
    return write(images[0])


def _wants_url(argument: Argument) -> bool:
    name, notes = plain(argument.name), _notes(argument)
    if "url" in name or "uri" in name:
        return True
    if "base64" in name or "b64" in name:
        return False
    if any(word in notes for word in ("data url", "data uri", "data:")):
        return True
    return "base64" not in notes and ("url" in notes or "uri" in notes)


def _notes(argument: Argument) -> str:
    return f"{argument.notes} {argument.items.notes}" if argument.items is not None else argument.notes
