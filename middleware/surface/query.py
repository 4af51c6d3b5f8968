"""The query string of a request, checked."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.types import Scope

from ...events.errors import RequestError

__all__ = ["Query"]


class Query:
    """Reads parameters; of one that is given twice the last counts.

    Every method raises a `RequestError` that names the parameter whose value is wrong.
    """

    def __init__(self, scope: Scope) -> None:
        self._values = parse_qs(scope.get("query_string", b"").decode("latin-1"))

    def text(self, name: str) -> str | None:
        """Return a parameter as it is; None without it."""
        return self._values[name][-1] if name in self._values else None

    def truth(self, name: str) -> bool:
        """Return whether a parameter says so."""
        return (self.text(name) or "").lower() in ("true", "1")

    def number(self, name: str, default: int, least: int, most: int | None = None) -> int:
        """Return a number within bounds, `default` if there is none."""
        text = self.text(name)
        if text is None:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
        if number is None or number < least or (most is not None and number > most):
            bounds = f"of at least {least}" if most is None else f"between {least} and {most}"
            raise RequestError(f"Invalid '{name}': expected an integer {bounds}.", param=name)
        return number

    def choice(self, name: str, *choices: str) -> str:
        """Return one of the choices, the first if none is made."""
        text = self.text(name)
        if text is not None and text not in choices:
            wanted = " or ".join(f"'{choice}'" for choice in choices)
            raise RequestError(f"Invalid '{name}': expected {wanted}.", param=name)
        return text or choices[0]
