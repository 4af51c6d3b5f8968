"""A tool's arguments, filled from a request by what they are called.

Only arguments that the tool's input schema has are filled, only with values that it allows, and options
only when somebody asked for them. Seeds and negative prompts are nobody's wish and stay the server's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import ImageError, ImageRequest
from .pictures import fill_pictures
from .schema import Argument, ImageTool, plain
from .sizes import fill_size

__all__ = ["fill_arguments"]

_PROMPTS = ("prompt", "text", "description")
_COUNTS = ("n", "numimages", "count")
_OPTIONS = {
    "quality": ("quality",),
    "background": ("background",),
    "output_format": ("outputformat", "format"),
}
_NEUTRAL = {
    "quality": ("auto", "medium", "standard"),
    "background": ("auto", "opaque"),
    "output_format": ("png",),
}
"""What is said for an option that the tool requires and nobody asked for, unless its enum forbids it."""

_SPELLINGS = {"jpeg": "jpg", "jpg": "jpeg"}


def fill_arguments(tool: ImageTool, request: ImageRequest, *, model: str | None = None) -> dict[str, Any]:
    """Fill a tool's arguments; `model` is the configured one, never the declaration's.

    A tool whose arguments all stand in one object gets that object.

    Raises:
        ImageError: the tool has no argument for the prompt or the pictures, or requires one that is
            unknown here (`mcp_arguments`).
    """
    arguments = tool.arguments
    if _prompt(arguments) is None:
        nested = [one for one in arguments if _prompt(one.fields) is not None]
        if len(nested) != 1:
            words = ", ".join(_PROMPTS)
            raise _error(tool, f"has no argument for the prompt ({words})")
        inner = ImageTool(tool.name, nested[0].fields)
        return _with_rest(tool, {nested[0].name: fill_arguments(inner, request, model=model)})
    return _with_rest(tool, _known(arguments, request, model))


def _prompt(arguments: Sequence[Argument]) -> Argument | None:
    texts = {plain(argument.name): argument for argument in arguments if argument.takes("string")}
    return next((texts[name] for name in _PROMPTS if name in texts), None)


def _known(arguments: Sequence[Argument], request: ImageRequest, model: str | None) -> dict[str, Any]:
    """Fill the arguments that have a meaning here."""
    known: dict[str, Argument] = {}
    for argument in arguments:
        known.setdefault(plain(argument.name), argument)
    prompt = _prompt(arguments)
    assert prompt is not None
    filled: dict[str, Any] = {prompt.name: request.prompt}
    filled |= fill_size(known, request.size)
    for option, names in _OPTIONS.items():
        filled |= _option(option, [known[name] for name in names if name in known], request)
    filled |= _count(known)
    if model is not None and "model" in known:
        filled[known["model"].name] = model
    if request.images:
        filled |= fill_pictures(arguments, request.images, request.mask)
    return filled


def _option(option: str, arguments: Sequence[Argument], request: ImageRequest) -> dict[str, Any]:
    if not arguments:
        return {}
    argument = arguments[0]
    asked = getattr(request, option)
    if asked is not None and (value := _allowed(argument, asked)) is not None:
        return {argument.name: value}
    if not argument.needed:
        return {}
    neutral = (_allowed(argument, word) for word in _NEUTRAL[option])
    value = next((word for word in neutral if word is not None), None)
    if value is None and argument.enum:
        value = argument.enum[0]
    return {} if value is None else {argument.name: value}


def _allowed(argument: Argument, word: str) -> Any:
    """Say a word as the argument spells it; None if it may not be said."""
    if not argument.enum:
        return word if argument.takes("string") else None
    spellings = {word.lower(), _SPELLINGS.get(word.lower(), word.lower())}
    fitting = [value for value in argument.enum if isinstance(value, str) and value.lower() in spellings]
    return word if word in fitting else next(iter(fitting), None)


def _count(known: Mapping[str, Argument]) -> dict[str, Any]:
    """Ask for one picture, where the tool would make more or insists on being told."""
    for name in _COUNTS:
        argument = known.get(name)
        if argument is None:
            continue
        one = 1 if argument.takes("integer") else "1"
        makes_more = argument.has_default and argument.default not in (one, None)
        if (argument.required or makes_more) and (not argument.enum or one in argument.enum):
            return {argument.name: one}
    return {}


def _with_rest(tool: ImageTool, filled: dict[str, Any]) -> dict[str, Any]:
    """Add what the schema itself decides of the required arguments that are left."""
    missing = []
    for argument in tool.arguments:
        if not argument.required or argument.name in filled:
            continue
        if argument.has_default:
            filled[argument.name] = argument.default
        elif len(argument.enum) == 1:
            filled[argument.name] = argument.enum[0]
        else:
            missing.append(argument.name[:40])
    if not missing:
        return filled
    if missing == ["model"]:
        raise _error(tool, "requires a model: name one with backend_model")
    raise _error(tool, f"also requires {', '.join(missing[:6])}")


def _error(tool: ImageTool, problem: str) -> ImageError:
    message = f"The MCP tool {tool.name[:40]!r} {problem}. A template, backend_arguments, can fill it."
    return ImageError(message, code="mcp_arguments")
