"""A picture that an edit can start from, as a reference: its bytes stay where they are until it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Picture"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in reach of an edit: where its bytes can be had.

    With none of `data`, `url` and `path` the store has the bytes under `id`.

    Attributes:
        id: the image item's id as the transcript shows it; "" for a picture that the user sent.
        data: base64, bare or as a data URL.
        url: an http or https URL.
        path: a file of the workspace, as the model wrote it.
    """

    id: str = ""
    data: str | bytes | None = field(default=None, repr=False)
    url: str | None = None
    path: str | None = None
