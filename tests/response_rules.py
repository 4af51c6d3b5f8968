"""What a response object must hold, its items and pictures included."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from item_rules import CLIENT_CALLS, is_int, plain_name
from PIL import Image

__all__ = ["Expect", "check_items", "check_object", "check_picture"]

Json = dict[str, Any]

_REQUIRED = {
    *("id", "object", "created_at", "status", "model", "output", "metadata"),
    *("tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"),
}
_IMAGE_FIELDS = ["revised_prompt", "action", "background", "output_format", "quality", "size"]
_IMAGE_SCHEMA = {"id", "type", "status", "result", "error", "svg_usage", *_IMAGE_FIELDS}


@dataclass(frozen=True, slots=True)
class Expect:
    """What the caller knows about the request.

    Attributes:
        tools: the client's own declaration, which each response object must echo unchanged.
        tool_choice: the client's own choice, echoed likewise.
        internal_names: names under which the hosted tool was hidden from the client.
        client_functions: names of functions that the client declared itself.
        json_text: the client asked for JSON text, so that no message is made up behind a picture.
        native_images: the model server made the pictures itself, and left out what it did not know.
    """

    tools: Sequence[Json] | None = None
    tool_choice: Any = None
    internal_names: Collection[str] = ("image_generation",)
    client_functions: Collection[str] = ()
    json_text: bool = False
    native_images: bool = False

    def is_internal(self, name: Any) -> bool:
        if not isinstance(name, str) or name in self.client_functions:
            return False
        return plain_name(name) in self.internal_names

    def most_partials(self) -> int | None:
        if self.tools is None:
            return None
        asked = [tool.get("partial_images") or 0 for tool in self.tools if tool["type"] == "image_generation"]
        return max(asked, default=0)


def check_object(response: Json, expect: Expect) -> Iterator[str]:
    if missing := sorted(_REQUIRED - response.keys()):
        yield f"the response lacks {missing}."
        return
    for key in ("id", "model"):
        if not isinstance(response[key], str) or not response[key]:
            yield f"the response's {key} is {response[key]!r}."
    if response["object"] != "response" or not isinstance(response["created_at"], int | float):
        yield "the response's object or created_at is wrong."
    if (response["status"] == "failed") != isinstance(response.get("error"), dict):
        yield f"a response with the status {response['status']!r} has the error {response.get('error')!r}."
    if (response["status"] == "incomplete") != isinstance(response.get("incomplete_details"), dict):
        yield f"the incomplete_details do not fit the status {response['status']!r}."
    if not isinstance(response["output"], list) or not isinstance(response["tools"], list):
        yield "output or tools is not a list."
        return
    if expect.tools is not None and response["tools"] != list(expect.tools):
        yield f"tools are not the client's own: {response['tools']}."
    if expect.tool_choice is not None and response["tool_choice"] != expect.tool_choice:
        yield f"tool_choice is not the client's own: {response['tool_choice']!r}."
    choice = response["tool_choice"] if isinstance(response["tool_choice"], dict) else {}
    if any(expect.is_internal(tool.get("name")) for tool in [*response["tools"], choice]):
        yield "the internal function shows in tools or tool_choice."
    yield from _check_usage(response.get("usage"))
    yield from _check_output(response, expect)


def _check_usage(usage: Any) -> Iterator[str]:
    if usage is None:
        return
    if not isinstance(usage, dict):
        yield "usage is neither null nor an object."
        return
    counts = [usage.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")]
    for outer, inner in (
        ("input_tokens_details", "cached_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
    ):
        details = usage.get(outer)
        counts.append(details.get(inner) if isinstance(details, dict) else None)
    if not all(is_int(count) for count in counts):
        yield f"usage is not complete: {usage}."


def check_items(items: Sequence[Json], expect: Expect) -> Iterator[str]:
    """Tell what is wrong with finished items."""
    for item in items:
        kind = item.get("type")
        if kind == "function_call_output" or (
            kind == "function_call" and expect.is_internal(item.get("name"))
        ):
            yield f"the internal call leaks as {kind} {item.get('name')!r}."
        if kind == "image_generation_call":
            yield from _check_image_item(item, expect)


def _check_output(response: Json, expect: Expect) -> Iterator[str]:
    items = response["output"]
    yield from check_items(items, expect)
    kinds = [item.get("type") for item in items]
    if response["status"] != "completed" or "image_generation_call" not in kinds or expect.json_text:
        return
    last = len(kinds) - kinds[::-1].index("image_generation_call")
    if "message" not in kinds[last:] and not CLIENT_CALLS.intersection(kinds):
        yield "no message follows the last picture, and no call of the client's stands in the response."


def _check_image_item(item: Json, expect: Expect) -> Iterator[str]:
    if not expect.native_images and (stray := item.keys() - _IMAGE_SCHEMA):
        yield f"the image item has the unpublished keys {sorted(stray)}."
    if item.get("status") == "failed":
        error = item.get("error")
        if item.get("result") != "":
            yield f"a failed image has the result {str(item.get('result'))[:20]!r} instead of ''."
        if not isinstance(error, dict) or {"type", "code", "message", "param"} - error.keys():
            yield f"a failed image has the error {error!r}."
        return
    if item.get("status") != "completed" or item.get("error") is not None:
        yield f"an image ends with the status {item.get('status')!r} and the error {item.get('error')!r}."
    needed = ["output_format"] if expect.native_images else _IMAGE_FIELDS
    if absent := [key for key in needed if not item.get(key)]:
        yield f"the image item does not say its {absent}."
    if not expect.native_images:
        yield from check_picture(item.get("result"), item)


def check_picture(data: Any, facts: Mapping[str, Any]) -> Iterator[str]:
    """Compare what is said of a picture with its own bytes."""
    try:
        raw = base64.b64decode(data, validate=True)
        with Image.open(io.BytesIO(raw)) as picture:
            true_format = (picture.format or "").lower()
            size = f"{picture.width}x{picture.height}"
            alpha = picture.has_transparency_data
    except (TypeError, ValueError, binascii.Error, OSError) as error:
        yield f"{str(data)[:20]!r} is not the bare base64 of a picture: {type(error).__name__}."
        return
    if facts.get("output_format", true_format) != true_format:
        yield f"output_format is {facts['output_format']!r} for a {true_format} file."
    if facts.get("size", size) != size:
        yield f"size is {facts['size']!r} for a picture of {size}."
    if facts.get("background") == "transparent" and not alpha:
        yield "background is transparent for a picture without an alpha channel."
