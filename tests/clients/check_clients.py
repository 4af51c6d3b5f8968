"""Real clients in front of the real server: each in every situation of the matrix, in its own forms.

Not part of the ordinary run, since it installs the clients; `python -m tests.clients` runs it and makes the
table. Each client's own objects must hold the very bytes that the picture maker made; the model server must
have got plain functions, calls and outputs, no picture, and not one request more than it takes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from imagecall.middleware.embedded.llm import available
from installing import HERE, command
from known_clients import CLIENTS
from matrix import SCENES, Cell, Client, Scene, cells
from painters import png
from parts import require
from remembering import RememberingModel
from stage import Stage, real_model, set_stage

_LIMIT = 600
"""Seconds that a client may take."""

ADDRESS = "http://127.0.0.1:8766/v1"
"""Where `imagecall serve` listens by default, and the snippets therefore ask."""

ENVIRONMENT = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

CELLS = [pytest.param(cell, id=cell.name) for cell in cells(CLIENTS) if cell.situation in SCENES]
SNIPPETS = [pytest.param(cell, id=cell.name) for cell in cells(CLIENTS) if cell.situation not in SCENES]


@pytest.fixture(scope="session")
def scripted() -> Iterator[Stage]:
    with set_stage() as stage:
        yield stage


@pytest.fixture(scope="session")
def real() -> Iterator[Stage]:
    """The model of the demo, which is real: it calls the tool because it was asked to draw."""
    require(available() is None, str(available()))
    with set_stage(real_model()) as stage:
        yield stage


@pytest.fixture(autouse=True)
def tried(request: pytest.FixtureRequest, record_property: Any) -> None:
    cell = request.getfixturevalue("cell")
    record_property("cell", [cell.client.driver, cell.situation, cell.form])


@pytest.mark.parametrize("cell", CELLS)
def test_a_client_gets_its_pictures(cell: Cell, scripted: Stage, tmp_path: Path) -> None:
    scene, client = SCENES[cell.situation], cell.client
    scripted.clear()
    order = {
        "base_url": scripted.url,
        "form": cell.form,
        "prompt": scene.prompt,
        "again": scene.again,
        "tool": scene.tool,
        "forced": scene.forced,
    }
    words = run([*command(client, HERE / "drivers" / client.driver, tmp_path), json.dumps(order)], tmp_path)
    told, wanted = json.loads(words.splitlines()[-1]), expected(client, scene)
    if cell.situation == "two at once":  # some keep the order in which the pictures were finished
        told["pictures"].sort()
        wanted["pictures"].sort()
    assert told == wanted
    requests = scripted.requests()
    if cell.form == "websocket":
        assert set(requests) == {"GET /v1/responses"}
    else:
        assert requests == ["POST /v1/responses"] * len(scene.texts)
    check_painter(scripted, scene)
    check_model(scripted.model, scene)


@pytest.mark.parametrize("cell", SNIPPETS)
def test_a_snippet_makes_a_picture(cell: Cell, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    stage: Stage = request.getfixturevalue("scripted" if cell.situation == "snippet" else "real")
    stage.clear()
    script = tmp_path / cell.client.snippet
    text = (HERE / "snippets" / cell.client.snippet).read_text()
    assert ADDRESS in text
    script.write_text(text.replace(ADDRESS, stage.url))
    words = run(snippet_command(cell.client, script), tmp_path)
    assert stage.requests() == ["POST /v1/responses"]
    (asked,) = stage.painter.asked
    assert "cat" in asked.prompt.lower()
    assert (tmp_path / "cat.png").read_bytes() == png(asked.prompt)
    assert words.strip()


def snippet_command(client: Client, script: Path) -> list[str]:
    if script.suffix != ".html":
        return command(client, script, script.parent)
    return [*command(client, HERE / "drivers" / "browser_page.py", script.parent), str(script)]


def run(words: list[str], folder: Path) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=_LIMIT, check=False, cwd=folder, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digest(prompt: str) -> str:
    return hashlib.sha256(png(prompt)).hexdigest()


def is_made(prompt: str) -> bool:
    return "forbidden" not in prompt


def expected(client: Client, scene: Scene) -> Any:
    """What a driver must tell."""
    calls = [prompt for calls in scene.calls for prompt in calls]
    return {
        "pictures": [digest(prompt) for prompt in calls if is_made(prompt)],
        "texts": list(scene.texts),
        "states": [client.made if is_made(prompt) else client.failed for prompt in calls],
        "ends": [client.end] * len(scene.texts) if client.end else [],
        "previews": [digest(prompt) for prompt in scene.previews],
    }


def check_painter(stage: Stage, scene: Scene) -> None:
    """Hold what the picture maker was asked against the scene: a change starts from the picture before it."""
    asked = sorted((one.prompt, [file.data for file in one.files]) for one in stage.painter.asked)
    before = {"make it blue": [png("a red cat")]}
    assert asked == sorted((prompt, before.get(prompt, [])) for calls in scene.calls for prompt in calls)


def check_model(model: RememberingModel, scene: Scene) -> None:
    """Hold what the model server was asked against what any of them understands."""
    pictures = [base64.b64encode(png(prompt)) for calls in scene.calls for prompt in calls]
    for body in model.asked:
        assert not [one for one in pictures if one in body]
        assert {tool["type"] for tool in json.loads(body)["tools"]} == {"function"}
    calls, known = [], 0
    for made in scene.calls:
        calls += [known, known + len(made)]  # each response takes a turn that calls and one that tells of it
        known += len(made)
    kinds = [
        [item.get("type", "message") for item in items if item.get("type") != "reasoning"]
        for items in model.read
    ]
    assert {kind for turn in kinds for kind in turn} == {"message", "function_call", "function_call_output"}
    assert [turn.count("function_call") for turn in kinds] == calls
    assert [turn.count("function_call_output") for turn in kinds] == calls
    for item in [item for items in model.read for item in items]:
        assert item.get("type") != "function_call_output" or isinstance(item["output"], str)
