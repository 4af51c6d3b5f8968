"""What was tried and how it went, as a Markdown table and as the page of the docs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from installing import HERE, version_of
from matrix import SITUATIONS, Client

__all__ = ["Results", "is_complete", "page", "table"]

Results = Mapping[tuple[str, str, str], bool]
"""Driver, situation, form → whether it went well."""

_INTRODUCTION = """\
# Clients

Start the server (here with the placeholder for a picture maker), and let any of these clients ask it:

```sh
imagecall serve --upstream http://127.0.0.1:8080 --backend scene
```

Each client below was installed in this version and tried in each of these situations, in front of
`imagecall serve`, a scripted model server that refuses what a strict one refuses, and a server with an Images
API. The client's own objects must hold the picture maker's very bytes; the model server must have got plain
functions and calls, no picture, and no request more than it takes. `python -m tests.clients --write` tries
all again and writes this page.

"""


def is_complete(client: Client, results: Results) -> bool:
    """Tell whether a client was tried in all its forms, and all went well."""
    return all(
        results.get((client.driver, situation, form), False)
        for situation in SITUATIONS
        for form in client.forms(situation)
    )


def table(clients: tuple[Client, ...], results: Results) -> str:
    """Make the table, with what its signs mean and what clients cannot do below it."""
    lines = [
        "| client | version | " + " | ".join(SITUATIONS) + " |",
        "| --- | --- |" + " :-: |" * len(SITUATIONS),
    ]
    for client in clients:
        version = version_of(client, client.packages[0])
        marks = " | ".join(_mark(client, situation, results) for situation in SITUATIONS)
        lines.append(f"| {client.name} | {version} | {marks} |")
    meanings = [f"- **{situation}**: {meaning}." for situation, meaning in SITUATIONS.items()]
    signs = "✓ works; ✗ does not; ? was not tried; — the client cannot do it:"
    lacks = [
        f"- {client.name}, {situation}: {reason}."
        for client in clients
        for situation, reason in client.lacks.items()
    ]
    return "\n".join([*lines, "", signs, "", *lacks, "", "The situations:", "", *meanings, ""])


def _mark(client: Client, situation: str, results: Results) -> str:
    forms = client.forms(situation)
    if not forms:
        return "—"
    went = [results.get((client.driver, situation, form)) for form in forms]
    if False in went:
        return "✗"
    return "?" if None in went else "✓"


def page(clients: tuple[Client, ...], results: Results) -> str:
    """Make the page: the table, and what is worth knowing of each client."""
    return _INTRODUCTION + table(clients, results) + "".join(_section(client) for client in clients)


def _section(client: Client) -> str:
    turns = "".join(f"- {explained}\n" for explained in client.turns.values())
    return (
        f"\n## {client.name}\n\n"
        + _installation(client)
        + "".join(_block(name) for name in _files(client))
        + f"The second turn may send the past as:\n\n{turns}\nWorth knowing:\n\n{_remarks(client)}"
    )


def _remarks(client: Client) -> str:
    sections = (HERE / "remarks.md").read_text().split("\n## ")
    found = next(section for section in sections if section.startswith(f"{client.name}\n"))
    return found.partition("\n")[2].strip() + "\n"


def _installation(client: Client) -> str:
    if client.snippet.endswith(".html"):
        return "Nothing to install. A page:\n\n"
    tool, sign = ("npm install", "@") if client.is_node else ("pip install", "==")
    words = (f"{package}{sign}{version_of(client, package)}" for package in client.packages)
    return f"```sh\n{tool} {' '.join(words)}\n```\n\n"


def _files(client: Client) -> tuple[str, ...]:
    return (client.snippet, "sse.js") if client.snippet.endswith(".html") else (client.snippet,)


def _block(name: str) -> str:
    languages = {".py": "python", ".mjs": "js", ".js": "js", ".html": "html"}
    language = languages[Path(name).suffix]
    head = f"`{name}` beside it:\n\n" if name.endswith(".js") else ""
    return f"{head}```{language}\n{(HERE / 'snippets' / name).read_text()}```\n\n"
