"""Writes docs/settings.md from the settings themselves: `python docs/write_settings.py`."""

from __future__ import annotations

from importlib import import_module
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


_FIXED = (
    (
        "levels of JSON",
        "events.wire._MAX_DEPTH",
        "JSON writers give up a little later; else a 400",
    ),
    (
        "items that a request names by their ids alone",
        "middleware.stored.lookup._MAX_REFERENCES",
        "each costs the store some questions, before anybody has checked who asks; beyond is a 400",
    ),
    (
        "earlier pictures in reach of an edit",
        "middleware.stored.lookup.MAX_REACH",
        "older ones are hardly meant",
    ),
    ("pictures that one edit starts from", "events.tools.selectors._MOST", "OpenAI's own number"),
    ("redirects of a fetched URL", "middleware.edits.fetcher._MAX_REDIRECTS", "each is checked like the URL"),
    ("seconds for a fetched URL", "middleware.edits.fetcher._TIMEOUT", "what takes longer will hardly come"),
    (
        "bytes of a file in `artifact_dir`",
        "middleware.edits.artifacts._MAX_BYTES",
        "as `max_image`; of a larger picture the log is told, and the client gets it all the same",
    ),
    ("bytes of one header of the upstream", "middleware.proxy._MAX_HEADER", "gateways put a lot into one"),
    ("bytes read of a refused follow-up", "middleware.turns._REFUSAL", "enough for the words"),
    (
        "bytes read of an image server's error",
        "middleware.backends.images_api.server._ERROR_BODY",
        "enough for the words",
    ),
    ("characters shown of these words", "middleware.backends.words._SHOWN", "they may hold anything"),
    (
        "seconds until a store that is silent is given up",
        "middleware.stored.safe._PATIENCE",
        "the response goes on without it",
    ),
)
"""What it is, where it stands, why it is as large as this."""

_FIXED_INTRODUCTION = """
## Fixed limits

No settings, since nobody was seen to need another number.

| limit | is | why |
| --- | --- | --- |
"""


def page() -> str:
    """Make the page."""
    rows = (_row(name, field) for name, field in Settings.model_fields.items())
    fixed = (f"| {what} | {_fixed(place)} | {why} |\n" for what, place, why in _FIXED)
    return _INTRODUCTION + "".join(rows) + _FIXED_INTRODUCTION + "".join(fixed)


def _fixed(place: str) -> str:
    module, _, name = place.rpartition(".")
    return _default(getattr(import_module(f"imagecall.{module}"), name))


def _row(name: str, field: FieldInfo) -> str:
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    choice = f" One of {', '.join(words)}." if words and name != "backend" else ""
    size = str(field.description).startswith("Bytes")
    default = _size(field.default) if size else _default(field.default)
    return f"| `{name}` | {default} | {field.description}{choice} |\n"


def _size(value: int) -> str:
    assert value % (1 << 20) == 0, "write so many bytes in another way"
    return f"{value >> 20} MiB"


def _default(value: object) -> str:
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,g}" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    (Path(__file__).parent / "settings.md").write_text(page())
