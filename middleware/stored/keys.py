"""The keys under which things are kept.

They begin with a hash of the owner, so nothing of another's is ever read. Beside them a mark without
owner tells of each id whose it is: the id of somebody else must not reach the model server, which knows
nothing of owners and would answer.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from ...events.wire import loads
from ..store import Gone

__all__ = ["NOBODY", "StoreKeys", "mark", "parsed"]

NOBODY = b"-"
"""The mark of ids that are not for the model server to answer: those of its turns, which no client was told,
and those of responses in the background, which it never heard."""

_LONGEST = 120
"""Characters of an id that becomes part of a key as it is."""


class StoreKeys:
    """The keys of one owner.

    Attributes:
        owner: the owner's hash, which is also the mark of their ids.
    """

    def __init__(self, owner: str) -> None:
        self.owner = _hash(owner).encode()

    def of(self, kind: str, name: str) -> str:
        """Return the key of a `response`, `item`, `picture`, `conversation` or `log` by its id."""
        return f"{self.owner.decode()}:{kind}:{_safe(name)}"


def mark(name: str) -> str:
    """Return the key that tells whose an id is."""
    return f"mark:{_safe(name)}"


def parsed(value: bytes | Gone | None) -> Any:
    """Read JSON from a store; None if there is none."""
    if not isinstance(value, bytes):
        return None
    try:
        return loads(value)
    except ValueError:
        return None


def _safe(name: str) -> str:
    """Make an id of a client's a part of a key: any text is possible, stores want short plain ones."""
    plain = name.isascii() and name.isprintable() and " " not in name and len(name) <= _LONGEST
    return name if plain else f"#{_hash(name)}"


def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
