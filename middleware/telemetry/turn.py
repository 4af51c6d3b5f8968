"""One request to the model server, as operators see it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from starlette.types import Scope

from ..turns import InnerTurn, TurnReader
from .propagation import add_trace_headers
from .telemetry import Telemetry

__all__ = ["ObservedTurn"]

_CHAT = {
    "gen_ai.operation.name": "chat",
    # The API that is spoken, whoever serves it.
    "gen_ai.provider.name": "openai",
}


class ObservedTurn:
    """The span and the measurement of one turn, from its request until its answer is complete.

    Args:
        telemetry: where they go.
        parent: the context of the response.
        scope: of the turn's request, whose headers get the trace context.
        reader: of its answer.
        model: that is asked for.

    Attributes:
        reader: of the answer.
        problem: the class of what went wrong; "" if nothing has.
    """

    __slots__ = (
        "_model",
        "_parent",
        "_scope",
        "_span",
        "_started",
        "_telemetry",
        "problem",
        "reader",
    )

    _span: Span
    _started: int

    def __init__(
        self, telemetry: Telemetry, parent: Context, scope: Scope, reader: TurnReader, model: str
    ) -> None:
        self._telemetry = telemetry
        self._parent = parent
        self._scope = scope
        self._model = model
        self.reader = reader
        self.problem = ""

    async def around(self, run: Callable[[InnerTurn], Awaitable[None]], turn: InnerTurn) -> None:
        """Run the turn in the context of its span. Cancelled before its first step, it has neither."""
        token = attach(self._begin())
        try:
            await run(turn)
        finally:
            detach(token)
            self.problem = _problem(turn)
            self._end()

    def _begin(self) -> Context:
        self._started = time.time_ns()
        self._span = self._telemetry.tracer.start_span(
            f"chat {self._model}",
            self._parent,
            SpanKind.CLIENT,
            {**_CHAT, "gen_ai.request.model": self._model, "imagecall.turn": self.reader.number},
            start_time=self._started,
        )
        context = set_span_in_context(self._span, self._parent)
        self._scope["headers"] = add_trace_headers(self._scope["headers"], context)
        return context

    def _end(self) -> None:
        reader, span = self.reader, self._span
        if reader.status:
            span.set_attribute("http.response.status_code", reader.status)
        if reader.heard is not None:
            span.set_attributes(_facts(reader.heard.response))
        measured = dict(_CHAT)
        if self.problem:
            measured["error.type"] = self.problem
            span.set_attribute("error.type", self.problem)
            span.set_status(Status(StatusCode.ERROR))
        # The application may go on for long after its answer: that is none of the turn's time.
        ended = reader.ended_at or time.time_ns()
        self._telemetry.turns.record(max(0, ended - self._started) / 1e9, measured)
        span.end(ended)


def _facts(response: dict[str, Any]) -> dict[str, str | int]:
    """Choose what of the model server's response object is fit for a span."""
    facts: dict[str, str | int] = {}
    for name in ("id", "model"):
        if isinstance(told := response.get(name), str):
            facts[f"gen_ai.response.{name}"] = told
    usage = response.get("usage")
    for name in ("input_tokens", "output_tokens"):
        if isinstance(usage, dict) and isinstance(count := usage.get(name), int):
            facts[f"gen_ai.usage.{name}"] = count
    return facts


def _problem(turn: InnerTurn) -> str:
    reader = turn.reader
    if reader.mode in ("passed", "refused"):
        return str(reader.status)
    if turn.error is not None:
        return type(turn.error).__name__
    if not reader.ended:  # nobody wanted the rest
        return "abandoned"
    return "response_failed" if reader.heard is None or reader.heard.status == "failed" else ""
