"""One call of the tool, as operators see it."""

from __future__ import annotations

import re
import time
from contextvars import Token
from types import TracebackType
from typing import Self

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from ...events.tools.base import ToolCall, ToolOutcome
from .telemetry import OUTCOME, Telemetry

__all__ = ["ObservedPicture"]

_CODE = re.compile(r"[\w.:-]{1,64}", re.ASCII)
"""An error's code that may be an attribute: an image server may put anything there."""

_TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "image_generation",
    "gen_ai.tool.type": "extension",
}


class ObservedPicture:
    """The span and the measurements of one picture; to be entered by the task that makes it.

    Args:
        telemetry: where they go.
        parent: the context of the response.
        call: asks for the picture.

    Attributes:
        outcome: `completed` or `failed`; `cancelled` as long as it is neither.
        size: bytes of the finished picture; 0 without one.
    """

    __slots__ = (
        "_call",
        "_parent",
        "_problem",
        "_span",
        "_started",
        "_telemetry",
        "_token",
        "outcome",
        "size",
    )

    _span: Span
    _started: int
    _token: Token[Context]

    def __init__(self, telemetry: Telemetry, parent: Context, call: ToolCall) -> None:
        self._telemetry = telemetry
        self._parent = parent
        self._call = call
        self._problem: dict[str, str] = {}
        self.outcome = "cancelled"
        self.size = 0

    def __enter__(self) -> Self:
        self._started = time.time_ns()
        edit = bool(self._call.arguments.get("images"))
        own = {"gen_ai.tool.call.id": self._call.id, "imagecall.action": "edit" if edit else "generate"}
        if model := self._call.arguments.get("model"):
            own["gen_ai.request.model"] = model
        self._span = self._telemetry.tracer.start_span(
            "execute_tool image_generation",
            self._parent,
            SpanKind.INTERNAL,
            {**_TOOL, **own},
            start_time=self._started,
        )
        self._token = attach(set_span_in_context(self._span, self._parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        detach(self._token)
        ended = time.time_ns()
        attributes = {**_TOOL, OUTCOME: self.outcome, **self._problem}
        self._telemetry.pictures.record(max(0, ended - self._started) / 1e9, attributes)
        self._span.set_attribute(OUTCOME, self.outcome)
        self._span.end(ended)

    def asked(self) -> None:
        """Note that the wait is over and the backend is asked."""
        waited = max(0, time.time_ns() - self._started) / 1e9
        self._telemetry.waits.record(waited)
        self._span.set_attribute("imagecall.picture.queue.duration", waited)

    def ended(self, outcome: ToolOutcome) -> ToolOutcome:
        """Note how it ended; return the same."""
        if outcome.error is None:
            self.outcome = "completed"
            self.size = _decoded_size(outcome.data)
            self._telemetry.sizes.record(self.size)
            self._span.set_attribute("imagecall.picture.size", self.size)
            for name, fact in (("dimensions", "size"), ("format", "output_format")):
                self._span.set_attribute(f"imagecall.picture.{name}", outcome.facts[fact])
        else:
            self.outcome = "failed"
            code = outcome.error.code
            self._problem = {"error.type": code if _CODE.fullmatch(code) else "_OTHER"}
            self._span.set_attributes(self._problem)
            self._span.set_status(Status(StatusCode.ERROR))
        return outcome


def _decoded_size(base64: bytes) -> int:
    """Return how many bytes a padded base64 stands for."""
    return len(base64) * 3 // 4 - base64.count(b"=", -2)
