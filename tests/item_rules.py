"""What may happen to one output item between its `added` and its `done`.

The node SDK is the strictest reader of this: it wants every event to name the item's own id, to
fit the item's type, and to write only into a content or summary part that was added before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard

__all__ = ["CLIENT_CALLS", "EVENT_TYPES", "TERMINAL", "check_item", "is_int", "plain_name"]

Json = dict[str, Any]

TERMINAL = ("response.completed", "response.failed", "response.incomplete")

# Event family → the type of the item it belongs to (None: any) and the steps it has. Together with
# the lifecycle these are the types that openai-python 3.57.0 and openai-node 7.59.0 both know,
# except `response.queued`, which has no place in a stream that starts as in_progress.
_FAMILIES: dict[str, tuple[str | None, str]] = {
    "output_item": (None, "added done"),
    "content_part": (None, "added done"),
    "output_text": ("message", "delta done"),
    "output_text.annotation": ("message", "added"),
    "refusal": ("message", "delta done"),
    "function_call_arguments": ("function_call", "delta done"),
    "custom_tool_call_input": ("custom_tool_call", "delta done"),
    "mcp_call_arguments": ("mcp_call", "delta done"),
    "mcp_call": ("mcp_call", "in_progress completed failed"),
    "mcp_list_tools": ("mcp_list_tools", "in_progress completed failed"),
    "shell_call_command": ("shell_call", "added delta done"),
    "shell_call_output_content": ("shell_call_output", "delta done"),
    "reasoning_text": ("reasoning", "delta done"),
    "reasoning_summary_part": ("reasoning", "added done"),
    "reasoning_summary_text": ("reasoning", "delta done"),
    "code_interpreter_call": ("code_interpreter_call", "in_progress interpreting completed"),
    "code_interpreter_call_code": ("code_interpreter_call", "delta done"),
    "file_search_call": ("file_search_call", "in_progress searching completed"),
    "web_search_call": ("web_search_call", "in_progress searching completed"),
    "image_generation_call": ("image_generation_call", "in_progress generating partial_image completed"),
    "compaction": ("compaction", "compacting"),
    "audio": (None, "delta done"),
    "audio.transcript": (None, "delta done"),
}
EVENT_TYPES = {
    *(f"response.{family}.{step}" for family, (_, steps) in _FAMILIES.items() for step in steps.split()),
    *("error", "response.created", "response.in_progress", *TERMINAL),
}

CLIENT_CALLS = {
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "mcp_approval_request",
}

_TEXTS = {  # event family → the part's type, and the field that holds its text in part and event
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning_text", "text"),
    "reasoning_summary_text": ("summary_text", "text"),
}
_STRINGS = {  # event family → the field that holds the whole string in the done event and in the item
    "function_call_arguments": "arguments",
    "custom_tool_call_input": "input",
    "mcp_call_arguments": "arguments",
    "code_interpreter_call_code": "code",
}
_WORKED_ON = {"message", "reasoning", "function_call", "custom_tool_call", "image_generation_call"}
_PARTS = {"message": {"output_text", "refusal"}, "reasoning": {"reasoning_text", "summary_text"}}
_IMAGE = "response.image_generation_call."
_IMAGE_FACTS = {"size", "quality", "background", "output_format"}


def is_int(value: Any) -> TypeGuard[int]:
    """Tell a JSON integer from a boolean, which Python takes for one."""
    return isinstance(value, int) and not isinstance(value, bool)


def plain_name(name: str) -> str:
    """Strip what harmony models stick to a function's name."""
    return name.split("<|", maxsplit=1)[0].strip().removeprefix("functions.")


def _family(event: Json) -> tuple[str, str]:
    family, _, step = event["type"].removeprefix("response.").rpartition(".")
    return family, step


