"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import tally
from hypothesis import HealthCheck, settings
from imagecall.events import reading
from playwright.async_api import Browser

# Machines differ in speed and tests never measure it. CI tries the same examples each time.
settings.register_profile(
    "quick", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", deadline=None, max_examples=2_000, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let all tests be run without the short way of a text's deltas: nobody can tell the difference."""
    parser.addoption(
        "--long-way", action="store_true", help="let every event of every stream go the long way"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Close the short way if that is wished."""
    if config.getoption("--long-way"):
        reading._LANES = 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the short way itself, if it is closed."""
    if config.getoption("--long-way"):
        left_out = [item for item in items if item.get_closest_marker("lanes")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's own shell sets must not decide a test."""
    for name in [name for name in os.environ if name.startswith("IMAGECALL_")]:
        monkeypatch.delenv(name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Share one Chromium among the tests of a module."""
    from browsing import chromium

    async with chromium() as browser:
        yield browser


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """In CI nothing may be missing: a skipped test is a failed run."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["tried"] = dict(tally.TRIED)
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what one of several test processes has tried."""
    tally.TRIED.update(getattr(node, "workeroutput", {}).get("tried", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much the fuzzing tried."""
    if lines := tally.lines():
        terminalreporter.section("fuzzing tried")
        terminalreporter.write_line("\n".join(lines))
