"""How the model says which earlier pictures a call starts from: three arguments that exclude each other.

They are those of the Codex image-generation extension: the newest few, certain ids, certain files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..pictures import Picture
from .refusal import refused

__all__ = ["advice", "chosen_pictures", "selectors", "usable"]

_COUNT = "num_last_images_to_include"
_IDS = "referenced_image_ids"
_PATHS = "referenced_image_paths"

_MOST = 5
"""Pictures that one call may start from."""


def usable(*, workspace: bool) -> tuple[str, ...]:
    """Name the selectors that count where pictures may be edited; files only with a workspace."""
    return (_COUNT, _IDS, _PATHS) if workspace else (_COUNT, _IDS)


def selectors(*, reach: bool, workspace: bool) -> dict[str, dict[str, Any]]:
    """Describe the selectors that a model is offered: pictures in reach, and files of a workspace.

    Their limits stand in words alone: some servers' grammars know no limits of numbers and lists.
    """
    texts = {"type": "array", "items": {"type": "string"}}
    offered: dict[str, dict[str, Any]] = {}
    if reach:
        offered[_COUNT] = {
            "type": "integer",
            "description": f"How many of the conversation's newest pictures to start from, 1 to {_MOST}.",
        }
        offered[_IDS] = {
            **texts,
            "description": f"The image_id of each picture to start from, at most {_MOST}.",
        }
    if workspace:
        offered[_PATHS] = {
            **texts,
            "description": f"Files of the workspace to start from, at most {_MOST}, relative to it.",
        }
    return offered


def advice(names: Sequence[str], *, always: bool) -> str:
    """Tell the model how to use the selectors it is offered.

    Args:
        names: the selectors.
        always: whether every call changes a picture, also one that names none.
    """
    unsaid = "changes the newest picture" if always else "draws a new picture from the prompt alone"
    return (
        f" To change or combine pictures that are there already, say which ones with {' or '.join(names)}, "
        f"never two of these, and in the prompt what to change; a call without {unsaid}."
    )


def chosen_pictures(
    given: Mapping[str, Any], reach: Sequence[Picture], *, workspace: bool
) -> tuple[Picture, ...]:
    """Find the pictures that a call names, in chronological order; none if it names none.

    Args:
        given: the model's arguments. Nulls and empty lists name nothing.
        reach: the pictures of the conversation, oldest first.
        workspace: whether files may be named.

    Raises:
        ToolArgumentError: two selectors at once, a wrong count, or pictures that are not there.
    """
    named = [key for key in usable(workspace=workspace) if given.get(key) not in (None, [], "")]
    if len(named) > 1:
        raise refused(f"Give only one of {' and '.join(named)}.", named[1])
    if not named:
        return ()
    value = given[named[0]]
    if named[0] == _COUNT:
        return _newest(value, reach)
    texts = _texts(value, named[0])
    if named[0] == _PATHS:
        return tuple(Picture(path=path) for path in texts)
    return _by_id(texts, reach)


def _newest(value: object, reach: Sequence[Picture]) -> tuple[Picture, ...]:
    count = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST:
        raise refused(
            f"{_COUNT} must be a whole number from 1 to {_MOST}; leave it out to draw a new picture.", _COUNT
        )
    if not reach:
        raise refused(f"There is no picture to change; leave out {_COUNT} to draw a new one.", _COUNT)
    if count > len(reach):
        there = "is only 1 picture" if len(reach) == 1 else f"are only {len(reach)} pictures"
        raise refused(f"There {there} to change; {_COUNT} can be {len(reach)} at most.", _COUNT)
    return tuple(reach[-count:])


def _texts(value: object, name: str) -> list[str]:
    """Check a list of ids or paths; one that is named twice counts once."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(text, str) and text.strip() for text in listed):
        raise refused(f"{name} must be a list of strings.", name)
    texts = list(dict.fromkeys(listed))
    if len(texts) > _MOST:
        raise refused(f"{name} names {len(texts)} pictures; {_MOST} are the most.", name)
    return texts


def _by_id(texts: list[str], reach: Sequence[Picture]) -> tuple[Picture, ...]:
    there = [picture.id for picture in reach if picture.id]
    missing = [text for text in texts if text not in there]
    if not missing:
        return tuple(picture for picture in reach if picture.id in texts)
    wrong = f"There is no picture with the id {missing[0][:64]!r} to change; "
    if there:
        raise refused(f"{wrong}the newest ids are: {', '.join(there[-_MOST:])}.", _IDS)
    if reach:
        raise refused(f"{wrong}no picture has an id, use {_COUNT}.", _IDS)
    raise refused(f"{wrong}leave out {_IDS} to draw a new one.", _IDS)
