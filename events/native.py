"""Pictures that a model server makes itself, in the one order of steps that clients know.

Some servers leave out steps, leave the item's status at `generating`, or never send `.completed`;
clients that wait for any of these lose the picture.
"""

from __future__ import annotations

from typing import Any

from .turn_events import Delta, TurnEvent, TurnItem

__all__ = ["NATIVE", "end_native", "native_event"]

NATIVE = "image_generation_call"

_PREFIX = f"response.{NATIVE}."
_PARTIAL = _PREFIX + "partial_image"
_COMPLETED = _PREFIX + "completed"
_STEPS = (_PREFIX + "in_progress", _PREFIX + "generating")
_STARTS = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "UklGR": "webp"}
_NO_PICTURE = {
    "type": "image_generation_error",
    "code": "image_generation_failed",
    "message": "The picture was not finished.",
    "param": None,
}


def native_event(item: TurnItem, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
    """Take an event of a picture: each step once, with those before it, and previews behind them.

    `.completed` waits for the item's end, which alone tells whether there is a picture.
    """
    name = payload["type"]
    if name == _COMPLETED:
        item.completed = payload, raw
        return []
    if name != _PARTIAL:
        made = _steps(item, _STEPS[: _STEPS.index(name)])
        if name not in item.seen:
            item.seen.add(name)
            made.append(Delta(item, payload, raw))
        return made
    if not isinstance(payload.get("partial_image_b64"), str):
        return []
    made = _steps(item, _STEPS)
    if payload.get("partial_image_index") != item.previews:
        payload["partial_image_index"] = item.previews
        raw = None
    item.previews += 1
    return [*made, Delta(item, payload, raw)]


def end_native(item: TurnItem, body: dict[str, Any]) -> tuple[list[TurnEvent], dict[str, Any]]:
    """End a picture: what it lacks, and its final body."""
    made = _steps(item, _STEPS)
    if not isinstance(body.get("result"), str) or not body["result"]:
        told = body.get("error")
        error = {**_NO_PICTURE, **told} if isinstance(told, dict) else _NO_PICTURE
        return made, {**body, "status": "failed", "result": "", "error": error}
    made.append(Delta(item, *(item.completed or ({"type": _COMPLETED}, None))))
    wanted = {"status": "completed", "output_format": body.get("output_format") or _format(body["result"])}
    whole = all(body.get(key) == value for key, value in wanted.items())
    return made, body if whole else {**body, **wanted}


def _format(picture: str) -> str:
    """Tell the format of a picture by how its base64 begins; some client fails on an item without it."""
    return next((name for start, name in _STARTS.items() if picture.startswith(start)), "png")


def _steps(item: TurnItem, names: tuple[str, ...]) -> list[TurnEvent]:
    missing = [name for name in names if name not in item.seen]
    item.seen.update(missing)
    return [Delta(item, {"type": name}) for name in missing]
