"""Draws docs/call-states.svg and its table from the transitions themselves: `python docs/write_states.py`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from imagecall.events.state import TRANSITIONS, CallInput, CallState
from imagecall.events.tools.image_generation import ImageGeneration

FOLDER = Path(__file__).parent
PAGE = FOLDER / "how-it-works.md"
DRAWING = FOLDER / "call-states.svg"

Steps = dict[tuple[CallState, CallInput], tuple[CallState, tuple[str, ...]]]

_WIDTH, _HEIGHT = 128, 40
_COLUMN, _ROW = 250, 118
_LEFT, _RIGHT, _TOP = 215, 100, 30
_OPEN, _CLOSE = "<!-- states -->\n\n", "\n<!-- /states -->\n"
_HEAD = "| a call that is … | … on … | … becomes | and the client gets |\n| --- | --- | --- | --- |\n"

_STYLE = """\
<style>
.card { fill: #ffffff } .state { fill: #eef2f7; stroke: #5b6b80 } .final { stroke-width: 3 }
.step { fill: none; stroke: #5b6b80; stroke-width: 1.5 } .tip { fill: #5b6b80 }
text { font: 14px system-ui, sans-serif; fill: #1d2733 } .told { font-size: 12px; fill: #4d5b6c }
@media (prefers-color-scheme: dark) {
.card { fill: #1a1e26 } .state { fill: #262d38; stroke: #93a4ba } .step { stroke: #93a4ba }
.tip { fill: #93a4ba } text { fill: #e6ebf2 } .told { fill: #aeb9c8 }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>
"""


def event(phase: str) -> str:
    """Name the event that a phase puts on the wire."""
    items = {"added": "output_item.added", "done": "output_item.done"}
    told = items.get(phase) or f"{ImageGeneration.item_type}.{ImageGeneration.phases[phase]}"
    return f"response.{told}"


def places(steps: Steps) -> dict[CallState, tuple[int, int]]:
    """Give each state the row of its longest way from the start, and a column: many ways lead right."""
    rows = {before: 0 for before, _ in steps}
    for _ in steps:
        for (before, _input), (after, _phases) in steps.items():
            if after is not before:
                rows[after] = max(rows.get(after, 0), rows[before] + 1)
    ways = Counter(after for after, _ in steps.values())
    columns: dict[int, int] = {}
    found = {}
    for state, row in sorted(rows.items(), key=lambda pair: (pair[1], ways[pair[0]])):
        found[state] = (row, columns.get(row, 0))
        columns[row] = columns.get(row, 0) + 1
    return found


def drawing(steps: Steps) -> str:
    """Draw the states as boxes and the steps as arrows, with what they put on the wire."""
    at = places(steps)
    width = _LEFT + _COLUMN * max(column for _, column in at.values()) + _RIGHT
    height = 2 * _TOP + _HEIGHT + _ROW * max(row for row, _ in at.values())
    arrows = [
        _arrow(at[before], at[after], happened, phases)
        for (before, happened), (after, phases) in steps.items()
    ]
    boxes = [_box(state, *place) for state, place in at.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="The states of one image call">\n{_STYLE}'
        f'<rect class="card" width="{width}" height="{height}" rx="8"/>\n{"".join(arrows + boxes)}</svg>\n'
    )


def table(steps: Steps) -> str:
    """Write the same as a table."""
    rows = [
        f"| {before.value} | {happened.value} | {after.value} | "
        f"{', '.join(f'`{event(phase)}`' for phase in phases)} |\n"
        for (before, happened), (after, phases) in steps.items()
    ]
    return _HEAD + "".join(rows)


def page(text: str) -> str:
    """Return the page with its table as the steps are now."""
    before, _, rest = text.partition(_OPEN)
    return before + _OPEN + table(TRANSITIONS) + _CLOSE + rest.partition(_CLOSE)[2]


def _corner(row: int, column: int) -> tuple[int, int]:
    return _LEFT + column * _COLUMN - _WIDTH // 2, _TOP + row * _ROW


def _box(state: CallState, row: int, column: int) -> str:
    x, y = _corner(row, column)
    kind = "state final" if state.final else "state"
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>'
        f'<text x="{x + _WIDTH // 2}" y="{y + 25}" text-anchor="middle">{state.value}</text>\n'
    )


def _arrow(start: tuple[int, int], end: tuple[int, int], happened: CallInput, phases: tuple[str, ...]) -> str:
    (x, y), (end_x, end_y) = _corner(*start), _corner(*end)
    if start == end:
        line = f"M{x} {y + 10}C{x - 70} {y - 10} {x - 70} {y + 50} {x} {y + 30}"
        words, anchor = (x - 60, y + 17), "end"
    elif start[1] == end[1]:
        middle = x + _WIDTH // 2
        line, words, anchor = f"M{middle} {y + _HEIGHT}V{end_y - 2}", (middle + 10, y + 72), "start"
    else:
        # The farther away an arrow comes from, the farther to the right it arrives.
        arrival = end_x + _WIDTH // 2 + 30 * (end[0] - start[0] - 1)
        line = f"M{x + _WIDTH} {y + 20}C{arrival} {y + 20} {arrival} {y + 60} {arrival} {end_y - 2}"
        words, anchor = (x + _WIDTH + 10, y - 4), "start"
    told = ", ".join(event(phase).rpartition("call.")[2].removeprefix("response.") for phase in phases)
    return (
        f'<path class="step" d="{line}" marker-end="url(#tip)"/>'
        f'<text x="{words[0]}" y="{words[1]}" text-anchor="{anchor}">{happened.value}'
        f'<tspan class="told" x="{words[0]}" dy="16">{told}</tspan></text>\n'
    )


if __name__ == "__main__":
    DRAWING.write_text(drawing(TRANSITIONS))
    PAGE.write_text(page(PAGE.read_text()))
