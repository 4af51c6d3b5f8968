"""An `ImageRequest` as the smallest body that one server's Images API takes."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import aiohttp

from ....events.wire import dumps
from ..base import Image, ImageError, ImageRequest

__all__ = ["PAINTING", "Dialect", "form_of", "json_of", "plain_prompt"]

_ARGUMENTS = re.compile(
    r"<sd_cpp_extra_args>.*?(?:</sd_cpp_extra_args>|\Z)|</sd_cpp_extra_args>", re.IGNORECASE | re.DOTALL
)
_SIZE = re.compile(r"[1-9]\d{0,4}x[1-9]\d{0,4}")
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)

_GPT_IMAGE = ("gpt-image", "chatgpt-image")
"""Models that answer in base64 anyway and refuse `response_format`."""

_RESERVED = frozenset(
    {"prompt", "model", "n", "stream", "partial_images", "response_format", "image", "images", "mask"}
)
"""Fields that decide what is asked and how the answer comes: no declaration changes them."""

PAINTING = ("seed", "negative_prompt", "style", "strength", "guidance_scale", "cfg_scale")
"""Fields of servers' own that say how a picture is painted and nothing else. Others may do anything: gateways
know an `api_base` to which they send their key, SGLang an `output_path` to which it writes."""


def plain_prompt(prompt: str) -> str:
    """Take out what stable-diffusion.cpp's server reads as orders in the middle of a prompt.

    `<sd_cpp_extra_args>{"steps": 500}</sd_cpp_extra_args>` sets any of its parameters. A prompt is
    written by a model, which may have been talked into it, and these can never be words of a picture.

    Raises:
        ImageError: nothing else is left.
    """
    plain = _ARGUMENTS.sub(" ", prompt)
    if not plain.strip():
        raise ImageError(
            "The prompt holds no words that describe a picture.",
            code="invalid_arguments",
            type="image_generation_user_error",
            param="prompt",
        )
    return plain.encode(errors="replace").decode()  # forms cannot carry lone surrogates


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What one server takes.

    Attributes:
        model: the name for it where no glob matches; None to name none.
        models: globs of the declared model, in the order they are tried, to the server's own names.
        body: more fields, which win over all others; a null takes a field away.
        drop: names of fields that are never sent.
        pass_on: globs of the fields that a declaration may have beside those known here.
        edits: how pictures to edit travel.
        response_format: `auto` asks for base64 unless the model is one of OpenAI's own.
        stream: whether the server can send previews.
    """

    model: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    pass_on: tuple[str, ...] = PAINTING
    edits: Literal["multipart", "json"] = "multipart"
    response_format: Literal["auto", "b64_json", "none"] = "auto"
    stream: bool = True

    def model_for(self, declared: str | None) -> str | None:
        """Translate the declared model; what the server does not know is never forwarded."""
        names = (name for glob, name in self.models.items() if fnmatchcase(declared or "", glob))
        return next(names, self.model)

    def asks_base64(self, request: ImageRequest) -> bool:
        """Tell whether `response_format` is to be sent of our own accord."""
        if self.response_format == "none" or "response_format" in self.drop or "response_format" in self.body:
            return False
        model = self.model_for(request.model) or ""
        return self.response_format == "b64_json" or not model.rpartition("/")[2].startswith(_GPT_IMAGE)

    def fields(self, request: ImageRequest, *, base64: bool) -> dict[str, Any]:
        """Make all fields but the pictures.

        Args:
            request: what to draw.
            base64: whether the answer shall be base64 rather than a URL.
        """
        extra = {
            name: value
            for name, value in request.extra.items()
            if name not in _RESERVED and _NAME.fullmatch(name) and self._passes(name)
        }
        options = {**extra, **self._options(request), **self._previews(request)}
        options["model"] = self.model_for(request.model)
        options["n"] = 1
        options["response_format"] = "b64_json" if base64 else None
        kept = {name: value for name, value in options.items() if name not in self.drop}
        fields: dict[str, Any] = without_nulls({**kept, **self.body, "prompt": None})
        return {"prompt": plain_prompt(request.prompt), **fields}

    def _passes(self, name: str) -> bool:
        return any(fnmatchcase(name, glob) for glob in self.pass_on)

    def _options(self, request: ImageRequest) -> dict[str, Any]:
        size = (request.size or "").strip().lower()
        output_format = {"jpg": "jpeg"}.get(request.output_format or "", request.output_format)
        multipart_edit = request.images and self.edits == "multipart"
        return {
            "size": size if _SIZE.fullmatch(size) else None,
            "quality": _decided(request.quality),
            "background": _decided(request.background),
            "output_format": _decided(output_format),
            # Means nothing to the other formats, and OpenAI refuses it there.
            "output_compression": request.output_compression if output_format in ("jpeg", "webp") else None,
            # The form of an edit has no such field.
            "moderation": None if multipart_edit else _decided(request.moderation),
            "input_fidelity": request.input_fidelity if request.images else None,
        }

    def _previews(self, request: ImageRequest) -> dict[str, Any]:
        """Ask for a stream only for the sake of previews; a GIF has none."""
        switched_off = not self.stream or self.drop & {"stream", "partial_images"}
        if switched_off or not request.partial_images or request.output_format == "gif":
            return {}
        return {"stream": True, "partial_images": request.partial_images}


def json_of(fields: Mapping[str, Any], request: ImageRequest) -> io.BytesIO:
    """Write a body in JSON, with the pictures to edit as data URLs. Takes its time with pictures."""
    pictures: dict[str, Any] = {}
    if request.images:
        pictures["images"] = [{"image_url": _data_url(image)} for image in request.images]
        if request.mask is not None:
            pictures["mask"] = {"image_url": _data_url(request.mask)}
    return io.BytesIO(dumps({**fields, **pictures}))


def form_of(fields: Mapping[str, Any], request: ImageRequest) -> aiohttp.FormData:
    """Write an edit as a multipart form, with the pictures to edit as files named `image[]`."""
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in _flat(fields):
        form.add_field(name, value)
    for number, image in enumerate(request.images, 1):
        _add_file(form, "image[]", f"image_{number}", image)
    if request.mask is not None:
        _add_file(form, "mask", "mask", request.mask)
    return form


def without_nulls(value: Any) -> Any:
    """Return a copy of a JSON value without nulls, which some servers take for numbers and fail on."""
    if isinstance(value, Mapping):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value if one is not None]
    return value


def _decided(option: str | None) -> str | None:
    return None if option == "auto" else option


def _data_url(image: Image) -> str:
    return f"data:image/{image.output_format};base64,{base64.b64encode(image.data).decode()}"


def _add_file(form: aiohttp.FormData, field: str, stem: str, image: Image) -> None:
    kind = image.output_format
    name = f"{stem}.{'jpg' if kind == 'jpeg' else kind}"
    form.add_field(field, io.BytesIO(image.data), filename=name, content_type=f"image/{kind}")


def _flat(fields: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, str]]:
    """Spread nested values over fields such as `svg[model]` and `tags[]`, as OpenAI's SDK does."""
    for key, value in fields.items():
        if not _NAME.fullmatch(key):
            continue
        name = f"{parent}[{key}]" if parent else key
        for place, one in (
            ((f"{name}[]", one) for one in value) if isinstance(value, list) else ((name, value),)
        ):
            if isinstance(one, Mapping):
                yield from _flat(one, place)
            else:
                yield place, _plain(one)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).encode(errors="replace").decode()
