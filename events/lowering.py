"""A client's request → what a model server understands: functions, plain choices, plain history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .errors import RequestError
from .history import StoredImage, image_ids, lower_history
from .tool_choice import ForcedChoice, check_choice, lower_choice
from .tools.image_generation import ImageGeneration
from .toolset import client_names, find_declaration, free_name, with_function

__all__ = ["LoweredRequest", "LoweringOptions", "lower_request", "references"]

_TOLD_BACK = (
    "model",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "metadata",
    "max_output_tokens",
    "max_tool_calls",
    "reasoning",
    "text",
    "truncation",
    "store",
    "service_tier",
    "top_logprobs",
    "prompt_cache_key",
    "safety_identifier",
    "user",
)
"""The fields of a request that its response shows again."""


@dataclass(frozen=True, slots=True)
class LoweringOptions:
    """How to talk to the model server.

    Attributes:
        forced_choice: what a forced choice of our tool becomes: `required` offers nothing but our
            function and says "required"; `function` names it in an object; `auto` asks for it in
            the instructions, for servers that refuse any force.
        models: globs of the models to act for; others are left alone entirely.
        backend: whether pictures can be made here. The tool is lowered either way: without a
            backend the model's call reaches the client as an ordinary function call.
    """

    forced_choice: ForcedChoice = "required"
    models: tuple[str, ...] = ("*",)
    backend: bool = True


@dataclass(frozen=True, slots=True)
class LoweredRequest:
    """A request for the model server, and what must be remembered to answer the client.

    Attributes:
        body: the first turn's request.
        stream: whether the client asked for a stream.
        tool: the tool as the client declared it; None when only the history had to be lowered, and
            the response needs no translation.
        name: the function name whose calls are run here; None without a tool, and without a
            backend: then the calls are the client's.
        offered: whether the model may call it; not where the client's choice is "none" or allows
            only other tools. A call that comes all the same is neither run nor shown.
        declared: the names of the client's own functions and custom tools.
        echo: fields that every response object must show as the client wrote them: `tools`,
            `tool_choice`, and `previous_response_id`, `instructions` where the request has them.
        max_tool_calls: how many pictures may be made, None for as many as the limits allow.
        json_text: whether the client wants the model's text to be JSON.
        defaults: the request's own values for a response object that must be made up.
        later: the body of later turns, the client's input in it, the turns' items not yet.
    """

    body: dict[str, Any]
    stream: bool
    tool: ImageGeneration | None
    name: str | None
    offered: bool
    declared: frozenset[str]
    echo: dict[str, Any]
    max_tool_calls: int | None
    json_text: bool
    defaults: dict[str, Any]
    later: dict[str, Any]

    def next_turn(
        self,
        history: list[dict[str, Any]],
        outputs: list[dict[str, Any]],
        *,
        last: bool = False,
        without: frozenset[str] = frozenset(),
    ) -> dict[str, Any]:
        """Make the body of a later turn, from the client's request and never from the last turn's.

        Args:
            history: the items of all turns so far and the outputs given to them, in order, but for
                the last turn's outputs.
            outputs: the outputs of the last turn's calls.
            last: let the model call nothing any more.
            without: item types to leave out of `history`, where a server refused them.
        """
        body = {**self.later}
        if last:
            body["tool_choice"] = "none"
        if body.get("conversation") is not None:
            # The server stores each turn of a conversation itself; to repeat them would double them.
            return {**body, "input": [*outputs]}
        kept = [item for item in history if item.get("type") not in without]
        return {**body, "input": [*_input_items(body.get("input")), *kept, *outputs]}


def references(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the items of a request that may have to be looked up, each once, in order."""
    items = body.get("input")
    return tuple(dict.fromkeys(image_ids(items))) if isinstance(items, list) else ()


def lower_request(
    body: Mapping[str, Any], found: Mapping[str, StoredImage], options: LoweringOptions
) -> LoweredRequest | None:
    """Lower a request to `/v1/responses`. The body and all in it stay as they are.

    Args:
        body: the client's request. What is wrong in it and not ours to judge travels on.
        found: the pictures it refers to, by item id, as far as they are known.
        options: how to talk to the model server.

    Returns:
        None when there is nothing to do: the original bytes can travel on.

    Raises:
        RequestError: the client must mend its request.
    """
    model = body.get("model")
    if not any(fnmatchcase(model if isinstance(model, str) else "", glob) for glob in options.models):
        return None
    tool = _declared_tool(body)
    functions, namespaces = client_names(body)
    name = free_name(functions | namespaces)
    stream = body.get("stream") is True
    lowered = {**(with_function(body, tool.function(name)) if tool else body), "stream": stream}
    items = body.get("input")
    if isinstance(items, list):
        lowered["input"] = lower_history(lowered["input"], name=name, found=found)
    if tool is None and lowered.get("input") == items:
        return None
    first, later = lower_choice(lowered, name, options.forced_choice) if tool else (lowered, lowered)
    return LoweredRequest(
        body=first,
        stream=stream,
        tool=tool,
        name=name if tool and options.backend else None,
        offered=tool is not None and body.get("tool_choice") != "none" and name in client_names(first)[0],
        declared=functions,
        echo=_echo(body, first),
        max_tool_calls=_count(body.get("max_tool_calls")),
        json_text=_wants_json(body.get("text")),
        defaults={key: body[key] for key in _TOLD_BACK if body.get(key) is not None},
        later=later,
    )


def _declared_tool(body: Mapping[str, Any]) -> ImageGeneration | None:
    declaration = find_declaration(body)
    if declaration is None:
        check_choice(body.get("tool_choice"))
        return None
    if body.get("background") is True:
        raise RequestError(
            "The image_generation tool cannot run in the background; leave out 'background'.",
            param="background",
        )
    return ImageGeneration(declaration)


def _input_items(given: object) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def _echo(body: Mapping[str, Any], lowered: Mapping[str, Any]) -> dict[str, Any]:
    tools = body.get("tools")
    choice = body.get("tool_choice")
    # Tools of `additional_tools` items belong to the input: a response does not show them in `tools`.
    echo: dict[str, Any] = {
        "tools": tools if isinstance(tools, list) else [],
        "tool_choice": "auto" if choice is None else choice,
    }
    for key in ("previous_response_id", "instructions"):
        if key in lowered:
            echo[key] = body.get(key)
    return echo


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _wants_json(text: object) -> bool:
    wanted = text.get("format") if isinstance(text, Mapping) else None
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_schema", "json_object")
