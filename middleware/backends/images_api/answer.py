"""Where the picture is in an answer of an Images API: base64, a URL, or the bytes themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ....events.wire import loads
from ...image_headers import MalformedError, read_header
from .errors import AnswerError, ErrorReader, is_html

__all__ = ["Found", "find_picture", "read_answer"]

_PROMPT = 32_000
"""Characters of a revised prompt; it travels on in each later request."""

_COUNTS = 16
_MOST = 2**53
"""How many counts a usage has at each level, and how high they go: each client can read that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A picture in one of three shapes, and what the server says of it.

    Attributes:
        base64: as it stands there, perhaps with a `data:` prefix.
        url: absolute or relative.
        data: the encoded file.
        facts: `revised_prompt`, `quality` and `usage`, each only if it is there and makes sense.
    """

    base64: str = ""
    url: str = ""
    data: bytes = b""
    facts: Mapping[str, Any] = field(default_factory=dict)


def read_answer(body: bytes, content_type: str, errors: ErrorReader) -> Found:
    """Find the picture in a whole answer that is no event stream.

    Args:
        body: JSON, or a picture's bytes.
        content_type: without parameters; a body that is a picture needs none.
        errors: reads what the server says instead.

    Raises:
        AnswerError: there is none.
    """
    if content_type.startswith("image/") or _is_picture(body):
        return Found(data=body)
    if is_html(body):
        raise AnswerError(
            "The image server answered with an HTML page instead of a picture; its URL must be the Images "
            "API's base, such as http://host:8000/v1.",
            status=200,
            code="not_an_image",
        )
    try:
        payload = loads(body)
    except ValueError:
        message = "The image server's answer is neither JSON nor a picture."
        raise AnswerError(message, status=200, code="not_an_image") from None
    found = find_picture(payload)
    if found is None:
        raise errors.answered(payload)
    return found


def find_picture(payload: object) -> Found | None:
    """Find the first picture in `data[]`, in `images[]`, or in the object itself."""
    if not isinstance(payload, dict):
        return None
    for entry in _entries(payload):
        found = _in_text(entry) if isinstance(entry, str) else _in_object(entry)
        if found is not None:
            return replace(found, facts=_facts(payload, entry if isinstance(entry, dict) else {}))
    return None


def _is_picture(body: bytes) -> bool:
    try:
        return read_header(body) is not None
    except MalformedError:
        return True


def _entries(payload: dict[str, Any]) -> Iterator[object]:
    for key in ("data", "images"):
        value = payload.get(key)
        if isinstance(value, list):
            yield from value
        else:
            yield value
    yield payload


def _in_object(entry: object) -> Found | None:
    if not isinstance(entry, dict):
        return None
    encoded, url = entry.get("b64_json"), entry.get("url")
    if isinstance(encoded, str) and encoded:
        return Found(base64=encoded)
    if isinstance(url, str) and url:
        return Found(base64=url) if _is_data(url) else Found(url=url)
    return None


def _in_text(entry: str) -> Found | None:
    """Tell base64 from a URL: the one has no dots and no colon, and may begin with a slash, too."""
    if not entry:
        return None
    is_url = not _is_data(entry) and any(letter in entry[:2048] for letter in ".:?")
    return Found(url=entry) if is_url else Found(base64=entry)


def _is_data(url: str) -> bool:
    return url[:5].lower() == "data:"


def _facts(payload: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Take over what is of use; nothing odd in here may cost the picture."""
    prompt = entry.get("revised_prompt") or payload.get("revised_prompt")
    quality = payload.get("quality") or entry.get("quality")
    facts: dict[str, Any] = {
        "revised_prompt": prompt[:_PROMPT] if isinstance(prompt, str) else None,
        "quality": quality if isinstance(quality, str) and len(quality) <= 64 else None,
        "usage": _usage(payload.get("usage")) or None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _usage(usage: object) -> dict[str, Any]:
    """Keep the counts of a usage object, under the Images API's names: tokens, and details of them."""
    counts: dict[str, Any] = {}
    for key, value in _named(usage):
        details = {name: count for name, one in _named(value) if (count := _count(one)) is not None}
        counts[key] = details or _count(value)
    return {name: value for name, value in counts.items() if value is not None}


def _named(usage: object) -> Iterator[tuple[str, Any]]:
    if isinstance(usage, dict):
        for key, value in islice(usage.items(), _COUNTS):
            yield str(_USAGE_NAMES.get(key, key)), value


def _count(value: object) -> int | None:
    """Read a number of tokens; clients take neither fractions nor what is no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        return None
    return round(value)


_USAGE_NAMES = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens_details": "output_tokens_details",
}
