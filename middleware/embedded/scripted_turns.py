"""What the scripted model does in one turn: word rules where a language model would think."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...events.wire import dumps, loads

__all__ = ["Call", "Say", "Step", "Think", "plan_turn"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Think:
    """A reasoning item with a summary."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function call."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """A message."""

    text: str


Step = Think | Call | Say

_NOUN = r"(?:pictures?|images?|photos?|drawings?|paintings?|illustrations?|portraits?)"
_VERB = r"(?:draw|paint|sketch|illustrate)"
_SUBJECT = (
    re.compile(rf"\b{_NOUN}\s*(?:of|:|showing)\s*(.+)", re.IGNORECASE),
    re.compile(rf"\b{_VERB}\b(?:\s+(?:me|us))?:?\s+(.+)", re.IGNORECASE),
)
_WANTED = re.compile(
    rf"\b{_VERB}\b|\b{_NOUN}\s*(?:of|:)|\b(?:make|create|generate|want|need)\b.*\b{_NOUN}\b", re.IGNORECASE
)
_NEXT_CLAUSE = re.compile(r"[.!?\n]|,?\s+(?:and|then|also)\s+(?:tell|say|what|how|give|look)\b|,?\s+please\b")
_PAIR = re.compile(r"((?:an?|the|one)\s[^,]+?)\s+and\s+((?:an?|the|one|another)\s[^,]+)", re.IGNORECASE)
_SCENE = re.compile(r"\b(?:with|in|on|under|near|by|at|of)\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"\b(?:make|turn|colou?r)\s+(?:it|this|that|them|the)\b|\bpaint\s+(?:it|this|that|them)\b|\badd\b",
    re.IGNORECASE,
)
_SELECTOR = "num_last_images_to_include"
"""The argument that makes a call one that changes a picture; offered where one is there."""
_SEVERAL = re.compile(rf"\b(?:two|2)\s+(?:\w+\s+)?{_NOUN}\b", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:in|for|at)\s+([A-Z][\w'-]*(?:\s[A-Z][\w'-]*)*)")

_EVERYDAY_WORDS = {"get", "set", "find", "make", "create", "the", "a", "of", "for", "image", "generation"}
"""Parts of function names that say nothing of what the function is about."""

_SMALL_TALK = "I am a script, not a language model. Ask me to draw something, such as “Draw a red cat”."


def plan_turn(body: Json) -> list[Step]:
    """Decide on a turn: think and call, or speak.

    Args:
        body: a request that was checked, `input` a list.
    """
    conversation = _read(body["input"])
    functions, must_call = _offered(body)
    calls = _unmade(_wanted(conversation, functions), conversation)
    if must_call and not calls:
        calls = [_any_call(conversation, functions)]
    if body.get("parallel_tool_calls") is False:
        calls = calls[:1]
    if calls:
        names = " and ".join(dict.fromkeys(call.name for call in calls))
        return [Think(f"The user wants something that {names} can do."), *calls]
    return [Say(_report(conversation) or _small_talk(body))]


@dataclass(slots=True)
class _Conversation:
    """What matters of the history.

    Attributes:
        asked: the latest user message.
        painted: the latest prompt before that message.
        calls: calls made since then, by call id.
        outputs: what came of them.
    """

    asked: str = ""
    painted: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


def _read(items: list[Json]) -> _Conversation:
    conversation = _Conversation()
    for item in items:
        if item.get("role") == "user":
            asked = _plain(item["content"])
            made = [call.arguments for call in conversation.calls.values() if _paints(call)]
            painted = [arguments["prompt"] for arguments in made if _SELECTOR not in arguments]
            conversation = _Conversation(asked, painted[-1] if painted else conversation.painted)
        elif item.get("type") == "function_call":
            conversation.calls[item["call_id"]] = Call(item["name"], loads(item["arguments"]))
        elif item.get("type") == "function_call_output":
            conversation.outputs[item["call_id"]] = item["output"]
    return conversation


