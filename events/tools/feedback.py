"""What the model is told about a call of `image_generation`: words only, never the picture."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["feedback"]

_SHOWN = (
    "The user already sees this picture. Answer in a sentence; call again only if asked for another "
    "picture or a change."
)
"""Fit for the turn that made the picture and for all later ones: prompt caches hit the same words only."""
_LOST = "This picture is no longer available."
_REFUSED = "The safety system refused this. Do not try the same prompt again; tell the user."
_CORRECT = "No picture was made. Correct the arguments and call again."
_FAILED = "No picture was made. Do not repeat the same call; tell the user what went wrong."

_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{80,}")
"""Base64, or anything else so long without a space that it is of no use to a reader."""


def feedback(item: Mapping[str, Any], path: str | None = None) -> str:
    """Tell the model in a few words how a call ended; the item's picture is never part of it.

    Args:
        item: an `image_generation_call` with status `completed` or `failed`; any other status says
            that the picture is no longer there.
        path: the file that the picture was also written to.

    Returns:
        A JSON object, less than 2 kB, the same text for the same item.
    """
    told: dict[str, Any] = {"status": item.get("status"), "image_id": _brief(item.get("id"))}
    if told["status"] == "completed":
        told |= {key: _brief(item.get(key)) for key in ("size", "output_format")}
        told |= {"saved_as": path, "note": _SHOWN}
    elif told["status"] == "failed":
        told["error"], told["note"] = _failure(item.get("error"))
    else:
        told |= {"status": "unavailable", "note": _LOST}
    return json.dumps({key: value for key, value in told.items() if value}, ensure_ascii=False)


def _failure(error: object) -> tuple[dict[str, str], str]:
    if not isinstance(error, Mapping):
        return {}, _FAILED
    code = _brief(error.get("code"))
    # What is wrong with arguments is said in words of ours, which end with what would be right.
    limit = 400 if code == "invalid_arguments" else 200
    message = _ENCODED.sub("…", _text(error.get("message")))[:limit]
    notes = {"moderation_blocked": _REFUSED, "invalid_arguments": _CORRECT}
    told = {"code": code, "message": message, "param": _brief(error.get("param"))}
    return {key: value for key, value in told.items() if value}, notes.get(code, _FAILED)


def _brief(value: object) -> str:
    text = _text(value)
    return text if len(text) <= 64 else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
