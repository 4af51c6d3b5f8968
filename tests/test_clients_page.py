"""The page about clients is the one that their suite writes when everything works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "docs" / "clients.md"


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Any]:
    """The suite's modules, which lie in a folder of their own."""
    monkeypatch.syspath_prepend(_HERE / "clients")
    import known_clients
    import matrix
    import table

    return known_clients.CLIENTS, matrix, table


def test_the_page_is_up_to_date(suite: Any) -> None:
    clients, matrix, table = suite
    results = {(cell.client.driver, cell.situation, cell.form): True for cell in matrix.cells(clients)}
    assert _PAGE.read_text() == table.page(clients, results), "run: python -m tests.clients --write"


def test_what_failed_or_was_not_tried_is_not_complete(suite: Any) -> None:
    (client, *_), matrix, table = suite
    results = {(cell.client.driver, cell.situation, cell.form): True for cell in matrix.cells([client])}
    assert table.is_complete(client, results)
    assert "✗" not in table.table((client,), results).partition("\n\n")[0]
    for cell in list(results):
        rest = {name: value for name, value in results.items() if name != cell}
        for part, mark in ((rest, "?"), ({**rest, cell: False}, "✗")):
            assert not table.is_complete(client, part)
            row = table.table((client,), part).splitlines()[2].split(" | ")
            assert row[2 + list(matrix.SITUATIONS).index(cell[1])].rstrip(" |") == mark


def test_what_a_client_cannot_do_is_told_with_its_reason(suite: Any) -> None:
    clients, matrix, table = suite
    for client in clients:
        text = table.table((client,), {})
        assert text.splitlines()[2].count("—") == len(client.lacks)
        assert set(client.lacks) <= set(matrix.SITUATIONS)
        for situation, reason in client.lacks.items():
            assert f"- {client.name}, {situation}: {reason}." in text
