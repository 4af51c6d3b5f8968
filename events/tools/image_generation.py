"""The hosted `image_generation` tool: the function that stands in for it, its arguments, its items.

The model server knows functions and nothing of hosted tools; the client knows hosted tools and must
never see the function. Each name and shape of either side is made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from ..pictures import Picture
from .base import ToolArgumentError, ToolError, ToolOutcome, ToolProgress
from .declaration import Declaration, no_transparency, parse_declaration
from .feedback import feedback
from .refusal import refused
from .selectors import advice, chosen_pictures, selectors, usable

__all__ = ["Declaration", "ImageGeneration", "ToolArgumentError", "parse_declaration"]

_DESCRIPTION = (
    "Make one picture from a description in words. Call this whenever the user wants an image drawn, "
    "painted, generated or changed; call it once for each picture wanted. The system shows the picture "
    "to the user by itself. Afterwards say at most a sentence or two about it, and never print links, "
    "Markdown images, file names or base64."
)
_MODELS_CHOICE = ("size", "quality", "background", "output_format")
_BACKGROUNDS = ("transparent", "opaque", "auto")
_TOLD_OF_AN_ERROR = ("moderation_details", "limit", "resets_at", "resets_in_seconds")
"""What else of a failure's details the client sees: why it was blocked, which limit it met, until when."""


@dataclass(frozen=True, slots=True)
class ImageGeneration:
    """The tool as one client declared it. Implements `HostedTool`.

    Attributes:
        declaration: how.
        reach: the pictures that an edit can start from, oldest first.
        workspace: whether the model may also name files.
    """

    type: ClassVar[str] = "image_generation"
    item_type: ClassVar[str] = "image_generation_call"
    id_prefix: ClassVar[str] = "ig"
    execution: ClassVar[Literal["server", "client"]] = "server"
    phases: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "started": "in_progress",
            "working": "generating",
            "partial": "partial_image",
            "finished": "completed",
        }
    )

    declaration: Declaration
    reach: tuple[Picture, ...] = field(default=(), repr=False)
    workspace: bool = False

    @property
    def previews(self) -> int:
        """How many previews of one picture the client wants at most, 0–3."""
        return self.declaration.partial_images or 0

    def function(self, name: str) -> dict[str, Any]:
        """Make the function tool that the model sees instead.

        Options are offered only where the declaration leaves them open, the selectors of an edit only
        where there is something to edit. It stays the same through all turns of a response, so that
        prompt caches hit: pictures made meanwhile can be named all the same.
        """
        pinned = self.declaration.pinned()
        options = {key: schema for key, schema in _options(pinned).items() if key not in pinned}
        prompt = {
            "type": "string",
            "description": "What the picture shows, in full: subject, surroundings, style, light, colours. "
            "Whoever paints it sees nothing of the conversation.",
        }
        edits = selectors(reach=bool(self.reach), workspace=self.workspace) if self._edits else {}
        always = self.declaration.action == "edit"
        return {
            "type": "function",
            "name": name,
            "description": _DESCRIPTION + (advice(tuple(edits), always=always) if edits else ""),
            "strict": False,
            "parameters": {
                "type": "object",
                "properties": {"prompt": prompt, **options, **edits},
                "required": ["prompt"],
                "additionalProperties": False,
            },
        }

    def arguments(
        self, given: Mapping[str, Any], *, strict: bool, max_prompt: int, made: Sequence[Picture] = ()
    ) -> dict[str, Any]:
        """Merge the model's arguments with the declaration, which wins key by key.

        Args:
            given: the parsed arguments object.
            strict: refuse unknown keys instead of dropping them.
            max_prompt: the longest prompt, in characters.
            made: the pictures of the response's earlier turns, oldest first.

        Returns:
            `prompt`, `partial_images`, `extra` (the declaration's unknown fields), and those of
            size, quality, background, output_format, output_compression, moderation,
            input_fidelity and model that somebody decided. An edit has `images` besides, the
            `Picture`s to start from in chronological order, and `mask` where one is declared. No
            nulls, no `"auto"`.

        Raises:
            ToolArgumentError: the model must correct its call, or there is nothing to edit.
        """
        reach = (*self.reach, *made)
        if strict:
            self._check_known(given, reach)
        pinned = self.declaration.pinned()
        merged = {"prompt": _prompt(given, max_prompt), **_chosen(given, pinned), **pinned}
        if merged.get("background") == "transparent" and no_transparency(merged.get("output_format")):
            param = "background" if "output_format" in pinned else "output_format"
            raise refused("A transparent background needs output_format 'png' or 'webp'.", param)
        return {
            **merged,
            **self._pictures(given, reach),
            "partial_images": self.previews,
            "extra": self.declaration.unknown(),
        }

    @property
    def _edits(self) -> bool:
        """Whether a call may change a picture."""
        return self.declaration.action != "generate"

    def _check_known(self, given: Mapping[str, Any], reach: Sequence[Picture]) -> None:
        edits = usable(workspace=self.workspace) if self._edits else ()
        for key in given:
            if key not in ("prompt", *_MODELS_CHOICE, *edits):
                there = ("prompt", *_MODELS_CHOICE, *(edits if reach else ()))
                raise refused(f"Unknown argument '{key[:64]}'; there are: {', '.join(there)}.", key[:64])

    def _pictures(self, given: Mapping[str, Any], reach: Sequence[Picture]) -> dict[str, Any]:
        """Find what an edit starts from; nothing for a new picture."""
        chosen = chosen_pictures(given, reach, workspace=self.workspace) if self._edits else ()
        if not chosen and self.declaration.action == "edit":
            chosen = tuple(reach[-1:])
            if not chosen:
                message = "There is no picture to change: the user has sent none, and none was made."
                raise refused(message, None, code="no_image_to_edit")
        mask = self.declaration.mask()
        if not chosen or mask is None:
            return {"images": chosen} if chosen else {}
        return {"images": chosen, "mask": mask}

    def announced(self, item_id: str) -> dict[str, Any]:
        """Make the item of `response.output_item.added`."""
        return {"id": item_id, "type": self.item_type, "status": "in_progress"}

    def finished(
        self, item_id: str, call_arguments: Mapping[str, Any], outcome: ToolOutcome
    ) -> dict[str, Any]:
        """Make the item of `response.output_item.done`; a success lacks only its `result`.

        Clients send the whole item back in their next request, so it has the keys of the published
        schema and no others.

        Args:
            item_id: the id the call was announced with.
            call_arguments: what `arguments` returned, or the model's own when that refused them;
                pictures that it names make it an edit.
            outcome: how the call ended. A failure's `result` is `""`: SDKs lose the reply on null.
        """
        facts = outcome.facts
        item: dict[str, Any] = {"id": item_id, "type": self.item_type, "status": "completed"}
        if outcome.error is not None:
            item |= {"status": "failed", "result": "", "error": _error(outcome.error)}
        prompt = _text(facts.get("revised_prompt")) or _text(call_arguments.get("prompt"))
        if prompt:
            item["revised_prompt"] = prompt
        named = any(call_arguments.get(key) for key in ("images", *usable(workspace=self.workspace)))
        item["action"] = "edit" if named and self._edits else "generate"
        return item | self._appearance(facts, call_arguments)

    def partial(self, progress: ToolProgress) -> dict[str, Any]:
        """Make the fields that a `partial_image` event has beside its picture, number and ids."""
        return self._appearance(progress.facts, {})

    def feedback(self, item: Mapping[str, Any], path: str | None = None) -> str:
        """Tell the model in a short JSON text how its call ended; never any base64."""
        return feedback(item, path)

    def _appearance(self, facts: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, str]:
        """Say what the picture is like: the truth where it is known, else what was asked for."""
        pinned = self.declaration.pinned()
        defaults = {"background": "auto", "output_format": "png", "quality": "auto", "size": "auto"}
        wished = {key: value for key, value in asked.items() if value != "auto"}
        shown = {
            key: _text(facts.get(key)) or _text(pinned.get(key)) or _text(wished.get(key)) or default
            for key, default in defaults.items()
        }
        # A model may have asked for anything; clients' types know these words only.
        return shown if shown["background"] in _BACKGROUNDS else {**shown, "background": "auto"}


