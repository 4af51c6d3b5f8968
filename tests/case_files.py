"""The inputs of `tests/cases/`: what a client asked, and what model servers have really answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["STREAMED", "read_request", "read_turns"]

_CASES = Path(__file__).with_name("cases")

STREAMED = sorted(folder.name for folder in _CASES.iterdir() if (folder / "turn1.sse").exists())
"""The cases with an answer of the model server in them."""


def read_request(case: str, variant: str = "") -> dict[str, Any]:
    """Read the client's request: `request.json`, or `request.VARIANT.json`."""
    name = f"request.{variant}.json" if variant else "request.json"
    request: dict[str, Any] = json.loads((_CASES / case / name).read_bytes())
    return request


def read_turns(case: str, variant: str = "") -> list[bytes]:
    """Read the model server's answers: `turn1.sse` (or `turn1.VARIANT.sse`), `turn2.sse`, …"""
    folder = _CASES / case
    first = f"turn1.{variant}.sse" if variant else "turn1.sse"
    later = sorted(path.name for path in folder.glob("turn[2-9].sse"))
    return [(folder / name).read_bytes() for name in (first, *later)]
