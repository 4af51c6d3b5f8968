"""The response object as SDKs demand it: how it begins, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .turn_events import TurnEnded

__all__ = ["NEUTRAL", "REQUIRED", "begun", "ended_as", "error_of"]

REQUIRED: dict[str, Any] = {
    "instructions": None,
    "metadata": {},
    "model": "",
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
"""Keys without which some SDK rejects a response object."""

_NOTHING_YET: dict[str, Any] = {
    "object": "response",
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "output": [],
    "usage": None,
}
"""How every response begins, also one whose first word is its last."""

_NO_DETAILS = {"reason": "max_output_tokens"}
"""By far the most frequent reason, where a server gives none: SDKs demand one."""

NEUTRAL = "The model server failed to complete the response."
"""All that a client is told of an upstream failure; the server's own words go to the log."""


def begun(response: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Make the object of a response that begins whole, from a perhaps bare or empty one."""
    head = {**defaults, **_known(response, defaults), **_NOTHING_YET}
    head.pop("completed_at", None)
    return head


def ended_as(status: str, ended: TurnEnded, head: Mapping[str, Any]) -> dict[str, Any]:
    """Make the object of a response that has ended, from how it began and the last turn's; no output yet.

    The id, `created_at` and whatever else the client was told at the beginning is for the caller to see to.
    """
    whole = {**head, **_known(ended.response, head), "object": "response", "status": status}
    whole["error"] = error_of(ended) if status == "failed" else None
    details = ended.response.get("incomplete_details")
    if status == "incomplete":
        whole["incomplete_details"] = details if isinstance(details, dict) else dict(_NO_DETAILS)
    else:
        whole["incomplete_details"] = None
    del whole["output"]
    return whole


def error_of(ended: TurnEnded) -> dict[str, str]:
    """Return what the client is told of a failure."""
    return {"code": ended.code, "message": ended.told or NEUTRAL}


def _known(response: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a response that say something: a null gives way to what is known."""
    return {key: value for key, value in response.items() if _says(value, defaults.get(key), key in defaults)}


def _says(value: object, known: object, expected: bool) -> bool:
    """Tell whether a value may stand where something is known already: not what SDKs could not read."""
    if value is None:
        return not expected
    if isinstance(known, str):
        return isinstance(value, str) and bool(value)
    return not isinstance(known, dict | list | bool) or isinstance(value, type(known))
