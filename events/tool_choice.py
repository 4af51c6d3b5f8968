"""What becomes of `tool_choice`: an object that names a tool is honoured by almost no model server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .errors import RequestError
from .tools.image_generation import ImageGeneration
from .toolset import narrow_tools

__all__ = ["ForcedChoice", "check_choice", "lower_choice"]

ForcedChoice = Literal["required", "function", "auto"]


def check_choice(choice: object) -> None:
    """Refuse a choice of our tool in a request that does not declare it.

    Raises:
        RequestError: in OpenAI's own words.
    """
    if _is_ours(choice) or any(_is_ours(entry) for entry in _allowed(choice) or ()):
        raise RequestError(
            f"Tool choice '{ImageGeneration.type}' not found in 'tools' parameter.", param="tool_choice"
        )


def lower_choice(
    body: Mapping[str, Any], name: str, forced: ForcedChoice
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Turn the choice into what model servers honour.

    Args:
        body: the request, our function in place.
        name: our function's name.
        forced: how to force it, see `LoweringOptions`.

    Returns:
        the first turn's request, and the one of all later turns. There a forced choice is "auto",
        else the model could never answer; the filter of `allowed_tools` stays.
    """
    choice = body.get("tool_choice")
    if _is_ours(choice):
        return _force(body, name, forced), {**body, "tool_choice": "auto"}
    if isinstance(choice, Mapping) and (allowed := _allowed(choice)) is not None:
        narrowed = narrow_tools(body, allowed, name)
        return {**narrowed, "tool_choice": choice["mode"]}, {**narrowed, "tool_choice": "auto"}
    if choice == "required" or isinstance(choice, Mapping):
        return {**body}, {**body, "tool_choice": "auto"}
    return {**body}, {**body}


def _is_ours(entry: object) -> bool:
    return isinstance(entry, Mapping) and entry.get("type") == ImageGeneration.type


def _allowed(choice: object) -> list[Any] | None:
    """Return the entries of a well-formed `allowed_tools`; any other is for the model server to judge."""
    if not isinstance(choice, Mapping) or choice.get("type") != "allowed_tools":
        return None
    entries = choice.get("tools")
    return entries if isinstance(entries, list) and choice.get("mode") in ("auto", "required") else None


def _force(body: Mapping[str, Any], name: str, forced: ForcedChoice) -> dict[str, Any]:
    if forced == "required":
        only = narrow_tools(body, [{"type": "function", "name": name}], name)
        return {**only, "tool_choice": "required"}
    if forced == "function":
        return {**body, "tool_choice": {"type": "function", "name": name}}
    order = f"You must answer the latest message by calling the function {name}."
    given = body.get("instructions")
    orders = f"{given}\n\n{order}" if isinstance(given, str) and given else order
    return {**body, "tool_choice": "auto", "instructions": orders}
