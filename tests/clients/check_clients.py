"""Real clients hold a conversation about a picture, each in its own form, on a real server.

Not part of the ordinary run, since it installs the clients; `CLIENTS_CACHE` names the folder to keep them in.
`python -m pytest tests/clients/check_clients.py` runs all, `-k` some of them.

Each driver asks for a picture and then says `make it blue`. Whatever form the client gives to the
conversation's past, the picture maker must get the first picture with the second request, and the model
server plain functions, calls and outputs, and no picture at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from imagecall.middleware import ImageGenerationMiddleware
from installing import node_folder, python_of_clients
from painters import Painter, png
from remembering import RememberingModel
from serving import serve
from starlette.types import Receive, Scope, Send

FORMS = {
    "py_openai.py": ("whole", "stream", "previous", "id", "reference", "websocket"),
    "py_agents.py": ("whole", "stream", "previous", "websocket"),
    "py_langchain.py": ("whole", "stream", "unstored"),
    "py_pydantic_ai.py": ("whole", "stream", "websocket"),
    "node_openai.mjs": ("whole", "stream", "previous", "websocket"),
    "node_agents.mjs": ("whole", "stream", "previous", "websocket"),
    "node_ai_sdk.mjs": ("whole", "stream", "previews"),
}
"""Driver → the forms it knows."""

CASES = [
    pytest.param(driver, form, id=f"{Path(driver).stem}-{form}") for driver in FORMS for form in FORMS[driver]
]
CAT, BLUE = png("a red cat"), png("make it blue")
_LIMIT = 120
"""Seconds that a driver may take."""


@pytest.fixture(scope="session")
def python() -> Path:
    return python_of_clients()


@pytest.fixture(scope="session")
def node() -> Path:
    return node_folder()


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Callable[[str, str, str], Any]:
    """Run a driver against a server of its own; return what it tells."""

    def told(driver: str, form: str, url: str) -> Any:
        if driver.endswith(".py"):
            command = [request.getfixturevalue("python"), Path(__file__).with_name(driver)]
        else:
            folder = request.getfixturevalue("node")
            command = [folder / "node_modules" / ".bin" / "node", folder / driver]
        done = subprocess.run(
            [*command, f"{url}/v1", form], capture_output=True, text=True, timeout=_LIMIT, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return told


@pytest.mark.parametrize(("driver", "form"), CASES)
def test_make_it_blue(run: Any, driver: str, form: str) -> None:
    model, painter, seen = RememberingModel(), Painter(), set()
    app = ImageGenerationMiddleware(model, painter)

    async def entrance(scope: Scope, receive: Receive, send: Send) -> None:
        seen.add(scope["type"])
        await app(scope, receive, send)

    with serve(entrance) as url:
        told = run(driver, form, url)
    assert seen == {"lifespan", "websocket" if form == "websocket" else "http"}
    assert told["pictures"] == [hashlib.sha256(one).hexdigest() for one in (CAT, BLUE)]
    assert told["texts"] == ["Here it is: a red cat.", "Done: make it blue."]
    assert [(one.prompt, [image.data for image in one.images]) for one in painter.asked] == [
        ("a red cat", []),
        ("make it blue", [CAT]),
    ]
    check_asked(model)


def check_asked(model: RememberingModel) -> None:
    """Hold what the model server was asked against what any of them understands."""
    assert len(model.asked) == 4
    for body in model.asked:
        assert base64.b64encode(CAT) not in body
        assert base64.b64encode(BLUE) not in body
        assert {tool["type"] for tool in json.loads(body)["tools"]} == {"function"}
    kinds = [
        [item.get("type", "message") for item in items if item.get("type") != "reasoning"]
        for items in model.read
    ]
    assert {kind for turn in kinds for kind in turn} == {"message", "function_call", "function_call_output"}
    pair = ["function_call", "function_call_output"]
    for turn in kinds[1:]:
        assert [kind for kind in turn if kind != "message"] == pair * (2 if turn is kinds[3] else 1)
    for items in model.read:
        for item in items:
            assert item.get("type") != "function_call_output" or isinstance(item["output"], str)