def _plain(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def _paints(call: Call) -> bool:
    return isinstance(call.arguments.get("prompt"), str)


def _offered(body: Json) -> tuple[dict[str, Json], bool]:
    """Return the functions that may be called, with their schemas, and whether one must be."""
    functions = {tool["name"]: tool.get("parameters") or {} for tool in body.get("tools") or []}
    choice = body.get("tool_choice") or "auto"
    if isinstance(choice, str):
        return ({} if choice == "none" else functions), choice == "required"
    named = [tool["name"] for tool in choice.get("tools", [choice])]
    forced = choice.get("mode", "required") == "required"
    return {name: functions[name] for name in named}, forced and bool(named)


def _wanted(conversation: _Conversation, functions: Mapping[str, Json]) -> list[Call]:
    """Read off the user's words what is to be called."""
    asked = conversation.asked
    painter = next((name for name, schema in functions.items() if "prompt" in _properties(schema)), None)
    calls: list[Call] = []
    change = _CHANGE.search(asked)
    if painter and change and _SELECTOR in _properties(functions[painter]):
        calls = [Call(painter, {"prompt": _clause(asked[change.start() :]), _SELECTOR: 1})]
    elif painter and _WANTED.search(asked):
        calls = [Call(painter, {"prompt": prompt}) for prompt in _prompts(asked, conversation.painted)]
    words = set(re.findall(r"[a-z]+", asked.lower()))
    for name, schema in functions.items():
        topics = set(re.split(r"[^a-z]+", name.lower())) - _EVERYDAY_WORDS
        if name != painter and topics & words:
            calls.append(Call(name, _made_up(schema, asked)))
    return calls


def _unmade(wanted: list[Call], conversation: _Conversation) -> list[Call]:
    """Leave out as many calls of each function as were made since the user spoke."""
    made = [call.name for call in conversation.calls.values()]
    rest = []
    for call in wanted:
        if call.name in made:
            made.remove(call.name)
        else:
            rest.append(call)
    return rest


def _any_call(conversation: _Conversation, functions: Mapping[str, Json]) -> Call:
    name, schema = next(iter(functions.items()))
    return Call(name, _made_up(schema, conversation.asked))


def _prompts(asked: str, painted: str) -> list[str]:
    found = next((match for pattern in _SUBJECT if (match := pattern.search(asked))), None)
    subject = _clause(found[1] if found else asked) or asked
    if painted and subject.lower().split()[-1] == "one":
        subject = f"{subject[:-3]}{painted.rsplit(maxsplit=1)[-1]}"
    pair = _PAIR.fullmatch(subject)
    if pair and not _SCENE.search(pair[1]):
        return [pair[1], pair[2]]
    if _SEVERAL.search(asked):
        return [f"{subject} by day", f"{subject} by night"]
    return [subject]


def _clause(text: str) -> str:
    """Return the first clause of a text."""
    return _NEXT_CLAUSE.split(text, maxsplit=1)[0].strip(" ,;:\"'")


def _properties(schema: Json) -> Json:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _made_up(schema: Json, text: str, *, everything: bool = False) -> Json:
    """Fill the required properties of a schema, or all of them, with something that fits."""
    properties = _properties(schema)
    keys = properties if everything else [key for key in schema.get("required", []) if key in properties]
    return {key: _value(properties[key], text, everything=everything) for key in keys}


def _value(schema: Json, text: str, *, everything: bool) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    place = _PLACE.search(text)
    made: dict[str, Any] = {
        "integer": 1,
        "number": 1,
        "boolean": True,
        "array": [],
        "object": _made_up(schema, text, everything=everything),
    }
    kind = schema.get("type")
    return made.get(kind if isinstance(kind, str) else "", place[1] if place else text)


def _report(conversation: _Conversation) -> str:
    """Tell what came of the calls since the user spoke; nothing when there were none."""
    sentences = []
    painted = []
    for call_id, call in conversation.calls.items():
        output = conversation.outputs[call_id]
        if not _paints(call):
            sentences.append(f"{call.name} says: {output[:200]}")
        elif problem := _problem(output):
            sentences.append(f"Sorry, there is no picture of “{call.arguments['prompt']}”: {problem}")
        elif _SELECTOR in call.arguments:
            sentences.append(f"Done: {call.arguments['prompt']}.")
        else:
            painted.append(call.arguments["prompt"])
    if painted:
        sentences.insert(0, f"Here {'it is' if len(painted) == 1 else 'they are'}: {' and '.join(painted)}.")
    return " ".join(sentences)


def _problem(output: str) -> str:
    """Read a picture's output: why it failed, or nothing."""
    try:
        told = loads(output)
    except ValueError:
        return ""
    if not isinstance(told, dict) or told.get("status") in (None, "completed"):
        return ""
    error = told.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else "it could not be made."


def _small_talk(body: Json) -> str:
    """Answer in the form that `text.format` asks for."""
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_schema":
        return dumps(_made_up(wanted.get("schema") or {}, "something", everything=True)).decode()
    if wanted.get("type") == "json_object":
        return dumps({"answer": _SMALL_TALK}).decode()
    return _SMALL_TALK
