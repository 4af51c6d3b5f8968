"""Whose a request is, so that one client's ids mean nothing to another."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from starlette.types import Scope

__all__ = ["Owner", "default_owner"]

Owner = Callable[[Scope], str]
"""Names the owner of what a request makes, by any string that is the same for all their requests.

It is hashed before it becomes part of a store's key.
"""

_CREDENTIALS = (b"authorization", b"api-key", b"x-api-key")
"""In the order in which they are looked for."""


def default_owner(scope: Scope) -> str:
    """Tell owners apart by their credential: a hash of the first credential header that says anything.

    Without one it is the owner of everything made without a credential. Where credentials change
    within a conversation (tokens that are renewed each hour), give a function of your own.
    """
    for name in _CREDENTIALS:
        for key, value in scope["headers"]:
            if key.lower() == name and value.strip():
                return blake2b(name + b"\0" + value.strip(), digest_size=20).hexdigest()
    return ""
