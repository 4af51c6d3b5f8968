"""What a process with OpenTelemetry's SDK would export of the middleware, kept in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imagecall.middleware.telemetry.telemetry import Telemetry
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ["TRACE", "TRACEPARENT", "Observatory"]

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = (b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())
"""The example of the W3C's recommendation."""


class Observatory:
    """Providers of its own, so that nothing of this process's other tests is seen.

    Attributes:
        telemetry: what the middleware is given.
        tracer: for spans around it.
    """

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        traces = TracerProvider(shutdown_on_exit=False)
        traces.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(traces, meters)
        self.tracer = traces.get_tracer("test")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """All ended spans, in the order of their beginning."""
        return sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)

    def span(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.spans if span.name == name]
        return span

    def tree(self) -> list[str]:
        """Write the spans down: deeper ones further to the right; kind and, after `!`, the error."""
        spans = self.spans
        known = {span.context.span_id for span in spans if span.context}
        roots = [span for span in spans if span.parent is None or span.parent.span_id not in known]
        return [line for root in roots for line in self._lines(root, "")]

    def _lines(self, span: ReadableSpan, indent: str) -> list[str]:
        attributes = dict(span.attributes or {})
        error = f" ! {attributes['error.type']}" if "error.type" in attributes else ""
        assert (span.status.status_code.name == "ERROR") == bool(error)
        outcome = f" {attributes['imagecall.outcome']}" if "imagecall.outcome" in attributes else ""
        below = [
            one
            for one in self.spans
            if one.parent and span.context and one.parent.span_id == span.context.span_id
        ]
        line = f"{indent}{span.name} {span.kind.name}{outcome}{error}"
        return [line, *(line for one in below for line in self._lines(one, f"{indent}  "))]

    def measured(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """Return each instrument's points: their attributes, and what was summed up or how often."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    said = "count" if isinstance(metric.data, Histogram) else "value"
                    found[f"{metric.name} {metric.unit}"] = [
                        (dict(point.attributes or {}), getattr(point, said))
                        for point in metric.data.data_points
                    ]
        return found
