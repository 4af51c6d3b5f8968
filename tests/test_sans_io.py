"""The core does no I/O and knows nothing of those who drive it. A linter cannot see relative imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import imagecall.events
import pytest

PACKAGE = "imagecall.events"
ROOT = Path(imagecall.events.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

BANNED = {
    "asyncio",
    "anyio",
    "aiohttp",
    "time",
    "random",
    "uuid",
    "secrets",
    "datetime",
    "socket",
    "threading",
    "subprocess",
    "os",
    "logging",
    "imagecall.middleware",
    "middleware",
}


def imported(source: str, package: str) -> Iterator[str]:
    """Name all modules that a file imports, also inside functions and by call, in absolute form."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("__import__", "import_module", "exec", "eval"):
                yield f"{name}()"


def forbidden(source: str, package: str = PACKAGE) -> list[str]:
    """Tell which of a file's imports the core must not have."""
    modules = imported(source, package)
    return [name for name in modules if name.endswith("()") or any(within(name, one) for one in BANNED)]


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_of_the_core_imports_neither_io_nor_the_middleware(file: Path) -> None:
    folders = file.relative_to(ROOT).parent.parts
    assert forbidden(file.read_text(), ".".join([PACKAGE, *folders])) == []


def test_all_files_of_the_core_are_looked_at() -> None:
    names = {str(file.relative_to(ROOT)) for file in FILES}
    assert {"translator.py", "sse.py", "tools/base.py", "tools/image_generation.py"} <= names


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "import os.path as p",
        "from time import monotonic",
        "from os import environ",
        "def f():\n    import logging",
        "import json, random",
        "from ..middleware import settings",
        "from .. import middleware",
        "from ..middleware.settings import Settings",
        "import imagecall.middleware",
        "from imagecall import middleware",
        "from imagecall.middleware.runner import Runner",
        "import importlib\nimportlib.import_module('os')",
        "__import__('os')",
        "if True:\n    from concurrent import futures\n    import anyio.abc",
    ],
)
def test_every_spelling_of_a_forbidden_import_is_seen(source: str) -> None:
    assert forbidden(source)


def test_a_folder_inside_the_core_reaches_the_middleware_with_one_more_dot() -> None:
    assert forbidden("from ...middleware import settings", f"{PACKAGE}.tools")
    assert not forbidden("from ..wire import loads", f"{PACKAGE}.tools")


@pytest.mark.parametrize("source", ["import osmium", "from .time_of_day import x", "from .os import y"])
def test_names_that_only_look_alike_are_allowed(source: str) -> None:
    assert forbidden(source) == []