def _options(pinned: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Describe the options a model may choose, without the pairs that exclude each other."""
    backgrounds = ["opaque", "auto"] if no_transparency(pinned.get("output_format")) else [*_BACKGROUNDS]
    formats = ["png", "webp"] if pinned.get("background") == "transparent" else ["png", "jpeg", "webp"]
    return {
        "size": {
            "type": "string",
            "description": "WIDTHxHEIGHT in pixels: 1024x1024 (square), 1536x1024 (wide), "
            "1024x1536 (tall), or auto.",
        },
        "quality": {"type": "string", "enum": ["low", "medium", "high", "auto"]},
        "background": {"type": "string", "enum": backgrounds},
        "output_format": {"type": "string", "enum": formats},
    }


def _prompt(given: Mapping[str, Any], max_prompt: int) -> str:
    prompt = given.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise refused("The argument 'prompt' must be a string that describes the picture.", "prompt")
    if len(prompt) > max_prompt:
        raise refused(
            f"The argument 'prompt' has {len(prompt)} characters, more than the {max_prompt} that max_prompt "
            "allows.",
            "prompt",
        )
    return prompt


def _chosen(given: Mapping[str, Any], pinned: Mapping[str, Any]) -> dict[str, str]:
    """Check the options the model chose where it had a choice."""
    chosen = {}
    for key in _MODELS_CHOICE:
        value = given.get(key)
        if value is None or value == "auto" or key in pinned:
            continue
        if not isinstance(value, str) or not value.strip():
            raise refused(f"The argument '{key}' must be a string.", key)
        if key == "background" and value not in _BACKGROUNDS:
            raise refused(f"The argument 'background' must be one of {', '.join(_BACKGROUNDS)}.", key)
        chosen[key] = value
    return chosen


def _error(error: ToolError) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "param": error.param,
    }
    details = error.details or {}
    return shown | {key: details[key] for key in _TOLD_OF_AN_ERROR if key in details}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
