"""The figures as a table in Markdown and as a chart."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .measuring import Series

__all__ = ["Finding", "table", "write_chart"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table.

    Attributes:
        what: was measured.
        series: of all contenders.
        value: the figure that counts, mostly a ratio.
        unit: of that figure.
        target: at most that much.
    """

    what: str
    series: Series
    value: float
    unit: str
    target: float

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value <= self.target


def table(findings: list[Finding], rounds: int) -> str:
    """Write the table."""
    where = f"{platform.machine()}, CPython {platform.python_version()}"
    with_what = f"uvicorn {version('uvicorn')}, aiohttp {version('aiohttp')}"
    lines = [
        f"{rounds} interleaved rounds, medians with least–greatest; {where}, {with_what}.",
        "",
        "| what | figure | target | met | each contender |",
        "| --- | --- | --- | --- | --- |",
    ]
    for finding in findings:
        each = "; ".join(
            f"{name} {finding.series.median(name):.3g} ({low:.3g}–{high:.3g})"
            for name in finding.series.values
            for low, high in (finding.series.spread(name),)
        )
        met = "yes" if finding.met else "**no**"
        lines.append(
            f"| {finding.what} | {finding.value:.2f} {finding.unit} | ≤ {finding.target:g} {finding.unit} "
            f"| {met} | {each} {finding.series.unit} |"
        )
    return "\n".join(lines) + "\n"


def write_chart(findings: list[Finding], file: Path) -> None:
    """Draw each figure as a share of its target."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = [finding.what for finding in findings][::-1]
    shares = [finding.value / finding.target for finding in findings][::-1]
    colours = ["#2a7f62" if share <= 1 else "#b3412e" for share in shares]
    figure, axes = plt.subplots(figsize=(9, 0.42 * len(names) + 1.2))
    axes.barh(names, shares, color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("share of the target (1 = target; shorter is better)")
    figure.tight_layout()
    figure.savefig(file, dpi=120)
