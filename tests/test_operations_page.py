"""docs/operations.md names what there is: spans, attributes, measurements, fields of the log, reasons."""

from __future__ import annotations

import inspect
import logging
import re
from pathlib import Path

import pytest
from asgi import ask, draw, middleware
from imagecall.middleware import serving
from model_server import ModelServer, calling, saying
from observing import Observatory
from painters import Painter, png

PAGE = (Path(__file__).parent.parent / "docs" / "operations.md").read_text()


def named() -> set[str]:
    """Return all that stands between backticks, `.a` made whole with the name before it in its cell."""
    found = set()
    for part in re.split(r"[|\n]", PAGE):
        stem = ""
        for word in re.findall(r"`([^`]+)`", part):
            if word.startswith("."):
                found.add(stem + word)
            else:
                found.add(word)
                stem = word.rpartition(".")[0]
    return found


async def test_each_span_attribute_and_measurement_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "imagecall")
    observatory = Observatory()
    server = ModelServer(calling("a kite", "a ship"), saying("Done."))
    painter = Painter(makes=lambda prompt: png(prompt) if "kite" in prompt else b"<html>")
    tools = [{"type": "image_generation", "model": "gpt-image-2"}]
    await ask(middleware(server, painter, telemetry=observatory.telemetry), draw(tools=tools))
    spans = {span.name.replace("local-model", "{model}") for span in observatory.spans}
    attributes = {name for span in observatory.spans for name in span.attributes or {}}
    instruments = {name.split(" ")[0] for name in observatory.measured()}
    assert spans | attributes | instruments <= named()
    usual = logging.makeLogRecord({}).__dict__.keys() | {"message", "asctime", "taskName"}
    [record] = [one for one in caplog.records if one.getMessage().startswith("response")]
    assert record.__dict__.keys() - usual <= named()


def test_each_reason_is_named() -> None:
    checks = re.findall(r'"(\w+)": \w+\.check', inspect.getsource(serving.upstream_app))
    assert len(checks) == 4
    assert set(checks) <= named()
