"""`python -m tests.clients [--write] [WORDS OF PYTEST]`: try the clients, print the table.

`--write` also writes docs/clients.md. Further words are pytest's own, such as `-k litellm` or `-n 2`; with
`-k` only the clients that were tried are shown. `CLIENTS_CACHE` is the folder in which the clients are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import pytest  # noqa: E402  the tests' own folder comes first
from installing import install  # noqa: E402  the path is set above
from known_clients import CLIENTS  # noqa: E402  the path is set above
from table import is_complete, page, table  # noqa: E402  the path is set above


class Outcomes:
    """A pytest plugin that notes how each cell went."""

    def __init__(self) -> None:
        self.results: dict[tuple[str, str, str], bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a cell; it went well if none of its phases failed or was skipped."""
        for name, value in report.user_properties:
            if name == "cell" and isinstance(value, list):
                driver, situation, form = value
                cell = (driver, situation, form)
                self.results[cell] = self.results.get(cell, True) and report.passed


def main(words: list[str]) -> int:
    """Run the suite; return an exit code: 0 only if every cell was tried and went well."""
    write = "--write" in words
    words = [word for word in words if word != "--write"]
    chosen = CLIENTS
    if "-k" not in words:  # else a client is installed when its turn comes
        for client in CLIENTS:
            print(f"{client.name}: installing unless it is there", flush=True)
            install(client)
    outcomes = Outcomes()
    code = pytest.main([str(HERE / "check_clients.py"), *words], plugins=[outcomes])
    if "-k" in words:
        tried = {driver for driver, _, _ in outcomes.results}
        chosen = tuple(client for client in CLIENTS if client.driver in tried)
    print(f"\n{table(chosen, outcomes.results)}")
    complete = all(is_complete(client, outcomes.results) for client in CLIENTS)
    if write and complete:
        (HERE.parent.parent / "docs" / "clients.md").write_text(page(CLIENTS, outcomes.results))
    elif write:
        print("docs/clients.md was not written: not everything was tried, or not everything works")
    return int(code) or int(not complete and "-k" not in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
