"""What guards the documentation can fail: a broken site is told, a marked block is found and run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SITE = runpy.run_path(str(ROOT / ".ci" / "check_site.py"))
TRIED: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "try_docs.py"))


def test_links_that_lead_nowhere_and_things_from_elsewhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<h1 id="top">…</h1><a href="#top"></a><a href="#bottom"></a><a href="other.html#here"></a>'
        '<a href="https://example.com/"></a><a href="gone.html"></a><a href="../index.html"></a>'
        '<img src="a%20b.png"><script src="//cdn.example.com/x.js"></script>'
    )
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "a b.png").write_bytes(b"")
    (tmp_path / "site.css").write_text("body { background: url(https://example.com/a.png) }")
    assert SITE["problems"](tmp_path) == [
        "index.html loads //cdn.example.com/x.js",
        "index.html leads to #bottom, but the page has no such anchor",
        "index.html leads to ../index.html, which is not there",
        "index.html leads to gone.html, which is not there",
        "site.css loads something from elsewhere",
    ]
    assert SITE["problems"](tmp_path / "nowhere") == [f"{tmp_path / 'nowhere'} has no pages"]


PAGE = """
<!-- runnable: file hello.txt -->
```text
Hello
```

<!-- runnable -->
```sh
cp hello.txt copied.txt
```

<!-- runnable: server -->
```sh
exec python -m http.server 0 --bind 127.0.0.1 --directory .
```

```sh
exit 1
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(TRIED["blocks"].__globals__, "ROOT", tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "page.md"


def test_marked_blocks_are_run_and_servers_are_asked(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with TRIED["Terminals"]() as terminals:
        for block in TRIED["blocks"](page):
            TRIED["run"](block, page.parent, terminals)
        assert (page.parent / "copied.txt").read_text() == "Hello\n"
    assert "answers 200" in capfd.readouterr().out


SERVER = """
import http.server, pathlib

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(WELL if self.path == "/healthz" else 502)
        self.end_headers()

server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    pathlib.Path("stopped").touch()
"""


def gateway(well: int, mark: str = "server") -> str:
    """A block whose server has another one behind it, which is away."""
    return f"<!-- runnable: {mark} -->\n```sh\nexec python -c '{SERVER.replace('WELL', str(well))}'\n```\n"


def test_a_gateway_without_its_upstream_must_be_well_itself(page: Path) -> None:
    page.write_text(gateway(200) + gateway(500))
    first, second = TRIED["blocks"](page)
    with TRIED["Terminals"]() as terminals:
        TRIED["run"](first, page.parent, terminals)
        with pytest.raises(SystemExit, match="answered 502"):
            TRIED["run"](second, page.parent, terminals)


def test_a_server_takes_the_place_of_the_one_in_its_terminal(page: Path) -> None:
    page.write_text(gateway(200, "server one") + gateway(200, "server two") + gateway(200, "server one"))
    blocks = TRIED["blocks"](page)
    stopped = page.parent / "stopped"
    with TRIED["Terminals"]() as terminals:
        for block, before in zip(blocks, (False, False, True), strict=True):
            TRIED["run"](block, page.parent, terminals)
            assert stopped.exists() is before
        stopped.unlink()
    assert stopped.exists()


def test_a_block_that_fails_fails_the_run(page: Path) -> None:
    page.write_text("<!-- runnable -->\n```sh\nexit 3\n```\n")
    (block,) = TRIED["blocks"](page)
    with pytest.raises(Exception, match="non-zero exit status 3"):
        TRIED["run"](block, page.parent, TRIED["Terminals"]())


def test_a_mark_without_a_block_is_told(page: Path) -> None:
    page.write_text("<!-- runnable -->\n\n```sh\nexit 3\n```\n")
    with pytest.raises(SystemExit, match=r"page\.md: a mark `runnable` stands before no block"):
        TRIED["blocks"](page)


def test_a_server_that_ends_at_once_is_told(page: Path) -> None:
    page.write_text("<!-- runnable: server -->\n```sh\nexit 3\n```\n")
    (block,) = TRIED["blocks"](page)
    with pytest.raises(SystemExit, match="ended with code 3"):
        TRIED["run"](block, page.parent, TRIED["Terminals"]())