def check_item(events: list[Json], *, native_images: bool = False) -> Iterator[str]:
    """Tell what is wrong with the events of one item, given in their order.

    Pictures that the model server made itself may be announced with more than three fields.
    """
    names = [event["type"] for event in events]
    if names[0] != "response.output_item.added" or names.count("response.output_item.added") != 1:
        yield f"it is not announced once and first: {names[:3]}."
        return
    added = events[0]["item"]
    for event in events[1:]:
        family, _ = _family(event)
        owner = _FAMILIES[family][0]
        if family == "output_item" or family == "shell_call_command":
            continue
        if event.get("item_id") != added.get("id"):
            yield f"{event['type']} names {event.get('item_id')!r} instead of {added.get('id')!r}."
        if owner is not None and owner != added["type"]:
            yield f"{event['type']} is sent about a {added['type']}."
    if names[-1] != "response.output_item.done" or names.count("response.output_item.done") != 1:
        yield f"it is not done once and last: {names[-3:]}."
        return
    done = events[-1]["item"]
    yield from _check_identity(added, done)
    yield from _check_strings(events, added, done)
    if added["type"] in _PARTS:
        yield from _Parts().check(events, added, done)
    if added["type"] == "image_generation_call":
        yield from _check_image(events, added, done, native_images)


def _check_identity(added: Json, done: Json) -> Iterator[str]:
    if not isinstance(added.get("id"), str) or not added["id"]:
        yield f"its id is {added.get('id')!r}."
    for key in ("id", "type", "call_id", "name", "role"):
        if added.get(key) != done.get(key):
            yield f"its {key} changes from {added.get(key)!r} to {done.get(key)!r}."
    if added["type"] in _WORKED_ON and added.get("status", "in_progress") != "in_progress":
        yield f"it is announced with the status {added['status']!r}."
    if done.get("status", "completed") not in {"completed", "incomplete", "failed"}:
        yield f"it is done with the status {done['status']!r}."
    if done["type"] == "function_call" and not all(isinstance(done.get(k), str) for k in ("call_id", "name")):
        yield f"its call_id or name is missing: {sorted(done)}."
    if done["type"] == "message" and (done.get("role") != "assistant" or added.get("content") != []):
        yield "it is a message that does not start as an assistant's with no content."


def _check_strings(events: list[Json], added: Json, done: Json) -> Iterator[str]:
    """Join the deltas of a call's arguments; a call announced with all of them needs no delta."""
    for family, key in _STRINGS.items():
        own = [event for event in events if _family(event)[0] == family]
        deltas = [event["delta"] for event in own if _family(event)[1] == "delta"]
        wholes = [event.get(key) for event in own if _family(event)[1] == "done"]
        if not own and family != f"{done['type']}_arguments":
            continue
        joined = (added.get(key) or "") + "".join(deltas)
        final = done.get(key) or ""
        if (deltas or not wholes) and joined != final:
            yield f"its {key} are {final!r}, but {joined!r} was streamed."
        if wholes and (len(wholes) != 1 or (wholes[0] or "") != final or _family(own[-1])[1] != "done"):
            yield f"{family}.done says {wholes} of {final!r}, or is not the last word."
        if not wholes and done["type"] == "function_call" and done.get("status") != "incomplete":
            yield f"it is complete without {family}.done."


