"""The log of the commands' own process: text and JSON."""

from __future__ import annotations

import copy
import io
import json
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
from asgi import post
from imagecall.middleware.logs import LogFormat, log_config
from imagecall.middleware.request_id import identified
from observing import Observatory


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Loggers as a new process has them, whatever a uvicorn in this one has set; in the end as they were."""
    logger = logging.getLogger()
    loggers = [logger, logging.getLogger("uvicorn"), logging.getLogger("uvicorn.access")]
    before = [(one, one.handlers[:], one.level, one.propagate) for one in loggers]
    for one in loggers[1:]:
        one.handlers[:], one.propagate = [], True
        one.setLevel(logging.NOTSET)
    yield logger
    for one, handlers, level, propagate in before:
        one.handlers[:], one.propagate = handlers, propagate
        one.setLevel(level)


def configured(kind: LogFormat) -> io.StringIO:
    """Set the log up as a command does, but for where it goes."""
    written = io.StringIO()
    config: dict[str, Any] = copy.deepcopy(log_config(kind))
    config["handlers"]["stderr"]["stream"] = written
    logging.config.dictConfig(config)
    return written


def test_a_line_of_text_names_the_request(root: logging.Logger) -> None:
    written = configured("text")
    with identified(post(headers=[(b"x-request-id", b"mine")]), lambda prefix: prefix):
        logging.getLogger("uvicorn.access").info("GET %s", "/v1/models")
    logging.getLogger("imagecall").info("done")
    logging.getLogger("imagecall").debug("not shown")
    access, done = written.getvalue().splitlines()
    assert access.endswith("INFO uvicorn.access [mine]: GET /v1/models")
    assert done.endswith("INFO imagecall [-]: done")


def test_a_line_of_json_has_the_records_own_fields_beside_the_usual_ones(root: logging.Logger) -> None:
    written = configured("json")
    with identified(post(headers=[(b"x-request-id", b"mine")]), lambda prefix: prefix):
        logging.getLogger("imagecall").warning("two\nlines of %s", "ä", extra={"turns": 2, "what": object})
    told = json.loads(written.getvalue())
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "WARNING",
        "logger": "imagecall",
        "message": "two\nlines of ä",
        "request_id": "mine",
        "turns": 2,
        "what": "<class 'object'>",
    }
    assert written.getvalue().count("\n") == 1


def test_a_line_of_json_has_the_traceback_and_the_trace_where_there_is_one(root: logging.Logger) -> None:
    written = configured("json")
    observatory = Observatory()
    try:
        int("no")
    except ValueError:
        with observatory.tracer.start_as_current_span("outer") as span:
            logging.getLogger("imagecall").exception("it failed")
    told = json.loads(written.getvalue())
    own = span.get_span_context()
    assert (told["trace_id"], told["span_id"]) == (f"{own.trace_id:032x}", f"{own.span_id:016x}")
    assert told["exception"].endswith("literal for int() with base 10: 'no'")
    assert "request_id" not in told
