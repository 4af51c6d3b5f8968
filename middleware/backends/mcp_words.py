"""What may be shown of a server's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Words"]

_LONGEST = 300
_BASE64 = re.compile(r"(?:data:[\w/.+-]+;base64,)?[A-Za-z0-9+/=_-]{100,}")
_SHORTEST = 4
"""Characters of a secret: masking shorter ones would only garble the words."""


class Words:
    """Makes somebody else's text fit to be shown.

    Args:
        secrets: what must never be shown, even if the server repeats it.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        fitting = {secret for secret in secrets if len(secret) >= _SHORTEST}
        self._secrets = sorted(fitting, key=len, reverse=True)

    def show(self, text: str) -> str:
        """Return at most 300 characters on one line, without secrets and without base64."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = " ".join(_BASE64.sub("[…]", text).split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
