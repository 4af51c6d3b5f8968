"""The Python files of docs/recipes.md, so that what is tried is what stands there."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["write_recipe"]

_PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"


def write_recipe(name: str, folder: Path) -> Path:
    """Write the block whose first line is a comment with the file's name; return the folder.

    Raises:
        LookupError: there is no such block, or there are several.
    """
    blocks = re.findall(
        rf"^```python\n(# {re.escape(name)}\n.*?)^```$", _PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    if len(blocks) != 1:
        raise LookupError(f"{_PAGE.name} has {len(blocks)} blocks that begin with '# {name}'")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(blocks[0], "utf-8")
    return folder
