"""The headers that a server's owner wants with each request, and nobody else gets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .option_error import OptionError

__all__ = ["own_headers"]

_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def own_headers(api_key: str | None, headers: Mapping[str, str]) -> dict[str, str]:
    """Join the key, as a bearer token, and the headers, which win. Both may end with a line feed.

    Raises:
        OptionError: one of them is malformed; its text is not repeated.
    """
    api_key = (api_key or "").strip()
    if not _VALUE.fullmatch(api_key):
        raise OptionError("api_key", "The API key holds a letter that no header may hold.")
    own = {name.strip().title(): value.strip() for name, value in headers.items()}
    for name, value in own.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise OptionError("headers", f"The header {name[:40]!r} is malformed.")
    return ({"Authorization": f"Bearer {api_key}"} if api_key else {}) | own
