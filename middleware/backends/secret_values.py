"""Values that nobody may read: struck out of whatever an image server says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["Secrets", "is_secret_name", "named_secrets"]

_STRUCK = "[secret]"

_SECRET_NAME = re.compile(
    r"auth|key|token|secret|password|cookie|credential|signature|\bsig\b", re.IGNORECASE
)

_LOOKS_SECRET = re.compile(r"\bsk-[\w*.-]{4,}|\bBearer\s+[\w.~+/=*-]{8,}", re.IGNORECASE)
"""What keys look like wherever they come from; servers like to repeat them half hidden by asterisks."""

_WORD = re.compile(r"""[^\s"'<>(),;]{8,}""")

_PIECE = 8
"""Characters of a key that give it away: servers quote keys shortened at either end."""

_SHORTEST = 6
"""A shorter key is a stand-in such as `none`, and striking it out would riddle ordinary words."""


def is_secret_name(name: str) -> bool:
    """Tell whether a header or field of this name holds a secret by all experience."""
    return bool(_SECRET_NAME.search(name))


def named_secrets(value: Any, *, is_secret: bool = False) -> Iterator[str]:
    """Give what stands under a secret's name in a JSON value, however deep: whole, and without `Bearer`."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from named_secrets(one, is_secret=is_secret or is_secret_name(str(name)))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from named_secrets(one, is_secret=is_secret)
    elif is_secret:
        text = str(value).strip()
        yield text
        yield from text.split()[-1:]


class Secrets:
    """The secrets of one backend.

    Args:
        keys: values of which not even a part of eight characters may be shown.
        values: values that are only struck out whole, since their parts are ordinary words.
    """

    def __init__(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        known = [key for key in keys if len(key) >= _SHORTEST]
        self._pieces = {key[at : at + _PIECE] for key in known for at in range(len(key) - _PIECE + 1)}
        whole = {*known, *(value for value in values if len(value) >= _PIECE)}
        alternatives = "|".join(re.escape(value) for value in sorted(whole, key=len, reverse=True))
        self._whole = re.compile(alternatives or r"(?!)", re.IGNORECASE)

    def strike(self, text: str) -> str:
        """Return the text without any secret or anything that looks like one."""
        text = self._whole.sub(_STRUCK, text)
        text = _LOOKS_SECRET.sub(_STRUCK, text)
        return _WORD.sub(self._struck_word, text)

    def strike_all(self, value: Any) -> Any:
        """Return a copy of a JSON value with each of its strings struck, keys included."""
        if isinstance(value, str):
            return self.strike(value)
        if isinstance(value, Mapping):
            return {self.strike(str(key)): self.strike_all(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.strike_all(one) for one in value]
        return value

    def _struck_word(self, found: re.Match[str]) -> str:
        word = found[0]
        windows = (word[at : at + _PIECE] for at in range(len(word) - _PIECE + 1))
        return _STRUCK if any(window in self._pieces for window in windows) else word
