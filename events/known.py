"""What is known of the past that a request only refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .pictures import Picture

__all__ = ["Known"]


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of the ids in a request; `Known()` knows nothing.

    Attributes:
        items: output items by id, as the client saw them; image items without their `result`.
        pictures: the ids of those image items whose bytes are still there.
        reach: the pictures of the turns that `previous_response_id` or `conversation` stands for,
            oldest first.
        previous: the model server's own id for the client's `previous_response_id`.
        owed: function outputs that the model server still waits for in the state which
            `previous_response_id` or `conversation` stands for, see `KeepResponse`.
    """

    items: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pictures: frozenset[str] = frozenset()
    reach: tuple[Picture, ...] = ()
    previous: str | None = None
    owed: tuple[Mapping[str, Any], ...] = ()
