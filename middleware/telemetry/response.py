"""One response, as operators see it: its span, its measurements, and one line in the log."""

from __future__ import annotations

import logging
import time
from contextvars import Token
from types import TracebackType
from typing import Any, Self

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from starlette.types import Scope

from ...events.tools.base import ToolCall
from ...events.translator import Translator
from ..terminal.printable import one_line
from ..turns import TurnReader
from .picture import ObservedPicture
from .propagation import parent_of
from .telemetry import OUTCOME, Telemetry
from .turn import ObservedTurn

__all__ = ["ObservedResponse"]

log = logging.getLogger("imagecall")

_AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "imagecall"}
"""What asks a model again with the results of its calls is an agent, in the conventions' words."""

_WELL = ("completed", "incomplete", "cancelled", "client_left")
"""Outcomes that are no error of anybody's."""

_SHOWN = 100
"""Characters that are shown of the model's name, which is the client's, and of the model server's id."""


class ObservedResponse:
    """Observes one response; to be entered around all that is done for it.

    Its turns and pictures are children of its span, side by side.

    Args:
        telemetry: where spans and measurements go.
        scope: of the client's request.
        translator: tells how the response ended.
        model: that the client asked for.
    """

    __slots__ = (
        "_context",
        "_left",
        "_model",
        "_pictures",
        "_scope",
        "_span",
        "_started",
        "_telemetry",
        "_token",
        "_translator",
        "_turns",
    )

    _context: Context
    _span: Span
    _started: int
    _token: Token[Context]

    def __init__(self, telemetry: Telemetry, scope: Scope, translator: Translator, model: object) -> None:
        self._telemetry = telemetry
        self._scope = scope
        self._translator = translator
        self._model = model[:_SHOWN] if isinstance(model, str) else ""
        self._turns: list[ObservedTurn] = []
        self._left = False
        self._pictures: list[ObservedPicture] = []

    def __enter__(self) -> Self:
        self._started = time.time_ns()
        parent = parent_of(self._scope)
        local = trace.get_current_span(parent).get_span_context()
        inside = local.is_valid and not local.is_remote
        self._span = self._telemetry.tracer.start_span(
            "invoke_agent imagecall",
            parent,
            SpanKind.INTERNAL if inside else SpanKind.SERVER,
            {**_AGENT, "gen_ai.provider.name": "openai", "gen_ai.request.model": self._model},
            start_time=self._started,
        )
        self._context = set_span_in_context(self._span, parent)
        self._token = attach(self._context)
        self._telemetry.active.add(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        detach(self._token)
        self._telemetry.active.add(-1)
        ended = time.time_ns()
        seconds = max(0, ended - self._started) / 1e9
        outcome, problem = self._outcome(kind)
        measured = {**_AGENT, OUTCOME: outcome}
        if problem:
            measured["error.type"] = problem
            self._span.set_status(Status(StatusCode.ERROR))
        self._telemetry.responses.record(seconds, measured)
        pictures = [picture.outcome for picture in self._pictures]
        facts: dict[str, Any] = {
            "turns": len(self._turns),
            **{f"pictures.{one}": pictures.count(one) for one in ("completed", "failed", "cancelled")},
            "pictures.size": sum(picture.size for picture in self._pictures),
        }
        if identifier := self._translator.response_id:
            self._span.set_attribute("gen_ai.response.id", identifier)
        self._span.set_attributes(measured | {f"imagecall.{name}": value for name, value in facts.items()})
        self._log(outcome, identifier, seconds, facts)
        self._span.end(ended)

    def turn(self, scope: Scope, reader: TurnReader) -> ObservedTurn:
        """Return what observes a turn when it is put around it; the headers in its scope get the trace."""
        self._turns.append(ObservedTurn(self._telemetry, self._context, scope, reader, self._model))
        return self._turns[-1]

    def picture(self, call: ToolCall) -> ObservedPicture:
        """Return what observes a picture as soon as it is entered."""
        self._pictures.append(ObservedPicture(self._telemetry, self._context, call))
        return self._pictures[-1]

    def client_left(self) -> None:
        """Note that nobody waits for the response any more."""
        self._left = True

    def _outcome(self, kind: type[BaseException] | None) -> tuple[str, str]:
        """Return in a word how it ended, and the class of the error if that is one."""
        status = self._translator.status
        if status:
            return status, "" if status in _WELL else "response_failed"
        if self._left:
            return "client_left", ""
        first = self._turns[0]
        if first.reader.mode == "passed":
            return "refused", str(first.reader.status)
        return "failed", first.problem if kind is None else kind.__name__

    def _log(self, outcome: str, identifier: str, seconds: float, facts: dict[str, Any]) -> None:
        for note in self._translator.notes:
            log.warning("%s", note)
        for words in self._translator.words:
            log.debug("the model server said: %s", words)
        if not log.isEnabledFor(logging.INFO):
            return
        log.info(
            "response %s of %r: %s after %.3f s, %d turn(s), "
            "pictures: %d completed, %d failed, %d cancelled, %d bytes",
            one_line(identifier[:_SHOWN]) or "(none)",
            self._model,
            outcome,
            seconds,
            *facts.values(),
            extra={
                "response_id": identifier,
                "model": self._model,
                "outcome": outcome,
                "duration": round(seconds, 6),
                **{name.replace(".", "_"): value for name, value in facts.items()},
            },
        )
