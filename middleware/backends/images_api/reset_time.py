"""When a server that is busy, or whose limit is used up, can be asked again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

__all__ = ["Reset", "find_reset"]

_RESET = "x-ratelimit-reset"
_REMAINING = "x-ratelimit-remaining"

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{0,9})?")
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+")
_STEP = re.compile(r"([\d.]+)(ms|[dhms])")
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

_EPOCH = 1e9
"""A number from here on counts from 1970 (it lies in 2001), a smaller one from now (31 years)."""
_EPOCH_MS = 1e11

_LONGEST = 10 * 366 * 86_400.0
"""Whatever lies further ahead is a mistake."""


@dataclass(frozen=True, slots=True)
class Reset:
    """When there is more.

    Attributes:
        at: seconds since the epoch.
        seconds: from now on.
    """

    at: float
    seconds: float

    def words(self) -> str:
        """Tell it in words, such as `at 2026-11-30 17:20:00 UTC, in 2 h 5 min`."""
        left = round(self.seconds)
        parts = ((left // 86_400, "d"), (left // 3_600 % 24, "h"), (left // 60 % 60, "min"), (left % 60, "s"))
        words = [f"{count} {unit}" for count, unit in parts if count][:2]
        moment = datetime.fromtimestamp(self.at, UTC)
        return f"at {moment:%Y-%m-%d %H:%M:%S} UTC, in {' '.join(words) or '0 s'}"


def find_reset(headers: Mapping[str, str], error: Mapping[str, Any], now: float) -> Reset | None:
    """Find in an answer when it can be asked again; None where it does not say.

    Looked for in this order: `resets_in_seconds` and `resets_at` of the error's own object,
    `retry-after-ms`, `Retry-After` (seconds or a date), and `x-ratelimit-reset-*` of the limits that are
    used up, the latest of them.

    Args:
        headers: with names in any case.
        error: the error object of the body.
        now: seconds since the epoch.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    left = _reset(error.get("resets_in_seconds"), now)
    until = _reset(error.get("resets_at"), now)
    if left and until:
        return Reset(until.at, left.seconds)
    told = left or until or _reset(lower.get("retry-after-ms"), now, 0.001)
    told = told or _reset(lower.get("retry-after"), now)
    if told:
        return told
    spent = (_reset(value, now) for name, value in lower.items() if _is_spent(name, lower))
    return max(filter(None, spent), key=lambda reset: reset.at, default=None)


def _is_spent(name: str, headers: Mapping[str, str]) -> bool:
    """Tell whether a header is the reset of a limit of which nothing is left, as far as it is told."""
    kind = name.removeprefix(_RESET)
    return kind != name and headers.get(_REMAINING + kind, "0").strip() == "0"


def _reset(value: object, now: float, unit: float = 1.0) -> Reset | None:
    """Read a count of seconds (or of another unit), a duration such as `6m0s`, or a moment."""
    text = "" if isinstance(value, bool) else str(value).strip()
    number = float(text) if _NUMBER.fullmatch(text) else None
    if number is not None and number < _EPOCH:
        return _ahead(number * unit, now)
    if _DURATION.fullmatch(text):
        return _ahead(sum(float(count) * _UNITS[unit] for count, unit in _STEP.findall(text)), now)
    moment = _date(text) if number is None else number / 1000 if number >= _EPOCH_MS else number
    if moment is None or moment - now > _LONGEST:
        return None
    return Reset(moment, max(0.0, moment - now))


def _ahead(seconds: float, now: float) -> Reset | None:
    return Reset(now + seconds, seconds) if seconds <= _LONGEST else None


def _date(text: str) -> float | None:
    """Read an HTTP date, or one as JSON has it; without a zone it is meant as UTC."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(text)
        except ValueError:
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None
