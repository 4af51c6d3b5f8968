"""Reads a request to `/v1/responses` the way a strict model server does.

Real servers differ in what they forgive. The scripted model forgives nothing, so that a mistake in
rewritten requests shows here first: whatever it accepts, the stricter ones of them accept as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...events.errors import RequestError
from ...events.wire import loads

__all__ = ["check_request"]

Json = dict[str, Any]
Check = Callable[[Any, str], None]
"""Raises RequestError when the value is wrong; the string is the value's path."""

_TEXT_PARTS = {"user": "input_text", "system": "input_text", "developer": "input_text"}
_TOOL_KEYS = {"type", "name", "description", "parameters", "strict"}


def check_request(body: object) -> Json:
    """Check a parsed body.

    Returns:
        The body, whose `input` is a list of items now.

    Raises:
        RequestError: with the path of the first wrong field.
    """
    if not isinstance(body, dict):
        raise RequestError("The request body must be a JSON object.")
    for key in ("stream", "parallel_tool_calls"):
        if not isinstance(body.get(key, False), bool | None):
            raise _wrong(key, "must be true or false")
    if (previous := body.get("previous_response_id")) is not None:
        message = f"Previous response with id {previous!r} not found."
        raise RequestError(message, param="previous_response_id", code="previous_response_not_found")
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list):
        raise _wrong("input", "must be a string or a list of items")
    for index, item in enumerate(items):
        _check_item(item, f"input[{index}]")
    _check_ids(items)
    _check_pairs(items)
    _check_choice(body, _check_tools(body.get("tools")))
    return {**body, "input": items}


def _check_tools(tools: object) -> list[str]:
    """Check the declarations; return the functions' names."""
    if not isinstance(tools, list | None):
        raise _wrong("tools", "must be a list")
    names: list[str] = []
    for index, tool in enumerate(tools or []):
        path = f"tools[{index}]"
        if _object(tool, path).get("type") != "function":
            raise _wrong(f"{path}.type", f"is {tool.get('type')!r}; this model knows only 'function'")
        _only(tool, _TOOL_KEYS, path)
        _text(tool.get("name"), f"{path}.name")
        if not isinstance(tool.get("parameters"), dict | None):
            raise _wrong(f"{path}.parameters", "must be a JSON Schema object")
        if tool["name"] in names:
            raise _wrong(f"{path}.name", f"names {tool['name']!r}, which is declared already")
        names.append(tool["name"])
    return names


