"""The clients, each in the exact versions that are named beside this file, in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from matrix import Client
from parts import require

__all__ = ["HERE", "command", "install", "version_of"]

HERE = Path(__file__).parent

_LIMIT = 900
"""Seconds that an installation may take."""

_LOCK = HERE / "package-lock.json"
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
"""Clients are free of the versions that the project itself is tested with."""


def install(client: Client) -> None:
    """Install a client unless it is there."""
    if client.is_node:
        _node_folder()
    else:
        _python(client)


def command(client: Client, script: Path, folder: Path) -> list[str]:
    """Return the command that runs a script with a client, which is installed before if need be.

    Args:
        client: the client.
        script: what to run.
        folder: an empty folder for this run: Node looks for packages beside the script.
    """
    if not client.is_node:
        return [str(_python(client)), str(script)]
    packages = _node_folder() / "node_modules"
    (folder / "node_modules").symlink_to(packages)
    for file in (script, HERE / "drivers" / "driver.mjs"):
        if file.parent != folder:
            shutil.copy(file, folder)
    return [str(packages / ".bin" / "node"), str(folder / script.name)]


def version_of(client: Client, package: str) -> str:
    """Return the version of a package that a client is tried with."""
    if client.is_node:
        return str(json.loads(_LOCK.read_text())["packages"][f"node_modules/{package}"]["version"])
    pairs = (line.split("==") for line in _pins(client).read_text().split())
    return next(version for name, version in pairs if name == package)


def _pins(client: Client) -> Path:
    return HERE / "pins" / f"{Path(client.driver).stem}.txt"


def _python(client: Client) -> Path:
    """Return the interpreter of a client's virtual environment."""
    pins = _pins(client)
    folder = _folder(pins.stem, pins)
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(pins))
        (folder / "ready").touch()
    return python


def _node_folder() -> Path:
    """Return a folder with the Node clients and a Node of their own."""
    folder = _folder("node", _LOCK)
    if not (folder / "ready").exists():
        npm = shutil.which("npm")
        require(npm is not None, "npm is not installed: apt-get install npm")
        folder.mkdir(parents=True, exist_ok=True)
        for file in (HERE / "package.json", _LOCK):
            shutil.copy(file, folder)
        _run(str(npm), "ci", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
        (folder / "ready").touch()
    return folder


def _folder(kind: str, wanted: Path) -> Path:
    cache = os.environ.get("CLIENTS_CACHE") or Path(tempfile.gettempdir()) / "imagecall-clients"
    return Path(cache).absolute() / f"{kind}-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"


def _run(*words: str, cwd: Path | None = None) -> None:
    subprocess.run(words, cwd=cwd, env=_ENVIRONMENT, check=True, timeout=_LIMIT)
