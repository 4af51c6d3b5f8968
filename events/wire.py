"""The vocabulary of the Responses API: event names, whom each event speaks of, JSON in and out.

Names and required keys are those of the OpenAI SDKs' event union; a type outside it makes the
official Node SDK throw, so nothing else is ever sent.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

__all__ = [
    "CLIENT_CALLS",
    "EVENT_NAMES",
    "FAMILIES",
    "HEARTBEATS",
    "ITEM_EVENTS",
    "LOOSE_EVENTS",
    "OUTPUT_TEXT",
    "PART_EVENTS",
    "STREAMED_FIELDS",
    "TERMINAL",
    "TEXT_EVENTS",
    "Family",
    "NestingError",
    "dumps",
    "is_deep",
    "loads",
    "strings_of",
]

_MAX_DEPTH = 200
_LONG = 64 << 10


class NestingError(ValueError):
    """JSON that is nested so deeply that it could not be written again."""

    def __init__(self) -> None:
        super().__init__(f"JSON nested too deeply, more than {_MAX_DEPTH} levels")


def loads(data: bytes | str) -> Any:
    """Parse JSON. What orjson refuses (lone surrogates, NaN, huge integers) the standard library takes.

    Raises:
        NestingError: it is nested more than 200 deep.
        ValueError: it is no JSON at all.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data)
        except RecursionError as error:
            raise NestingError from error
    if _may_be_deep(data) and is_deep(value):
        raise NestingError
    return value


def _may_be_deep(data: bytes | str) -> bool:
    """Whether JSON has containers enough to be deep; in a long text that costs more than to look."""
    if not 2 * _MAX_DEPTH < len(data) < _LONG:
        return len(data) >= _LONG
    if isinstance(data, str):
        return data.count("{") + data.count("[") > _MAX_DEPTH
    return data.count(b"{") + data.count(b"[") > _MAX_DEPTH


def is_deep(value: object) -> bool:
    """Whether containers are nested more than 200 deep: both writers give up a little beyond that."""
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        containers = [node for node in level if isinstance(node, dict | list)]
        if not containers:
            return False
        level = [
            child for node in containers for child in (node.values() if isinstance(node, dict) else node)
        ]
    return True


def strings_of(value: object, keys: Collection[str]) -> Iterator[str]:
    """Give the strings that stand under some keys, however deep, in their order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keys and isinstance(inner, str):
                yield inner
            else:
                yield from strings_of(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_of(inner, keys)


def dumps(value: Any) -> bytes:
    """Write JSON on one line, as UTF-8; in plain ASCII where orjson refuses the value."""
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Family:
    """The events that carry one kind of streamed text: deltas, then a done with the whole of it.

    Attributes:
        item: the type of the items it belongs to.
        part: the type of the content part that holds the text.
        delta: the delta's event type.
        done: the done's event type.
        field: the key that holds the whole text, in the done event and in the part.
        index: the key that tells the parts of one item apart.
        part_added: the event that announces the part, where the SDKs demand one.
        part_done: its counterpart.
    """

    item: str
    part: str
    delta: str
    done: str
    field: str = "text"
    index: str = "content_index"
    part_added: str = "response.content_part.added"
    part_done: str = "response.content_part.done"


OUTPUT_TEXT = Family("message", "output_text", "response.output_text.delta", "response.output_text.done")
REFUSAL = Family("message", "refusal", "response.refusal.delta", "response.refusal.done", field="refusal")
REASONING_TEXT = Family(
    "reasoning", "reasoning_text", "response.reasoning_text.delta", "response.reasoning_text.done"
)
SUMMARY_TEXT = Family(
    "reasoning",
    "summary_text",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    index="summary_index",
    part_added="response.reasoning_summary_part.added",
    part_done="response.reasoning_summary_part.done",
)

_FAMILIES = (OUTPUT_TEXT, REFUSAL, REASONING_TEXT, SUMMARY_TEXT)

FAMILIES = {family.part: family for family in _FAMILIES}
"""Part type → family."""

TEXT_EVENTS = {name: family for family in _FAMILIES for name in (family.delta, family.done)}
"""Delta or done event type → family."""

PART_EVENTS = {
    "response.content_part.added": "content_index",
    "response.content_part.done": "content_index",
    "response.reasoning_summary_part.added": "summary_index",
    "response.reasoning_summary_part.done": "summary_index",
}

_PHASES = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
}

STREAMED_FIELDS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "code_interpreter_call": "code",
    "mcp_call": "arguments",
}
"""Type of the items whose one string is streamed → the field that holds it, in the done event, too."""

ITEM_EVENTS: dict[str, str] = {
    **{name: family.item for name, family in TEXT_EVENTS.items()},
    **{f"response.{item}.{phase}": item for item, phases in _PHASES.items() for phase in phases},
    **{
        f"response.{item}_{field}.{end}": item
        for item, field in STREAMED_FIELDS.items()
        for end in ("delta", "done")
    },
    "response.output_text.annotation.added": "message",
}
"""Event type → type of the item it speaks of. `PART_EVENTS` tell by their part."""

LOOSE_EVENTS = frozenset(
    f"response.audio.{name}" for name in ("delta", "done", "transcript.delta", "transcript.done")
)
"""Known events that belong to no item."""

TERMINAL = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "failed",
}

HEARTBEATS = frozenset({"keepalive", "ping", "response.keep_alive", "response.keepalive", "heartbeat"})

CLIENT_CALLS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "mcp_approval_request",
    }
)
"""Items that wait for the client: the model cannot go on before it has answered them."""

EVENT_NAMES: dict[str, bytes] = {
    name: name.encode()
    for name in (
        *ITEM_EVENTS,
        *PART_EVENTS,
        *LOOSE_EVENTS,
        *TERMINAL,
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "error",
    )
}
"""Every event type that may be sent, with its bytes."""
