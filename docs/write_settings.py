"""Writes docs/settings.md from the settings themselves: `python docs/write_settings.py`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from imagecall.middleware.settings import Settings
from pydantic.fields import FieldInfo

_INTRODUCTION = """\
# Settings

Each is a keyword argument (`max_turns=4`), a variable (`IMAGECALL_MAX_TURNS=4`) and an option of `serve` and
`record` (`--max-turns 4`); arguments win over variables. Lists are separated by commas, mappings are JSON
objects. Sizes are in bytes, times in seconds. In Python `backend`, `store` and `owner` also take objects: see
[backends](backends.md) and [conversations](conversations.md).

| setting | default | meaning |
| --- | --- | --- |
"""


def page() -> str:
    """Make the page."""
    rows = (_row(name, field) for name, field in Settings.model_fields.items())
    return _INTRODUCTION + "".join(rows)


def _row(name: str, field: FieldInfo) -> str:
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    choice = f" One of {', '.join(words)}." if words and name != "backend" else ""
    return f"| `{name}` | {_default(field.default)} | {field.description}{choice} |\n"


def _default(value: object) -> str:
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    if isinstance(value, int) and value >= 1 << 18 and value % (1 << 10) == 0:
        return f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,g}" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    (Path(__file__).parent / "settings.md").write_text(page())
