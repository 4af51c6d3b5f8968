"""Fails if a page of a built site loads anything from elsewhere, or if a link inside leads nowhere."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}


class Page(HTMLParser):
    """What one page loads, where it leads, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down one tag."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif (tag, name) in _LOADS and value and ("rel", "canonical") not in attrs:
                self.loads.add(value)
            elif (tag, name) == ("a", "href") and value:
                self.links.add(value)


def problems(site: Path) -> list[str]:
    """List what is wrong."""
    pages = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site} has no pages"]
    for file, page in pages.items():
        name = file.relative_to(site)
        if name.name == "404.html":
            continue  # its links begin at the site's root, wherever that will be
        found += [f"{name} loads {url}" for url in sorted(page.loads) if urlsplit(url).netloc]
        for url in sorted(page.loads | page.links):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or not target.is_relative_to(site):
                found.append(f"{name} leads to {url}, which is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} leads to {url}, but the page has no such anchor")
    for sheet in sorted(site.rglob("*.css")):
        if "url(http" in sheet.read_text() or "@import" in sheet.read_text():
            found.append(f"{sheet.relative_to(site)} loads something from elsewhere")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print(*wrong or [f"{sys.argv[1]}: nothing broken, nothing loaded from elsewhere"], sep="\n")
    sys.exit(bool(wrong))
