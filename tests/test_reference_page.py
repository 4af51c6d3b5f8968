"""The reference names what is public, and the site's menu names every page."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NAMED = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference.md").read_text(), flags=re.MULTILINE)
PUBLIC = [
    "imagecall.middleware",
    "imagecall.middleware.backends.base",
    "imagecall.middleware.backends.testing",
    "imagecall.middleware.testing.upstream",
    "imagecall.middleware.replay",
    "imagecall.middleware.recorded",
    "imagecall.events.errors",
    "imagecall.events.state",
]
NOT_TOLD = {"Chunks", "Meta", "RecordedOrder"}
"""Names of types without methods, and what `replay_recording` alone needs."""


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    names = {name.rpartition(".")[2] for name in NAMED}
    assert set(importlib.import_module(module).__all__) - names - NOT_TOLD == set()


@pytest.mark.parametrize("name", NAMED)
def test_what_the_reference_names_is_public_and_its_docstring_names_the_arguments(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    home = importlib.import_module(module)
    assert attribute in home.__all__
    thing = getattr(home, attribute)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        told = inspect.getdoc(thing) or ""
        assert told
        if "Args:" in told or "Attributes:" in told:
            parameters = inspect.signature(thing).parameters.values()
            own = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
            untold = [name for name in own if name not in told and name != "kwargs"]
            assert untold == []


def pages(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    inner = nav.values() if isinstance(nav, dict) else nav
    return {page for one in inner for page in pages(one)}


def test_every_page_is_in_the_menu() -> None:
    menu = pages(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    assert {file.name for file in (ROOT / "docs").glob("*.md")} - menu == set()
