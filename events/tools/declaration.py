"""The client's `{"type": "image_generation", …}` entry, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import RequestError
from ..pictures import Picture

__all__ = ["Declaration", "Mask", "no_transparency", "parse_declaration"]


class Mask(BaseModel):
    """Where an edit may paint: a data URL, or a file the client uploaded."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    image_url: str | None = None
    file_id: str | None = None


class Declaration(BaseModel):
    """What the client wants of every picture. None stands for a field that was not given.

    `size`, `quality`, `output_format` and `model` are open strings, since vendors add values.
    Fields this version does not know are kept for the backend, see `unknown`.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    type: Literal["image_generation"] = "image_generation"
    action: Literal["generate", "edit", "auto"] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    input_fidelity: Literal["high", "low"] | None = None
    input_image_mask: Mask | None = None
    model: str | None = None
    moderation: Literal["auto", "low"] | None = None
    output_compression: Annotated[int, Field(ge=0, le=100)] | None = None
    output_format: str | None = None
    partial_images: Annotated[int, Field(ge=0, le=3)] | None = None
    quality: str | None = None
    size: str | None = None

    def pinned(self) -> dict[str, Any]:
        """Name the options that nobody may change any more. `"auto"` pins nothing."""
        options = (
            "size",
            "quality",
            "background",
            "output_format",
            "output_compression",
            "moderation",
            "input_fidelity",
            "model",
        )
        given = {key: getattr(self, key) for key in options}
        return {key: value for key, value in given.items() if value is not None and value != "auto"}

    def mask(self) -> Picture | None:
        """Return where an edit may paint, if the client said so."""
        given = self.input_image_mask
        if given is None or not given.image_url:
            return None
        if given.image_url.lower().startswith(("http://", "https://")):
            return Picture(url=given.image_url)
        return Picture(data=given.image_url)

    def unknown(self) -> dict[str, Any]:
        """Return the fields that this version does not know, as the client wrote them."""
        return dict(self.__pydantic_extra__ or {})


def no_transparency(output_format: object) -> bool:
    """Tell whether pictures of this format cannot have an alpha channel."""
    return isinstance(output_format, str) and output_format.lower() in {"jpeg", "jpg"}


def parse_declaration(tool: Mapping[str, Any], path: str) -> Declaration:
    """Check one tool entry that stands at `path`, such as `tools[2]`.

    Raises:
        RequestError: a field has the wrong type or is out of range, `transparent` meets jpeg, or the
            mask is an uploaded file; its `param` is the field's whole path.
    """
    try:
        # Nulls go first: clients that write every field out mean "not given" by them, and two
        # entries that differ only in nulls are equal.
        declaration = Declaration.model_validate(
            {key: value for key, value in tool.items() if value is not None}
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        param = path + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        reason = first["msg"][:1].lower() + first["msg"][1:]
        raise RequestError(f"Invalid value for '{param}': {reason}.", param=param) from None
    mask = declaration.input_image_mask
    if mask is not None and mask.file_id:
        param = f"{path}.input_image_mask.file_id"
        raise RequestError(
            f"Invalid value for '{param}': uploaded files cannot be read here; give the mask as a data URL "
            "in 'image_url'.",
            param=param,
        )
    if declaration.background == "transparent" and no_transparency(declaration.output_format):
        param = f"{path}.output_format"
        raise RequestError(
            f"Invalid value for '{param}': a transparent background needs 'png' or 'webp'.", param=param
        )
    return declaration
