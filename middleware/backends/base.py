"""The border between the middleware and whatever makes the pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Image", "ImageBackend", "ImageError", "ImageRequest", "OnPartial"]


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded picture and the facts read from its own bytes, never from what somebody claimed.

    Attributes:
        data: the encoded file.
        output_format: `png`, `jpeg`, `webp` or `gif`.
        width: in pixels.
        height: in pixels.
        transparent: whether the picture has an alpha channel.
        revised_prompt: the prompt the backend really used, where it rewrote the one it was given.
        quality: the quality the backend says it used.
        usage: what the backend says it spent, in the Images API's shape.
        keep_metadata: whether the metadata in the file is meant for the client, such as a credit; else it is
            dropped, since most of it is the prompt and the workflow.
    """

    data: bytes
    output_format: str
    width: int
    height: int
    transparent: bool = False
    revised_prompt: str | None = None
    quality: str | None = None
    usage: Mapping[str, Any] | None = None
    keep_metadata: bool = False

    def __repr__(self) -> str:
        """Tell what it is without its bytes: this is what logs show."""
        megabytes = len(self.data) / 1e6
        return f"[image {self.output_format} {self.width}x{self.height} {megabytes:.1f} MB]"


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """What to draw. None means that nobody asked for anything particular.

    Attributes:
        prompt: the model's own words, never empty.
        model: as the client declared it, such as `gpt-image-2`.
        size: `WIDTHxHEIGHT` in pixels, or a vendor's own word.
        quality: `low`, `medium`, `high`, or a vendor's own word.
        background: `transparent` or `opaque`.
        output_format: `png`, `jpeg`, `webp`, or a vendor's own word; others are converted.
        output_compression: 0–100, for jpeg and webp.
        moderation: as declared, such as `low`.
        input_fidelity: as declared: `high` or `low`, for edits.
        partial_images: how many previews the client wants at most, 0–3.
        images: pictures to edit, oldest first; empty to draw a new one.
        mask: where to edit: its transparent pixels.
        extra: fields of the client's declaration that this version does not know.
    """

    prompt: str
    model: str | None = None
    size: str | None = None
    quality: str | None = None
    background: str | None = None
    output_format: str | None = None
    output_compression: int | None = None
    moderation: str | None = None
    input_fidelity: str | None = None
    partial_images: int = 0
    images: tuple[Image, ...] = ()
    mask: Image | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class ImageError(Exception):
    """The picture could not be made; the model is told and the response goes on.

    Args:
        message: one sentence for the client and the model; no secrets, no paths, at most 300
            characters of somebody else's text.
        code: a machine-readable reason (`moderation_blocked`, `timeout`, …).
        type: the error's family, in OpenAI's words.
        param: the option at fault, where there is one.
        details: more fields for the item's `error`, such as `moderation_details`.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "image_generation_failed",
        type: str = "image_generation_error",  # noqa: A002  the wire's own name
        param: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.type = type
        self.param = param
        self.details = details


OnPartial = Callable[["Image | bytes"], Awaitable[None]]
"""Hand over a preview while the picture is still being made; returns when the client has it."""


class ImageBackend(Protocol):
    """Makes pictures. One object serves all requests of a process, many at the same time.

    A backend that must be opened (a session, a pool) is also an async context manager: it is
    entered before its first picture and left at the application's shutdown, in one task.
    """

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image | bytes:
        """Make one picture; its encoded bytes will do: PNG, JPEG, WebP or GIF.

        Cancelling the call must stop the work: the client has gone. A preview is an unfinished state:
        never hand over the finished picture as one.

        Args:
            request: what to draw; what cannot be done is passed over, but an edit is refused.
            on_partial: is awaited with each preview, at most `request.partial_images` times, before the end.

        Raises:
            ImageError: the picture could not be made, in words that help.
        """
        ...
