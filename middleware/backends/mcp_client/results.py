"""Where a tool's result may hold the picture.

MCP knows image blocks, but tools also put pictures into resources, structured content, JSON in a text block,
or name a URL or a file. `places` lists all of them, the surest first; whoever reads them takes the first
that holds a picture. So one that is there twice (FastMCP mirrors blocks into structured content) counts
once, and of several different ones the first is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ....events.wire import dumps, loads
from .schema import plain

__all__ = ["Place", "places", "revised_prompt", "said"]

_KEYS = (
    "b64json",
    "base64",
    "imagebase64",
    "b64",
    "imageb64",
    "data",
    "image",
    "imagedata",
    "result",
    "url",
    "imageurl",
    "images",
    "urls",
    "imageurls",
    "output",
)
"""The keys whose text may be a picture, in order, as `plain` writes them."""

_PATH_KEYS = ("path", "filepath", "savedpath", "paths", "filepaths", "savedpaths", "filename", "file")

_DEPTH = 5
_ITEMS = 32
"""How much of a JSON value is looked at."""

_WORDS = 64 << 10
"""Characters of a text in which URLs and paths are looked for; base64 may be as long as it likes."""

_PROMPT = 32_000
"""Characters of a revised prompt; it travels on in each later request."""

_BASE64 = ("iVBORw0KGgo", "/9j/", "_9j_", "UklGR", "R0lGOD")
"""How the base64 of a PNG, JPEG (in either alphabet), WebP and GIF begins."""

_URL = re.compile(r"https?://[^\s\"'<>()\[\]`]+", re.IGNORECASE)
_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/=_-]+")
_WORD = re.compile(r"[^\s\"'<>`]+")
_FILE_END = re.compile(r"(?<=.)\.(?:png|jpe?g|webp|gif)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A place to look at.

    Attributes:
        kind: `base64` (bare or a data URL), `resource` (a URI to ask the server for), `url`, or `path`.
        text: the base64, URI, URL or path itself.
    """

    kind: Literal["base64", "resource", "url", "path"]
    text: str


def places(content: Iterable[Any], structured: Any) -> Iterator[Place]:
    """List where the picture may be.

    Args:
        content: the result's content blocks, as the SDK parses them.
        structured: its structured content.
    """
    blocks = list(content)
    seen = set()
    for place in _all(blocks, structured):
        if place not in seen:
            seen.add(place)
            yield place


def said(content: Iterable[Any], structured: Any) -> str:
    """Join what a result says in words; without any, its structured content as JSON."""
    texts = [block.text.strip() for block in content if block.type == "text"]
    words = "\n".join(text for text in texts if text)
    return words or (dumps(structured).decode() if structured else "")


def revised_prompt(content: Iterable[Any], structured: Any) -> str | None:
    """Find the prompt that was really used, where the result tells it."""
    for value in _values(content, structured):
        if isinstance(value, Mapping):
            prompt = value.get("revised_prompt")
            if isinstance(prompt, str) and prompt.strip():
                return prompt[:_PROMPT]
    return None


def _all(blocks: list[Any], structured: Any) -> Iterator[Place]:
    for block in blocks:
        if block.type == "image":
            yield Place("base64", block.data)
    for block in blocks:
        blob = getattr(block.resource, "blob", None) if block.type == "resource" else None
        if isinstance(blob, str) and _may_be_image(block.resource.mime_type):
            yield Place("base64", blob)
    for block in blocks:
        if block.type == "resource_link" and _may_be_image(block.mime_type):
            yield Place("resource", str(block.uri))
    values = list(_values(blocks, structured))
    for value in values:
        yield from _walk(value, _DEPTH)
    texts = list(_texts(blocks))
    for text in texts:
        yield from _in_text(text)
    for value in values:
        yield from _paths(value, _DEPTH)
    for text in texts:
        yield from (Place("path", name) for name in _files(text[:_WORDS]))


def _may_be_image(mime_type: str | None) -> bool:
    """Tell whether it is worth a look; what it really is, its bytes say."""
    return mime_type is None or mime_type.lower().startswith(("image/", "application/octet-stream"))


def _values(content: Iterable[Any], structured: Any) -> Iterator[Any]:
    """Give the structured content, and each text block that is JSON."""
    if structured is not None:
        yield structured
    for block in content:
        if block.type == "text" and (value := _json(block.text)) is not None:
            yield value


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return loads(text.encode())
    except ValueError:
        return None


def _texts(blocks: Iterable[Any]) -> Iterator[str]:
    """Give each text block that is no JSON."""
    return (block.text for block in blocks if block.type == "text" and _json(block.text) is None)


def _walk(value: Any, depth: int) -> Iterator[Place]:
    """Look through a JSON value: texts under the known keys first, then whatever wraps more."""
    if isinstance(value, str):
        yield from _one(value)
    elif not depth:
        return
    elif isinstance(value, list):
        for inner in value[:_ITEMS]:
            yield from _walk(inner, depth - 1)
    elif isinstance(value, Mapping):
        by_key = {plain(str(key)): inner for key, inner in value.items()}
        for key in _KEYS:
            yield from _walk(by_key.pop(key, None), depth - 1)
        for inner in list(by_key.values())[:_ITEMS]:
            if isinstance(inner, Mapping | list):
                yield from _walk(inner, depth - 1)


def _one(text: str) -> Iterator[Place]:
    text = text.strip()
    if text.startswith(_BASE64) or text[:11].lower() == "data:image/":
        yield Place("base64", text)
    elif _URL.fullmatch(text):
        yield Place("url", text)


def _in_text(text: str) -> Iterator[Place]:
    yield from _one(text)
    yield from (Place("base64", found) for found in _DATA_URL.findall(text))
    yield from (Place("url", found.rstrip(".,;:!?*")) for found in _URL.findall(text[:_WORDS]))


def _files(text: str) -> Iterator[str]:
    """Find what may be a file's name in words. One step for each letter: a word may be a picture's base64."""
    for word in _WORD.findall(text):
        ends = [found.end() for found in _FILE_END.finditer(word)]
        if ends and "://" not in (name := word[: ends[-1]]).removeprefix("file://"):
            yield name


def _paths(value: Any, depth: int) -> Iterator[Place]:
    if not depth:
        return
    if isinstance(value, list):
        for inner in value[:_ITEMS]:
            yield from _paths(inner, depth - 1)
    elif isinstance(value, Mapping):
        by_key = {plain(str(key)): inner for key, inner in value.items()}
        for key in _PATH_KEYS:
            named = by_key.pop(key, None)
            texts = named[:_ITEMS] if isinstance(named, list) else [named]
            yield from (Place("path", text) for text in texts if isinstance(text, str) and text)
        for inner in list(by_key.values())[:_ITEMS]:
            yield from _paths(inner, depth - 1)
