"""How much the fuzzing tried, for the summary of a test run."""

from __future__ import annotations

from collections import Counter

__all__ = ["TRIED", "lines"]

TRIED: Counter[str] = Counter()
"""What was tried → how often."""


def lines() -> list[str]:
    """Say it, a line for each kind of input; nothing if nothing was tried."""
    return [f"{count:>9,} {what}" for what, count in sorted(TRIED.items())]
