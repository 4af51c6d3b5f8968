"""Item ids that were told already: a server that begins to count anew must not make two items one."""

from __future__ import annotations

__all__ = ["ItemIds"]

_MOST = 20_000
"""Ids remembered, some hundred bytes each."""


class ItemIds:
    """The newest ids of all responses of one process.

    Some servers give each response's first message the same id, others a short random number. A client
    that refers to earlier items by their ids alone means one of them.

    Args:
        most: how many are remembered.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._told: dict[int, None] = {}

    def claim(self, identifier: str) -> bool:
        """Take an id for a new item; False if another one has it."""
        mark = hash(identifier)  # ids may be long
        if mark in self._told:
            return False
        self._told[mark] = None
        if len(self._told) > self._most:
            del self._told[next(iter(self._told))]
        return True
