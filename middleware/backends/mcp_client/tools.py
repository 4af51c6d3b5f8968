"""Which of an MCP server's tools makes pictures, and which one changes them.

The server's own name for it does not matter to anybody else: the model knows one function, ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..base import ImageError
from .pictures import takes_pictures
from .schema import Argument, ImageTool, plain

__all__ = ["choose_edit_tool", "choose_tool"]

_GENERATE = ("generate_image", "create_image", "text_to_image", "txt2img", "image_generation")
_EDIT = ("edit_image", "image_edit", "image_to_image", "img2img")

_SHOWN = 12
"""How many tools an error lists."""


def choose_tool(tools: Sequence[ImageTool], configured: str | None) -> ImageTool:
    """Choose the tool that makes a new picture.

    Args:
        tools: what the server has.
        configured: the name that somebody chose. Without one: the first of the usual names in whatever
            spelling, else the only tool with an argument `prompt`.

    Raises:
        ImageError: there is none, or several that could be meant (`mcp_no_tool`).
    """
    if configured is not None:
        return _named(tools, configured)
    if usual := _usual(tools, _GENERATE):
        return usual
    edits = {plain(name) for name in _EDIT}
    prompted = [tool for tool in tools if _has_prompt(tool.arguments) and plain(tool.name) not in edits]
    if len(prompted) == 1:
        return prompted[0]
    problem = "several tools that take a prompt" if prompted else "no tool that is known to make pictures"
    raise _error(f"The MCP server has {problem}: name one with backend_tool.", tools)


def choose_edit_tool(tools: Sequence[ImageTool], configured: str | None, fallback: str | None) -> ImageTool:
    """Choose the tool that changes pictures.

    Args:
        tools: what the server has.
        configured: the name that somebody chose for edits. Without one: the first of the usual names that
            takes a picture, else the tool that makes new ones, if it takes a picture as well.
        fallback: the name that somebody chose for new pictures.

    Raises:
        ImageError: this server cannot edit (`edit_not_supported`), or lacks the configured tool.
    """
    if configured is not None:
        return _named(tools, configured)
    able = [tool for tool in tools if takes_pictures(tool.arguments)]
    if usual := _usual(able, _EDIT):
        return usual
    tool = choose_tool(tools, fallback)
    if tool in able:
        return tool
    raise ImageError(
        "This MCP server cannot edit pictures: none of its image tools takes one as base64 or as a URL.",
        code="edit_not_supported",
    )


def _named(tools: Iterable[ImageTool], name: str) -> ImageTool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise _error(f"The MCP server has no tool {name[:60]!r}.", tools)


def _usual(tools: Iterable[ImageTool], names: Sequence[str]) -> ImageTool | None:
    by_name: dict[str, ImageTool] = {}
    for tool in tools:
        by_name.setdefault(plain(tool.name), tool)
    return next((by_name[plain(name)] for name in names if plain(name) in by_name), None)


def _has_prompt(arguments: Iterable[Argument]) -> bool:
    return any(plain(one.name) == "prompt" or _has_prompt(one.fields) for one in arguments)


def _error(problem: str, tools: Iterable[ImageTool]) -> ImageError:
    names = [tool.name[:40] for tool in tools]
    shown = ", ".join(names[:_SHOWN]) or "none at all"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ImageError(f"{problem} Its tools: {shown}{more}.", code="mcp_no_tool")
