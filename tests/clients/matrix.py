"""The matrix: which clients, which situations, and what each client cannot do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["FORBIDDEN", "SCENES", "SITUATIONS", "Cell", "Client", "Scene", "cells"]

FORBIDDEN = "It is forbidden."
"""Why the picture maker refuses a prompt that names something forbidden."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a client asks for, and what then happens.

    Attributes:
        prompt: what it says first.
        calls: the prompts of the model's calls, response by response.
        texts: what the model says after them.
        again: what the client says next.
        previews: the prompts of the previews it must show.
        tool: fields of the tool.
        forced: whether it forces the tool.
    """

    prompt: str
    calls: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]
    again: str | None = None
    previews: tuple[str, ...] = ()
    tool: Mapping[str, object] = field(default_factory=dict)
    forced: bool = False


_CASTLE = f"Sorry, there is no picture of “a forbidden castle”: {FORBIDDEN}"
_CAT = Scene("Draw a red cat", (("a red cat",),), ("Here it is: a red cat.",))
_BLUE = Scene(
    "Draw a red cat",
    (("a red cat",), ("make it blue",)),
    ("Here it is: a red cat.", "Done: make it blue."),
    again="make it blue",
)
SCENES: Mapping[str, Scene] = {
    "streamed": _CAT,
    "not streamed": _CAT,
    "forced": Scene("A red cat", (("A red cat",),), ("Here it is: A red cat.",), forced=True),
    "failed": Scene("Draw a forbidden castle", (("a forbidden castle",),), (_CASTLE,)),
    "two at once": Scene(
        "Draw a red cat and a blue dog",
        (("a red cat", "a blue dog"),),
        ("Here they are: a red cat and a blue dog.",),
    ),
    "previews": Scene(
        _CAT.prompt,
        _CAT.calls,
        _CAT.texts,
        previews=("a red cat 0", "a red cat 1"),
        tool={"partial_images": 2},
    ),
    "second turn": _BLUE,
    "after a failure": Scene(
        "Draw a forbidden castle",
        (("a forbidden castle",), ("a red cat",)),
        (_CASTLE, "Here it is: a red cat."),
        again="Draw a red cat",
    ),
    "WebSocket": _BLUE,
}
SITUATIONS: Mapping[str, str] = {
    "snippet": "the snippet below, as it stands there",
    "real model": "the snippet, with SmolLM2 on llama.cpp as the model",
    "streamed": "one picture, streamed",
    "not streamed": "one picture, in one answer",
    "forced": "a forced `tool_choice`",
    "failed": "a picture fails: the client shows it as failed, and the model's answer goes on",
    "two at once": "two parallel pictures",
    "previews": "partial pictures",
    "second turn": "“make it blue”, with each of the client's own ways to send the past",
    "after a failure": "a second turn after a failed picture",
    "WebSocket": "two turns over a WebSocket",
}
"""Situation → what it is."""

_FORMS: Mapping[str, tuple[str, ...]] = {
    "not streamed": ("whole",),
    "failed": ("stream", "whole"),
    "two at once": ("stream", "whole"),
    "WebSocket": ("websocket",),
}
"""Situation → the forms in which every client is tried, where they are others than `stream`."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Attributes:
        name: how people call it.
        packages: what to install; the first one is the client itself.
        driver: the file that drives it.
        snippet: the file with its snippet.
        turns: the forms of a second turn that it has, each explained.
        lacks: situation → why the client cannot be in it.
        failed: what its objects say of a failed picture.
        made: what they say of one that was made.
        end: what they say of a response's end; empty where they say nothing.
    """

    name: str
    packages: tuple[str, ...]
    driver: str
    snippet: str
    turns: Mapping[str, str]
    lacks: Mapping[str, str] = field(default_factory=dict)
    failed: str = f"failed: {FORBIDDEN}"
    made: str = "completed"
    end: str = "completed"

    @property
    def is_node(self) -> bool:
        """Whether it runs in Node."""
        return self.driver.endswith(".mjs")

    def forms(self, situation: str) -> tuple[str, ...]:
        """Return the forms in which the client is tried in a situation; none if it cannot be in it."""
        if situation in self.lacks:
            return ()
        if situation == "second turn":
            return tuple(self.turns)
        if situation == "after a failure":
            return ("stream" if "stream" in self.turns else next(iter(self.turns)),)
        return _FORMS.get(situation, ("stream",))


@dataclass(frozen=True, slots=True)
class Cell:
    """One client in one situation, in one form."""

    client: Client
    situation: str
    form: str

    @property
    def name(self) -> str:
        """A name for it on the command line."""
        return "-".join((self.client.driver, self.situation.replace(" ", "_"), self.form))


def cells(clients: Iterable[Client]) -> Iterator[Cell]:
    """Tell all that is to be tried."""
    for client in clients:
        for situation in SITUATIONS:
            for form in client.forms(situation):
                yield Cell(client, situation, form)
