"""The items of one turn as a model server takes them back for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .arguments import parse_arguments
from .wire import dumps, loads

__all__ = ["call_items", "is_empty", "output_item", "replayed"]


def call_items(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Make the item of a function call: no id and no status, which strict servers refuse."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": _repaired(arguments)}


def output_item(call_id: str, text: str) -> dict[str, Any]:
    """Make the item of a function's output: a plain string, the one form every server takes."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def replayed(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Turn one output item of a model server into input for the same server's next turn.

    Servers put more keys into their output than they accept as input: nulls, stray numbers,
    log probabilities. Known types keep what their input schema has, others all but nulls.

    Returns:
        the item, or None when it says nothing (an empty message, an empty reasoning item).
    """
    match item.get("type"):
        case "message":
            return _message(item)
        case "function_call":
            kept = _only(item, ("type", "call_id", "name", "arguments", "namespace"))
            return {**kept, "arguments": _repaired(item.get("arguments"))}
        case "reasoning":
            return _reasoning(item)
        case _:
            return _only(item, item)


def _message(item: Mapping[str, Any]) -> dict[str, Any] | None:
    content = item.get("content")
    if isinstance(content, list):
        content = [_part(part) if isinstance(part, Mapping) else part for part in content]
    if is_empty(content):
        return None
    kept = _only(item, ("id", "type", "role", "status", "content", "phase"))
    return {**kept, "content": content}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part.get("type"):
        case "output_text":
            kept = _only(part, ("type", "text", "annotations"))
            return kept if "annotations" in kept else {**kept, "annotations": []}
        case "refusal":
            return _only(part, ("type", "refusal"))
        case _:
            return _only(part, part)


def _reasoning(item: Mapping[str, Any]) -> dict[str, Any] | None:
    kept = _only(item, ("id", "type", "summary", "content", "encrypted_content", "status"))
    for key in ("summary", "content"):
        parts = kept.pop(key, None)
        if isinstance(parts, list) and not is_empty(parts):
            kept[key] = [_only(part, part) if isinstance(part, Mapping) else part for part in parts]
    if not any(kept.get(key) for key in ("summary", "content", "encrypted_content")):
        return None
    return {**kept, "summary": kept.get("summary", [])}


def _only(item: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: item[key] for key in keys if item.get(key) is not None}


def is_empty(content: object) -> bool:
    """Tell whether a content holds no text but white space, and nothing else either."""
    if isinstance(content, str):
        return not content.strip()
    if not isinstance(content, list):
        return True
    texts = ("output_text", "input_text", "text", "reasoning_text", "summary_text")
    return all(
        isinstance(part, Mapping)
        and part.get("type") in texts
        and not (isinstance(part.get("text"), str) and part["text"].strip())
        for part in content
    )


def _repaired(arguments: object) -> str:
    """Make arguments a string that holds one JSON object: chat templates parse those of the past, too."""
    if isinstance(arguments, str):
        try:
            if isinstance(loads(arguments), dict):
                return arguments
        except ValueError:
            pass
    return dumps(parse_arguments(arguments) or {}).decode()
