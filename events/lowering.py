"""A client's request → what a model server understands: functions, plain choices, plain history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .errors import RequestError
from .history import image_ids, lower_history
from .known import Known
from .reach import pictures_in_reach
from .tool_choice import ForcedChoice, check_choice, lower_choice
from .tools.image_generation import Declaration, ImageGeneration
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
        workspace: whether the model may name files of a workspace to edit.
        fetch: whether pictures behind http and https URLs can be edited.
        background: whether a store is set, without which nobody could ask for a response later.
    """

    forced_choice: ForcedChoice = "required"
    models: tuple[str, ...] = ("*",)
    backend: bool = True
    workspace: bool = False
    fetch: bool = False
    background: bool = False


@dataclass(frozen=True, slots=True)
class LoweredRequest:
    """A request for the model server, and what must be remembered to answer the client.

    Attributes:
        body: the first turn's request.
        stream: whether the answer is told as events: the client asked for a stream, or the response
            is made in the background, where the events are for the log.
        tool: the tool as the client declared it, and the pictures it can edit; None when only the
            history had to be lowered, and the response needs no translation. Where no tool is declared
            but `previous_response_id` had to be replaced, or the state it goes on from still waits for
            something, it is one that is never offered: the response must be translated all the same, since
            it shows the client's id and can be continued, and by it nothing is owed any more.
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
        keep: whether the response and its pictures may be stored.
        background: whether the client wants to ask for the response later. The model server is not
            told: each turn is an ordinary stream.
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
    keep: bool = True
    background: bool = False

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


def lower_request(body: Mapping[str, Any], known: Known, options: LoweringOptions) -> LoweredRequest | None:
    """Lower a request to `/v1/responses`. The body and all in it stay as they are.

    Args:
        body: the client's request. What is wrong in it and not ours to judge travels on.
        known: what is known of that to which it refers.
        options: how to talk to the model server.

    Returns:
        None when there is nothing to do: the original bytes can travel on.

    Raises:
        RequestError: the client must mend its request.
    """
    model = body.get("model")
    if not any(fnmatchcase(model if isinstance(model, str) else "", glob) for glob in options.models):
        return None
    declaration = find_declaration(body)
    if declaration is None:
        check_choice(body.get("tool_choice"))
    functions, namespaces = client_names(body)
    name = free_name(functions | namespaces)
    tool = _tool(body, declaration, known, options)
    background = tool is not None and _in_background(body, options)
    stream = background or body.get("stream") is True
    offering = with_function(body, tool.function(name)) if tool and declaration else body
    lowered = {**offering, **_past(offering, known, name), "stream": stream}
    if background:
        del lowered["background"]
    if tool is None and lowered.get("input") == body.get("input"):
        return None
    first, later = lower_choice(lowered, name, options.forced_choice) if declaration else (lowered, lowered)
    offered = declaration is not None and body.get("tool_choice") != "none"
    return LoweredRequest(
        body=first,
        stream=stream,
        tool=tool,
        name=name if declaration and options.backend else None,
        offered=offered and name in client_names(first)[0],
        declared=functions,
        echo=_echo(body, first, declared=declaration is not None, background=background),
        max_tool_calls=_count(body.get("max_tool_calls")),
        json_text=_wants_json(body.get("text")),
        defaults={key: body[key] for key in _TOLD_BACK if body.get(key) is not None},
        later=later,
        keep=body.get("store") is not False,
        background=background,
    )


def _tool(
    body: Mapping[str, Any], declaration: Declaration | None, known: Known, options: LoweringOptions
) -> ImageGeneration | None:
    if declaration is None and known.previous is None and not known.owed:
        return None
    reach = pictures_in_reach(body.get("input"), known, fetch=options.fetch)
    return ImageGeneration(declaration or Declaration(), reach, options.workspace)


def _in_background(body: Mapping[str, Any], options: LoweringOptions) -> bool:
    if body.get("background") is not True:
        return False
    if not options.background:
        raise RequestError(
            "The image_generation tool cannot run in the background, since no store is set here; leave out "
            "'background', or set a store.",
            param="background",
        )
    if body.get("store") is False:
        raise RequestError(
            "A response in the background must be stored; leave out 'store' or 'background'.", param="store"
        )
    return True


def _past(body: Mapping[str, Any], known: Known, name: str) -> dict[str, Any]:
    """Return the fields that speak of the past, in the model server's own terms."""
    fields: dict[str, Any] = {}
    if known.previous is not None:
        fields["previous_response_id"] = known.previous
    items = body.get("input")
    if isinstance(items, list):
        fields["input"] = lower_history(items, name=name, known=known)
    if known.owed:
        fields["input"] = [*known.owed, *_input_items(fields.get("input", items))]
    return fields


def _input_items(given: object) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def _echo(
    body: Mapping[str, Any], lowered: Mapping[str, Any], *, declared: bool, background: bool
) -> dict[str, Any]:
    echo: dict[str, Any] = {"background": True} if background else {}
    if not declared:
        return {**echo, "previous_response_id": body.get("previous_response_id")}
    tools = body.get("tools")
    choice = body.get("tool_choice")
    # Tools of `additional_tools` items belong to the input: a response does not show them in `tools`.
    echo |= {
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
