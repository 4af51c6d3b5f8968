"""What may be shown of a server's own words."""

from __future__ import annotations

import re

from .secret_values import Secrets

__all__ = ["Words"]

_SHOWN = 300
"""Characters of a server's own words that are shown; they may hold anything."""

_READ = 4_000
"""Characters of them that are looked at."""

_BASE64 = re.compile(r"(?:data:[\w/.+-]+;base64,)?[A-Za-z0-9+/=_-]{100,}")


class Words:
    """Makes somebody else's text fit to be shown.

    Args:
        secrets: what must never be shown, even if the server repeats it.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def show(self, text: str) -> str:
        """Return at most 300 characters on one line, without secrets and without base64."""
        printable = "".join(letter if letter.isprintable() else " " for letter in text[:_READ])
        struck = self._secrets.strike(" ".join(printable.split()))
        plain = _BASE64.sub("[…]", struck)
        return plain if len(plain) <= _SHOWN else f"{plain[: _SHOWN - 1]}…"
