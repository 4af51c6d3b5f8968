"""The tracer and the instruments, by the names of OpenTelemetry's conventions for generative AI.

Without an SDK in the process all of them do nothing. No measurement has an attribute that a client can
choose freely, such as the model's name: each new value would be a new time series.
"""

from __future__ import annotations

from opentelemetry import metrics, trace
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.trace import TracerProvider

__all__ = ["OUTCOME", "Telemetry"]

OUTCOME = "imagecall.outcome"
"""How a response or a picture ended, one word of a few."""

_SECONDS = [0.01 * 2**power for power in range(18)]
"""The conventions' own bounds up to 82 s, and on in the same manner for long responses."""

_BYTES = [float(1 << power) for power in range(10, 26)]


class Telemetry:
    """Where spans and measurements go: to the process's providers, or to those given.

    Args:
        tracer_provider: of the spans.
        meter_provider: of the measurements.

    Attributes:
        tracer: makes the spans.
        responses: seconds of a response.
        active: responses that are being made.
        turns: seconds of a request to the model server, until its answer is complete.
        pictures: seconds of a call of the tool, queue included.
        waits: seconds between a call and the moment at which the backend is asked for the picture.
        sizes: bytes of a finished picture.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self.tracer = trace.get_tracer("imagecall", tracer_provider=tracer_provider)
        meter = metrics.get_meter("imagecall", meter_provider=meter_provider)
        self.responses = _seconds(
            meter, "gen_ai.invoke_agent.duration", "A response, all its turns and pictures."
        )
        self.active = meter.create_up_down_counter(
            "imagecall.responses.active", "{response}", "Responses that are being made."
        )
        self.turns = _seconds(meter, "gen_ai.client.operation.duration", "A request to the model server.")
        self.pictures = _seconds(meter, "gen_ai.execute_tool.duration", "A picture, queue included.")
        self.waits = _seconds(
            meter, "imagecall.picture.queue.duration", "Before a picture's backend is asked."
        )
        self.sizes = meter.create_histogram(
            "imagecall.picture.size",
            "By",
            "A finished picture.",
            explicit_bucket_boundaries_advisory=_BYTES,
        )


def _seconds(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_SECONDS)
