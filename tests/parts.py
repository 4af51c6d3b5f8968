"""Parts that are not installed everywhere: a browser, a language model."""

from __future__ import annotations

import os

import pytest

__all__ = ["require"]


def require(part_present: bool, reason: str) -> None:
    """Skip the test when a part is missing; in CI, where nothing may be missing, fail it.

    Args:
        part_present: whether the part is here.
        reason: what is missing, and how to get it.
    """
    if part_present:
        return
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
