"""The tools a request offers, wherever they stand: in `tools` and in `additional_tools` input items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .errors import RequestError
from .tools.image_generation import Declaration, ImageGeneration, parse_declaration

__all__ = [
    "change_tools",
    "client_names",
    "find_declaration",
    "free_name",
    "narrow_tools",
    "with_function",
]

Tools = list[Any]


def _tool_lists(body: Mapping[str, Any]) -> Iterator[tuple[str, Tools]]:
    """Yield each list of tools with its path, in the order in which later ones prevail."""
    tools = body.get("tools")
    if isinstance(tools, list):
        yield "tools", tools
    items = body.get("input")
    for position, item in enumerate(items if isinstance(items, list) else ()):
        if _adds_tools(item):
            yield f"input[{position}].tools", item["tools"]


def _adds_tools(item: object) -> bool:
    return (
        isinstance(item, Mapping)
        and item.get("type") == "additional_tools"
        and isinstance(item.get("tools"), list)
    )


def _is_ours(tool: object) -> bool:
    return isinstance(tool, Mapping) and tool.get("type") == ImageGeneration.type


def find_declaration(body: Mapping[str, Any]) -> Declaration | None:
    """Find how the client declared the tool; of several lists of tools the latest prevails.

    Raises:
        RequestError: a declaration is wrong, or one list holds two different ones.
    """
    latest = None
    for path, tools in _tool_lists(body):
        first = None
        for index, tool in enumerate(tools):
            if not _is_ours(tool):
                continue
            where = f"{path}[{index}]"
            declaration = parse_declaration(tool, where)
            if first is not None and declaration != first:
                raise RequestError(
                    f"'{where}' declares the image_generation tool a second time with other settings; "
                    "declare it once.",
                    param=where,
                )
            first = declaration
        latest = first or latest
    return latest


def client_names(body: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
    """Collect the client's own names.

    Returns:
        the names of its functions and custom tools, the members of namespaces among them, and the
        names of its namespaces.
    """
    functions: set[str] = set()
    namespaces: set[str] = set()
    for _, tools in _tool_lists(body):
        for tool in tools:
            if not isinstance(tool, Mapping):
                continue
            is_namespace = tool.get("type") == "namespace"
            members = tool.get("tools") if is_namespace else None
            (namespaces if is_namespace else functions).update(_names([tool]))
            functions.update(_names(members if isinstance(members, list) else []))
    return frozenset(functions), frozenset(namespaces)


def _names(tools: Tools) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
            yield tool["name"]


def free_name(taken: frozenset[str]) -> str:
    """Find a name for our function that is none of the client's: the tool's own, or that with a number."""
    name, count = ImageGeneration.type, 1
    while name in taken:
        count += 1
        name = f"{ImageGeneration.type}_{count}"
    return name


def change_tools(body: Mapping[str, Any], change: Callable[[Tools], Tools]) -> dict[str, Any]:
    """Copy a request with each of its lists of tools changed; an input item left without tools goes."""
    changed = dict(body)
    if isinstance(body.get("tools"), list):
        changed["tools"] = change(body["tools"])
    if isinstance(body.get("input"), list):
        changed["input"] = items = []
        for item in body["input"]:
            if not _adds_tools(item):
                items.append(item)
            elif (tools := change(item["tools"])) or not item["tools"]:
                items.append({**item, "tools": tools})
    return changed


def with_function(body: Mapping[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    """Put the function where the declarations stand, once in each list; all else keeps its place.

    An earlier list gets the same function: a server that joins the lists then finds nothing to argue
    about, and one that reads only `tools` finds it there.
    """

    def change(tools: Tools) -> Tools:
        first = next((tool for tool in tools if _is_ours(tool)), None)
        return [function if tool is first else tool for tool in tools if tool is first or not _is_ours(tool)]

    return change_tools(body, change)


def narrow_tools(body: Mapping[str, Any], entries: Tools, name: str) -> dict[str, Any]:
    """Copy a lowered request with only the tools that an `allowed_tools` choice names.

    Args:
        body: the request, our function in place.
        entries: the choice's own `tools`.
        name: our function's name.
    """
    allowed = [
        {"type": "function", "name": name} if _is_ours(entry) else entry
        for entry in entries
        if isinstance(entry, Mapping)
    ]

    def change(tools: Tools) -> Tools:
        return [kept for tool in tools if (kept := _narrowed(tool, allowed)) is not None]

    return change_tools(body, change)


def _narrowed(tool: Any, allowed: list[Mapping[str, Any]]) -> Any:
    if not isinstance(tool, Mapping):
        return None
    if any(_allows(entry, tool) for entry in allowed):
        return tool
    if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
        in_reach = [entry for entry in allowed if entry.get("namespace") in (None, tool.get("name"))]
        members = [member for member in tool["tools"] if _narrowed(member, in_reach) is not None]
        return {**tool, "tools": members} if members else None
    return None


def _allows(entry: Mapping[str, Any], tool: Mapping[str, Any]) -> bool:
    """Tell whether an entry names the tool: the same type, and no key that says otherwise."""
    if entry.get("type") != tool.get("type"):
        return False
    told = ("name", "server_label")
    return all(None in (entry.get(key), tool.get(key)) or entry[key] == tool[key] for key in told)
