"""The page of settings says what the settings themselves say."""

from __future__ import annotations

import runpy
from pathlib import Path

_DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_settings_is_up_to_date() -> None:
    page = runpy.run_path(str(_DOCS / "write_settings.py"))["page"]()
    assert (_DOCS / "settings.md").read_text() == page, "run: python docs/write_settings.py"
