"""How items begin and end, and calls settle, when their server does not say it all."""

from __future__ import annotations

from typing import Any

from .arguments import parse_arguments
from .turn_events import CallSettled, Delta, TurnEvent, TurnItem
from .wire import STREAMED_FIELDS, dumps, loads

__all__ = [
    "beginning",
    "end_call",
    "end_streamed",
    "has_content",
    "opening",
    "settle",
    "streamed_event",
    "told_error",
    "with_status",
]

_NO_INCOMPLETE = ("web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call")
_FINAL = ("completed", "incomplete", "failed")
_IN_PROGRESS = ("reasoning", "custom_tool_call")
"""Items that begin `in_progress` if they have a status at all."""
_AT_FIRST: dict[str, dict[str, Any]] = {
    "message": {"status": "in_progress", "role": "assistant", "content": []},
    "function_call": {"status": "in_progress", "arguments": ""},
    "custom_tool_call": {"input": ""},
}


def beginning(item: TurnItem) -> dict[str, Any]:
    """Make up the body of an item that nobody announced."""
    body: dict[str, Any] = {"type": item.kind}
    if item.id is not None:
        body["id"] = item.id
    if item.kind == "message":
        return {**body, "status": "in_progress", "role": "assistant", "content": []}
    if item.kind == "reasoning":
        return {**body, "summary": []}
    known = {"call_id": item.call_id, "name": item.name}
    body |= {key: value for key, value in known.items() if value}
    if item.kind in STREAMED_FIELDS:
        body[STREAMED_FIELDS[item.kind]] = ""
    return {**body, "status": "in_progress"}


