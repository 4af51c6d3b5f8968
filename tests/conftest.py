"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Machines differ in speed and tests never measure it. CI tries the same examples each time.
settings.register_profile(
    "quick", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", deadline=None, max_examples=2_000, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's own shell sets must not decide a test."""
    for name in [name for name in os.environ if name.startswith("IMAGECALL_")]:
        monkeypatch.delenv(name)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """In CI nothing may be missing: a skipped test is a failed run."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
