"""The matrix as a Markdown table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Cell", "Row", "draw", "tally"]

_SIGNS = {"good": "yes", "free": "text", "broken": "**no**"}
_LEGEND = (
    "yes: as it must be, by the tests' rules and the official SDK. "
    "text: a valid response, but the model, which was free to choose, did something else. no: see below."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """What one situation came to.

    Attributes:
        mark: as wanted; valid, but the model chose otherwise; wrong.
        note: what was otherwise or wrong.
    """

    mark: Literal["good", "free", "broken"]
    note: str = ""

    def told(self) -> str:
        """Say it in one line."""
        return f"{self.mark}, {self.note}" if self.note else self.mark


@dataclass(slots=True)
class Row:
    """One server in one place; cells by the names of the situations, which may be missing."""

    server: str
    place: str
    versions: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)
    trouble: str = ""


def draw(head: str, situations: list[str], rows: list[Row]) -> str:
    """Draw the table: a line for each server and place, what is wrong below it."""
    lines = [
        f"{head}. {_LEGEND}",
        "",
        f"| server | imagecall | {' | '.join(situations)} |",
        f"| --- | --- |{' --- |' * len(situations)}",
    ]
    notes = []
    for row in rows:
        server = f"{row.server} ({row.versions})" if row.versions else row.server
        signs = [_SIGNS[row.cells[name].mark] if name in row.cells else "**missing**" for name in situations]
        lines.append(f"| {server} | {row.place} | {' | '.join(signs)} |")
        if row.trouble:
            notes.append(f"- {row.server}, {row.place}: {row.trouble}")
        notes += [
            f"- {row.server}, {row.place}, {name}: {cell.note}"
            for name, cell in row.cells.items()
            if cell.note
        ]
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


def tally(situations: list[str], rows: list[Row]) -> tuple[int, int]:
    """Count the cells that passed and those that failed; a missing one has failed."""
    cells = [row.cells.get(name) for row in rows for name in situations]
    failed = sum(cell is None or cell.mark == "broken" for cell in cells)
    return len(cells) - failed, failed