def opening(body: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is announced: in progress, its content still to come.

    Servers announce items that are complete already; clients would add what is streamed to that.
    """
    kind = body["type"]
    if kind == "image_generation_call":
        return {**{key: body[key] for key in ("id", "type") if key in body}, "status": "in_progress"}
    first = dict(_AT_FIRST.get(kind, {}))
    if kind in STREAMED_FIELDS and body.get(STREAMED_FIELDS[kind]):
        first[STREAMED_FIELDS[kind]] = ""
    if kind == "reasoning":
        first |= {key: [] for key in ("summary", "content") if body.get(key)}
    status = body.get("status", "")
    if not isinstance(status, str) or status in _FINAL or (status and kind in _IN_PROGRESS):
        first["status"] = "in_progress"
    return body if all(body.get(key) == value for key, value in first.items()) else {**body, **first}


def has_content(body: dict[str, Any]) -> bool:
    """Whether an item that stands only in the final output is worth telling: blank messages are not."""
    if body["type"] == "reasoning":
        return bool(body.get("content") or body.get("summary") or body.get("encrypted_content"))
    if body["type"] != "message":
        return True
    content = body.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return any(str(part.get("text") or part.get("refusal") or "").strip() for part in parts)


def _is_object(text: str) -> bool:
    try:
        return isinstance(loads(text), dict)
    except ValueError:
        return False


def with_status(body: dict[str, Any], status: str) -> dict[str, Any]:
    """Give a closing item a final status; one it already has stays."""
    if body.get("status") in _FINAL:
        return body
    if status == "incomplete" and body["type"] in _NO_INCOMPLETE:
        status = "failed"
    return {**body, "status": status}


def end_call(item: TurnItem, body: dict[str, Any], status: str) -> tuple[list[TurnEvent], dict[str, Any]]:
    """End a client's call: its arguments in one piece, once, and only if they are all there."""
    told = body.get("arguments")
    if isinstance(told, dict):
        told = dumps(told).decode()
    events: list[TurnEvent] = []
    streamed = "".join(item.arguments)
    whole = told if isinstance(told, str) and told.strip() and not item.arguments_done else streamed
    if not whole.startswith(streamed) and (_is_object(streamed) or not _is_object(whole)):
        whole = streamed  # the same object written in another way, mostly: what was read stays
    if not item.arguments_done:
        item.arguments_done = True
        item.arguments = [whole]
        if whole.startswith(streamed) and len(whole) > len(streamed):
            rest = whole[len(streamed) :]
            events.append(Delta(item, {"type": "response.function_call_arguments.delta", "delta": rest}))
        if status == "completed" or (whole.strip() and parse_arguments(whole) is not None):
            events.append(Delta(item, {"type": "response.function_call_arguments.done", "arguments": whole}))
        else:
            body = {**body, "status": status}
    body = with_status(body, status)
    wanted = {"name": item.name, "arguments": whole}
    if all(body.get(key) == value for key, value in wanted.items()):
        return events, body
    return events, {**body, **wanted}


def streamed_event(item: TurnItem, name: str, payload: dict[str, Any], raw: bytes | None) -> list[TurnEvent]:
    """Take an event of an item of another type whose one string is streamed, or any other event of it."""
    field = STREAMED_FIELDS.get(item.kind, "")
    if name == f"response.{item.kind}_{field}.delta":
        delta = payload.get("delta")
        if item.arguments_done or not isinstance(delta, str):
            return []
        item.arguments.append(delta)
    elif name == f"response.{item.kind}_{field}.done":
        return _streamed_end(item, payload.get(field), "completed", payload, raw)
    else:
        item.seen.add(name)
    return [Delta(item, payload, raw)]


def end_streamed(item: TurnItem, body: dict[str, Any], status: str) -> tuple[list[TurnEvent], dict[str, Any]]:
    """End an item of another type whose one string is streamed: what was not streamed yet is now."""
    field = STREAMED_FIELDS[item.kind]
    events = _streamed_end(item, body.get(field), status)
    wanted = {field: "".join(item.arguments), "name": item.name}
    changed = {key: value for key, value in wanted.items() if value and body.get(key) != value}
    return events, {**body, **changed} if changed else body


def _streamed_end(
    item: TurnItem, told: object, status: str, payload: dict[str, Any] | None = None, raw: bytes | None = None
) -> list[TurnEvent]:
    """End the string, once; `payload` is the server's own event that does, if there is one."""
    if item.arguments_done:
        return []
    field = STREAMED_FIELDS[item.kind]
    prefix = f"response.{item.kind}_{field}."
    streamed = "".join(item.arguments)
    whole = told if isinstance(told, str) and told else streamed
    if not whole and payload is None:
        return []
    item.arguments_done = True
    item.arguments = [whole]
    events: list[TurnEvent] = []
    if whole.startswith(streamed) and len(whole) > len(streamed):
        events.append(Delta(item, {"type": prefix + "delta", "delta": whole[len(streamed) :]}))
    if payload is not None and told == whole:
        events.append(Delta(item, payload, raw))
    elif status == "completed":
        events.append(Delta(item, {"type": prefix + "done", field: whole}))
    return events


def settle(item: TurnItem, whole: object, max_arguments: int, *, last: bool = False) -> list[TurnEvent]:
    """Settle a hosted call by the first source that holds an object.

    Args:
        item: the call.
        whole: the arguments that the present event tells; the surest source.
        max_arguments: characters beyond which the call fails.
        last: the response is complete: a call without any arguments has `{}`, a broken one fails.
    """
    if item.settled:
        return []
    sources = (whole, "".join(item.arguments), item.body.get("arguments"))
    sizes = (len(source) for source in sources if isinstance(source, str))
    if max(item.arguments_size, *sizes) > max_arguments:
        item.settled = True
        problem = f"The arguments are longer than the {max_arguments} characters that max_arguments allows."
        return [CallSettled(item, None, problem)]
    told = [source for source in sources if source and not (isinstance(source, str) and source.isspace())]
    for source in told:
        arguments = parse_arguments(source)
        if arguments is not None:
            item.settled = True
            return [CallSettled(item, arguments)]
    if not last:
        return []
    item.settled = True
    return [
        CallSettled(item, None, "The arguments are not a JSON object.") if told else CallSettled(item, {})
    ]


def told_error(error: object) -> tuple[str, str]:
    """Read a server's error, however it is shaped: its words for the log, its code if it is a plain one."""
    if not isinstance(error, dict):
        return str(error or ""), "server_error"
    code = error.get("code")
    plain = isinstance(code, str) and len(code) <= 64 and code.replace("_", "").isalnum()
    return str(error.get("message") or error), str(code) if plain else "server_error"
