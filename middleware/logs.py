"""How the commands' own process shows its log: a line of text or a JSON object for each record."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal

from opentelemetry import trace

__all__ = ["JSONFormatter", "LogFormat", "LogLevel", "log_config"]

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

_TEXT = "%(asctime)s %(levelname)s %(name)s [%(request_id)s]: %(message)s"

_USUAL = {
    *logging.makeLogRecord({}).__dict__,
    "message",
    "asctime",
    "taskName",
    "color_message",
    "request_id",
}
"""What every record has; the rest was given by whoever wrote it."""


class JSONFormatter(logging.Formatter):
    """Writes a record as one line of JSON.

    It has `time` (RFC 3339, UTC), `level`, `logger`, `message`; where there is one, `request_id`, `trace_id`
    with `span_id`, and `exception`; and whatever else the record was given.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record down."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = getattr(record, "request_id", "-")
        if request_id != "-":
            told["request_id"] = request_id
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            told["trace_id"] = trace.format_trace_id(span.trace_id)
            told["span_id"] = trace.format_span_id(span.span_id)
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        told |= {name: value for name, value in record.__dict__.items() if name not in _USUAL}
        return json.dumps(told, default=str)


def log_config(kind: LogFormat, level: LogLevel = "info") -> dict[str, Any]:
    """Return what `logging.config.dictConfig`, or uvicorn in its own processes, makes the log of.

    uvicorn's lines, those about each access among them, go the way of all others.
    """
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"request_id": {"()": "imagecall.middleware.request_id.RequestIdFilter"}},
        "formatters": {
            "text": {"format": _TEXT},
            "json": {"()": "imagecall.middleware.logs.JSONFormatter"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": kind, "filters": ["request_id"]}
        },
        "root": {"level": level.upper(), "handlers": ["stderr"]},
    }
