"""What a hosted tool is to the translator, and the three values that pass between it and a runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from ..pictures import Picture

__all__ = ["HostedTool", "ToolArgumentError", "ToolCall", "ToolError", "ToolOutcome", "ToolProgress"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a hosted tool, with settled arguments, ready to run.

    Attributes:
        id: the item's id as the client knows it (`ig_…`).
        arguments: the tool's options after the declaration and the model's words were merged;
            checked, only known keys and the declaration's own extra ones, no nulls. `images`, only
            when pictures are edited, and `mask` are still references, see `Picture`.
    """

    id: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A preview of the result.

    Attributes:
        data: bare base64, ASCII, of a picture.
        facts: the true facts read from its bytes: `size`, `output_format`, `background`.
    """

    data: bytes
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a call failed, in the fields of the item's own `error` object.

    Attributes:
        message: one sentence for the client and the model.
        code: a machine-readable reason.
        type: the error's family, in OpenAI's words.
        param: the argument at fault, where there is one.
        details: more fields of the error object, such as OpenAI's `moderation_details`.
    """

    message: str
    code: str = "image_generation_failed"
    type: str = "image_generation_error"
    param: str | None = None
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """How a call ended: a result (bare base64) with its facts, or an error, never both.

    Attributes:
        data: bare base64, ASCII, of the finished picture; empty when the call failed.
        facts: fields of the finished item that the result itself decides (`size`,
            `output_format`, `background`, and `quality`, `revised_prompt` where known).
        usage: what the backend says it spent, added up in `tool_usage.image_gen`.
        path: the file it was also written to; told to the model, never to the client.
    """

    data: bytes = b""
    facts: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    error: ToolError | None = None
    path: str | None = None


class ToolArgumentError(Exception):
    """The model called the tool with arguments that cannot be run; `error` is what it is told."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


class HostedTool(Protocol):
    """One kind of hosted tool. It knows names and shapes, never how the work is done."""

    type: ClassVar[str]
    """The declaration's `type`, also the default name of the function that stands in for it."""
    item_type: ClassVar[str]
    """The `type` of the items that stand for its calls."""
    id_prefix: ClassVar[str]
    execution: ClassVar[Literal["server", "client"]]
    """Who does the work: a backend of ours, or (siblings such as a shell) the client."""
    phases: ClassVar[Mapping[str, str]]
    """The translator's phase (`started`, `working`, `partial`, `finished`) → the event's last word."""

    @property
    def previews(self) -> int:
        """How many previews of one result the client wants at most."""
        ...

    def arguments(
        self, given: Mapping[str, Any], *, strict: bool, max_prompt: int, made: Sequence[Picture] = ()
    ) -> dict[str, Any]:
        """Check the model's arguments and merge them with the declaration.

        Args:
            given: what the model wrote, parsed.
            strict: whether unknown arguments are an error instead of dropped.
            max_prompt: characters of the prompt.
            made: the pictures of the response's earlier turns, oldest first.

        Raises:
            ToolArgumentError: the model must correct its call.
        """
        ...

    def announced(self, item_id: str) -> dict[str, Any]:
        """Make the item as it is announced."""
        ...

    def finished(
        self, item_id: str, call_arguments: Mapping[str, Any], outcome: ToolOutcome
    ) -> dict[str, Any]:
        """Make the final item; a success lacks only its `result`."""
        ...

    def partial(self, progress: ToolProgress) -> dict[str, Any]:
        """Make the fields that an event with a preview has beside the preview itself."""
        ...

    def feedback(self, item: Mapping[str, Any], path: str | None = None) -> str:
        """Tell the model in a few words how its call ended, and to which file the result was written."""
        ...
