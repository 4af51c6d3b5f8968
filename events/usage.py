"""Token counts, added up over turns and made whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["IMAGE_DETAILS", "TEXT_DETAILS", "add_usage", "full_usage"]

TEXT_DETAILS = {
    "input_tokens_details": ("cached_tokens", "cache_write_tokens"),
    "output_tokens_details": ("reasoning_tokens",),
}
IMAGE_DETAILS = {
    "input_tokens_details": ("image_tokens", "text_tokens"),
    "output_tokens_details": ("image_tokens", "text_tokens"),
}


def add_usage(total: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Add two usage objects field by field; what is no number is taken from the later one."""
    added = dict(total)
    for key, value in more.items():
        known = added.get(key)
        if isinstance(value, dict):
            added[key] = add_usage(known if isinstance(known, dict) else {}, value)
        elif _is_number(value) and _is_number(known):
            added[key] = known + value
        elif value is not None or key not in added:
            added[key] = value
    return added


def full_usage(
    usage: Mapping[str, Any], details: Mapping[str, tuple[str, ...]] = TEXT_DETAILS
) -> dict[str, Any]:
    """Fill in the counts and details that the SDKs' types demand, with zeros."""
    full = dict(usage)
    for key in ("input_tokens", "output_tokens"):
        full[key] = full.get(key) if _is_number(full.get(key)) else 0
    if not _is_number(full.get("total_tokens")):
        full["total_tokens"] = full["input_tokens"] + full["output_tokens"]
    for key, names in details.items():
        given = full.get(key)
        known = given if isinstance(given, dict) else {}
        full[key] = {**dict.fromkeys(names, 0), **{k: v for k, v in known.items() if v is not None}}
    return full


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