def _check_choice(body: Json, names: list[str]) -> None:
    choice = body.get("tool_choice")
    if choice in (None, "auto", "none") or (choice == "required" and names):
        return
    if choice == "required":
        raise RequestError("Tool choice 'required' must be specified with 'tools'.", param="tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind not in ("function", "allowed_tools"):
        raise _wrong("tool_choice", "must be 'auto', 'none', 'required', or an object that names functions")
    if kind == "allowed_tools" and choice.get("mode") not in ("auto", "required"):
        raise _wrong("tool_choice.mode", "must be 'auto' or 'required'")
    chosen = choice.get("tools") if kind == "allowed_tools" else [choice]
    if not isinstance(chosen, list):
        raise _wrong("tool_choice.tools", "must be a list")
    for tool in chosen:
        name = _object(tool, "tool_choice").get("name")
        if name not in names:
            raise RequestError(f"Tool choice {name!r} not found in 'tools' parameter.", param="tool_choice")


def _check_item(item: object, path: str) -> None:
    fields = _object(item, path)
    kind = fields.get("type", "message" if "role" in fields else None)
    if not isinstance(kind, str) or kind not in _ITEMS:
        raise _wrong(f"{path}.type", f"is {kind!r}, which is no item this model takes")
    needed, checks = _ITEMS[kind]
    _only(fields, checks.keys() | {"type"}, path)
    for key in needed:
        if key not in fields:
            raise RequestError(f"Missing required parameter: '{path}.{key}'.", param=f"{path}.{key}")
    for key, value in fields.items():
        if key in checks:
            checks[key](value, f"{path}.{key}")
    if kind == "message":
        _check_content(fields["role"], fields["content"], f"{path}.content")


def _check_content(role: str, content: object, path: str) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise _wrong(path, "must be a string or a list of parts")
    for index, part in enumerate(content):
        kind = _object(part, f"{path}[{index}]").get("type")
        if role == "assistant" and kind == "refusal":
            _check_part(part, "refusal", f"{path}[{index}]", text="refusal")
        else:
            _check_part(part, _TEXT_PARTS.get(role, "output_text"), f"{path}[{index}]")


def _check_part(part: object, kind: str, path: str, *, text: str = "text") -> None:
    fields = _object(part, path)
    if fields.get("type") != kind:
        raise _wrong(f"{path}.type", f"is {fields.get('type')!r}; this model takes {kind!r} here")
    _only(fields, {"type", text, *(("annotations", "logprobs") if kind == "output_text" else ())}, path)
    if not isinstance(fields.get(text), str):
        raise _wrong(f"{path}.{text}", "must be a string")


def _check_ids(items: list[Json]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if item.get("id") in seen:
            raise RequestError(f"Duplicate item found with id {item['id']}.", param=f"input[{index}].id")
        if "id" in item:
            seen.add(item["id"])


def _check_pairs(items: list[Json]) -> None:
    """Each call is answered once, after it was made."""
    open_calls: dict[str, int] = {}
    closed: set[str] = set()
    for index, item in enumerate(items):
        call_id = item.get("call_id", "")
        if item.get("type") == "function_call":
            if call_id in open_calls or call_id in closed:
                raise _wrong(
                    f"input[{index}].call_id", f"is {call_id!r}, which stands for another call already"
                )
            open_calls[call_id] = index
        elif item.get("type") == "function_call_output":
            if call_id not in open_calls:
                message = f"No tool call found for function call output with call_id {call_id}."
                raise RequestError(message, param=f"input[{index}].call_id")
            del open_calls[call_id]
            closed.add(call_id)
    for call_id, index in open_calls.items():
        raise RequestError(f"No tool output found for function call {call_id}.", param=f"input[{index}]")


def _text(value: object, path: str) -> None:
    if not isinstance(value, str) or not value:
        raise _wrong(path, "must be a string that is not empty")


def _string(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise _wrong(path, "must be a string")


def _anything(value: object, path: str) -> None:
    """Leave a check to one that sees the whole item."""


def _arguments(value: object, path: str) -> None:
    _text(value, path)
    try:
        parsed = loads(str(value))
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise _wrong(path, "must be a JSON object, written as a string")


def _one_of(*words: str) -> Check:
    def check(value: object, path: str) -> None:
        if value not in words:
            raise _wrong(path, f"must be one of {', '.join(words)}")

    return check


def _id_of(prefix: str) -> Check:
    def check(value: object, path: str) -> None:
        if not isinstance(value, str) or not value.startswith(prefix):
            raise RequestError(
                f"Invalid '{path}': {value!r}. Expected an ID that begins with '{prefix}'.", param=path
            )

    return check


def _parts(kind: str) -> Check:
    def check(value: object, path: str) -> None:
        if not isinstance(value, list):
            raise _wrong(path, "must be a list of parts")
        for index, part in enumerate(value):
            _check_part(part, kind, f"{path}[{index}]")

    return check


_STATUS = _one_of("in_progress", "completed", "incomplete")
_ROLE = _one_of("user", "assistant", "system", "developer")
_ITEMS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Check]]] = {
    "message": (
        ("role", "content"),
        {"id": _id_of("msg"), "role": _ROLE, "content": _anything, "status": _STATUS},
    ),
    "reasoning": (
        ("summary",),
        {
            "id": _id_of("rs"),
            "summary": _parts("summary_text"),
            "content": _parts("reasoning_text"),
            "encrypted_content": _text,
            "status": _STATUS,
        },
    ),
    "function_call": (
        ("call_id", "name", "arguments"),
        {"id": _id_of("fc"), "call_id": _text, "name": _text, "arguments": _arguments, "status": _STATUS},
    ),
    "function_call_output": (
        ("call_id", "output"),
        {"id": _id_of("fc"), "call_id": _text, "output": _string, "status": _STATUS},
    ),
}
"""Item type → the keys it must have, and a check for each key it may have."""


def _object(value: object, path: str) -> Json:
    if not isinstance(value, dict):
        raise _wrong(path, "must be an object")
    return value


def _only(fields: Json, known: set[str], path: str) -> None:
    for key in fields:
        if key not in known:
            raise RequestError(f"Unknown parameter: '{path}.{key}'.", param=f"{path}.{key}")


def _wrong(path: str, complaint: str) -> RequestError:
    return RequestError(f"Invalid '{path}': it {complaint}.", param=path)
