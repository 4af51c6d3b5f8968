"""What is kept of a response, and its form in a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...events.wire import dumps, loads

__all__ = ["IMAGE_ITEM", "StoredResponse", "without_result"]

IMAGE_ITEM = "image_generation_call"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as its client may ask for it again.

    Attributes:
        id: as the client knows it.
        status: the response object's own: `queued`, `in_progress`, `completed`, `failed`, ….
        upstream: the ids of all its turns at the model server, in order; the last one continues it.
        body: the final or current response object, its image items without `result`.
        input: the client's input items. Once stored, each has an id, and the pictures are kept beside it.
        reach: the pictures that an edit may mean in the next turn, oldest first, at most 20: ids, or the
            URLs of those that are the user's and lie elsewhere. As given to be stored, those of the turns
            before this one will do (`reach_of(known)`); its own are added.
        conversation: the id of the conversation that it is part of.
        background: whether it runs, or ran, with nobody waiting.
        owed: function outputs that the model server must be given before it can go on from there.
    """

    id: str
    status: str
    upstream: tuple[str, ...]
    body: dict[str, Any]
    input: list[Any]
    reach: tuple[str, ...] = ()
    conversation: str | None = None
    background: bool = False
    owed: tuple[Mapping[str, Any], ...] = ()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet, or nobody has noticed that it did."""
        return self.status in ("queued", "in_progress")

    @property
    def output(self) -> list[dict[str, Any]]:
        """The items of its output."""
        output = self.body.get("output")
        return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []

    @property
    def named(self) -> list[dict[str, Any]]:
        """The items of its output that have an id."""
        return [item for item in self.output if isinstance(item.get("id"), str)]

    def encode(self) -> bytes:
        """Return it as JSON."""
        written = {field.name: getattr(self, field.name) for field in fields(self)}
        return dumps({**written, "owed": [dict(output) for output in self.owed]})

    @classmethod
    def decode(cls, stored: bytes) -> StoredResponse | None:
        """Read it back; None if this version cannot."""
        try:
            written = loads(stored)
            return cls(**{**written, **{key: tuple(written[key]) for key in ("upstream", "reach", "owed")}})
        except (ValueError, TypeError, KeyError):
            return None


def without_result(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image item without its base64, any other as it is."""
    image = item.get("type") == IMAGE_ITEM
    return {key: value for key, value in item.items() if not (image and key == "result")}