@dataclass
class _Part:
    kind: str
    pieces: list[str] = field(default_factory=list)
    whole: str | None = None
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class _Parts:
    """The content parts and summary parts of one message or reasoning item."""

    def __init__(self) -> None:
        self.content: list[_Part] = []
        self.summary: list[_Part] = []

    def check(self, events: list[Json], added: Json, done: Json) -> Iterator[str]:
        for event in events[1:-1]:
            family, step = _family(event)
            if family in {"content_part", "reasoning_summary_part"}:
                yield from (self._opened if step == "added" else self._closed)(event, added["type"])
            elif family in _TEXTS:
                yield from self._written(event, family, step)
        for part in [*self.content, *self.summary]:
            if not part.closed:
                yield f"a part of {part.text[:40]!r} is never done."
        yield from self._compare(done)

    def _place(self, event: Json) -> tuple[list[_Part], Any]:
        if "summary" in event["type"]:
            return self.summary, event.get("summary_index")
        return self.content, event.get("content_index")

    def _find(self, event: Json) -> _Part | None:
        parts, index = self._place(event)
        return parts[index] if is_int(index) and 0 <= index < len(parts) else None

    def _opened(self, event: Json, owner: str) -> Iterator[str]:
        parts, index = self._place(event)
        part = event["part"]
        if index != len(parts):
            yield f"part {index!r} is added when there are {len(parts)}."
        if part["type"] not in _PARTS[owner] or ("summary" in part["type"]) != (parts is self.summary):
            yield f"a part {part['type']!r} is added to a {owner} by {event['type']}."
        if part.get("refusal" if part["type"] == "refusal" else "text") != "":
            yield f"a part is added with a text in it: {part}."
        parts.append(_Part(part["type"]))

    def _written(self, event: Json, family: str, step: str) -> Iterator[str]:
        part = self._find(event)
        kind, key = _TEXTS[family]
        if part is None or part.kind != kind:
            yield f"{event['type']} writes to a part that was not added as {kind}."
        elif part.closed or part.whole is not None:
            yield f"{event['type']} comes after the end of its part."
        elif step == "delta":
            part.pieces.append(event["delta"])
        else:
            part.whole = event[key]
            if part.whole != part.text:
                yield f"{event['type']} says {part.whole!r}, but {part.text!r} was streamed."

    def _closed(self, event: Json, owner: str) -> Iterator[str]:
        part = self._find(event)
        if part is None or part.closed:
            yield f"{event['type']} closes a part that is not open in this {owner}."
            return
        part.closed = True
        text = event["part"].get("refusal" if part.kind == "refusal" else "text")
        if event["part"]["type"] != part.kind or text != part.text:
            yield f"{event['type']} says {text!r}, but {part.text!r} was streamed."
        if part.whole is None:
            yield f"a part of {part.text[:40]!r} is done before its text is."

    def _compare(self, done: Json) -> Iterator[str]:
        """Compare the item with its stream; reasoning may hold more than was streamed, a message not."""
        for key, parts in (("content", self.content), ("summary", self.summary)):
            final = [
                (p["type"], p.get("refusal" if p["type"] == "refusal" else "text"))
                for p in done.get(key) or []
            ]
            streamed = [(part.kind, part.text) for part in parts]
            if final != streamed and (streamed or done["type"] == "message"):
                yield f"its {key} is {final}, but {streamed} was streamed."
        if done["type"] == "message":
            for part in done.get("content") or []:
                if part["type"] == "output_text" and not isinstance(part.get("annotations"), list):
                    yield "an output_text has no list of annotations."


def _check_image(events: list[Json], added: Json, done: Json, native: bool) -> Iterator[str]:
    """Hold a picture's events against the one order there is, failed or not."""
    if not native and added.keys() != {"id", "type", "status"}:
        yield f"it is announced as {sorted(added)} instead of id, type, status."
    if not str(added.get("id")).startswith("ig_"):
        yield f"its id {added.get('id')!r} does not start with ig_."
    names = [event["type"].removeprefix(_IMAGE) for event in events[1:-1]]
    partials = names.count("partial_image")
    wanted = ["in_progress", "generating", *["partial_image"] * partials]
    if done.get("status") != "failed":
        wanted.append("completed")
    if names != wanted:
        yield f"it goes through {names} instead of {wanted}."
    for event in events[1:-1]:
        keys = {"type", "sequence_number", "output_index", "item_id"}
        if event["type"] == f"{_IMAGE}partial_image":
            keys |= {"partial_image_index", "partial_image_b64"}
        if not keys <= event.keys() <= (keys | _IMAGE_FACTS if "partial_image_b64" in keys else keys):
            yield f"{event['type']} has the keys {sorted(event)}."
