"""What an SDK still holds when the server stops is exported."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from asgi import lifespan
from imagecall.middleware.telemetry.flushing import Flushing, flush
from loopback import ask, http_scope
from model_server import ModelServer, saying

SDK = """
from imagecall.middleware.telemetry.flushing import flush
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
import os

traces = TracerProvider()
traces.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(traces)
metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())]))
trace.get_tracer("t").start_span("a-span").end()
metrics.get_meter("t").create_counter("a-counter").add(1)
flush()
os._exit(0)
"""


def test_an_sdk_exports_what_it_holds_though_no_exit_handler_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SDK], check=True, capture_output=True, text=True, env={**os.environ}
    )
    assert '"a-span"' in done.stdout
    assert '"a-counter"' in done.stdout


def test_both_kinds_of_providers_are_given_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    class Provider:
        def force_flush(self, timeout_millis: int) -> bool:
            given.append(timeout_millis)
            return True

    for getter in ("trace.get_tracer_provider", "metrics.get_meter_provider"):
        monkeypatch.setattr(f"imagecall.middleware.telemetry.flushing.{getter}", Provider)
    flush()
    assert given == [5_000, 5_000]


def test_without_an_sdk_there_is_nothing_to_flush() -> None:
    flush()


async def test_it_is_flushed_once_the_application_has_shut_down_and_not_before() -> None:
    flushed: list[threading.Thread] = []
    app = Flushing(ModelServer(saying("Hello.")), lambda: flushed.append(threading.current_thread()))
    async with lifespan(app):
        [head, *_] = await ask(app, http_scope())
        assert head["status"] == 200
        assert flushed == []
    [thread] = flushed
    assert thread is not threading.main_thread()


async def test_an_application_that_does_not_start_is_not_flushed() -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        raise ValueError("no lifespan")

    with pytest.raises(ValueError, match="no lifespan"):
        await Flushing(app)({"type": "lifespan"}, app, app)  # type: ignore[arg-type]  # nobody calls these
