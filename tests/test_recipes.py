"""The page of recipes, and the matrix that tries them: what can be told without any server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from upstreams.recipes import write_recipe
from upstreams.table import Cell, Row, draw, tally

PAGE = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text("utf-8")
SERVERS = ["vLLM", "SGLang", "llama.cpp", "LiteLLM", "LM Studio", "Ollama", "OGX", "Your own app"]


@pytest.mark.parametrize("server", SERVERS)
def test_each_server_has_a_recipe_that_says_whether_it_was_tried(server: str) -> None:
    (section,) = re.findall(rf"^## {re.escape(server)}.*?\n\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    assert re.match(r"Tried.*? \d|Not tried here\.", section)
    assert "```sh" in section


def test_each_python_file_on_the_page_can_be_written_and_compiles(tmp_path: Path) -> None:
    names = re.findall(r"^```python\n# (\S+)$", PAGE, re.MULTILINE)
    apps = ["litellm_app.py", "ogx_app.py", "fastapi_app.py", "litestar_app.py", "quart_app.py"]
    assert names == ["small_model.py", *apps]
    for name in names:
        source = (write_recipe(name, tmp_path) / name).read_text("utf-8")
        compile(source, name, "exec")
        assert ("ImageGenerationMiddleware" in source) is (name in apps)


def test_a_recipe_that_is_not_on_the_page_is_missed(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="0 blocks"):
        write_recipe("nobody.py", tmp_path)


def test_a_cell_that_is_missing_counts_as_failed_and_is_seen_in_the_table() -> None:
    good, free, wrong = Cell("good"), Cell("free", "the model made 1 message"), Cell("broken", "no end")
    whole = Row("A", "in front", "a 1", {"x": good, "y": free})
    torn = Row("B", "inside", cells={"x": wrong}, trouble="it ended")
    assert tally(["x", "y"], [whole, torn]) == (2, 2)
    head, _, *lines = draw("Today", ["x", "y"], [whole, torn]).splitlines()
    assert head.startswith("Today. yes: ")
    assert lines == [
        "| server | imagecall | x | y |",
        "| --- | --- | --- | --- |",
        "| A (a 1) | in front | yes | text |",
        "| B | inside | **no** | **missing** |",
        "",
        "- A, in front, y: the model made 1 message",
        "- B, inside: it ended",
        "- B, inside, x: no end",
    ]
    assert [cell.told() for cell in (good, wrong)] == ["good", "broken, no end"]
