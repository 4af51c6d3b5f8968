"""A missing part: a skip at home, a failure in CI."""

from __future__ import annotations

import pytest
from parts import require


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_part_that_is_there_changes_nothing(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    require(True, "never told")


def test_a_missing_part_skips_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="There is no Chromium"):
        require(False, "There is no Chromium")


def test_a_missing_part_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="There is no Chromium"):
        require(False, "There is no Chromium")
