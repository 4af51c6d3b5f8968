"""The clients, each in the exact version that is named beside this file, in a folder of their own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from parts import require

__all__ = ["node_folder", "python_of_clients"]

HERE = Path(__file__).parent

_LIMIT = 900
"""Seconds that an installation may take."""


def python_of_clients() -> Path:
    """Return the interpreter of a virtual environment that has the Python clients."""
    wanted = HERE / "requirements.txt"
    folder = _folder("python", wanted)
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "--requirement", str(wanted))
        (folder / "ready").touch()
    return python


def node_folder() -> Path:
    """Return a folder with the Node clients, a Node of their own, and the drivers."""
    npm = shutil.which("npm")
    require(npm is not None, "npm is not installed: apt-get install npm")
    folder = _folder("node", HERE / "package.json")
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "package.json", folder)
        _run(str(npm), "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
        (folder / "ready").touch()
    for driver in HERE.glob("*.mjs"):
        shutil.copy(driver, folder)
    return folder


def _folder(kind: str, wanted: Path) -> Path:
    cache = os.environ.get("CLIENTS_CACHE") or Path(tempfile.gettempdir()) / "imagecall-clients"
    return Path(cache) / f"{kind}-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"


def _run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True, timeout=_LIMIT)
