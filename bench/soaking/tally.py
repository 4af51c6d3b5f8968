"""What the clients have seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .verdict import Heard, Wanted, events_of, judge, response_of

__all__ = ["Tally"]

_KEPT = 20
"""Wrong streams that are kept in files, for whoever looks into them."""


@dataclass(slots=True)
class Tally:
    """Counts, and what is wrong.

    Attributes:
        folder: takes the bodies of wrong streams.
        whole: streams and objects that were heard to their end.
        left: those that were left, by where.
        situations: conversations, by what is special about them.
        wrong: a sentence for each broken rule, with what it happened to.
        size: of all bodies, in bytes.
        events: of all streams.
        pictures: that came.
        previews: that came.
        failures: pictures that had to fail and did.
        wrong_streams: how many answers were wrong.
    """

    folder: Path
    whole: int = 0
    left: Counter[str] = field(default_factory=Counter)
    situations: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    size: int = 0
    events: int = 0
    pictures: int = 0
    previews: int = 0
    failures: int = 0
    wrong_streams: int = 0

    @property
    def streams(self) -> int:
        """How many answers were judged."""
        return self.whole + self.left.total()

    def add(self, heard: Heard, wanted: Wanted, situation: str) -> bool:
        """Judge an answer and count it; tell whether it is right."""
        if heard.left:
            self.left[heard.left] += 1
        else:
            self.whole += 1
        self.size += len(heard.body)
        if wrong := judge(heard, wanted):
            self.blame(situation, wrong, heard.body)
            return False
        self._count(heard)
        return True

    def blame(self, situation: str, wrong: list[str], body: bytes = b"") -> None:
        """Note what is wrong, and keep the body."""
        self.wrong_streams += 1
        if self.wrong_streams <= _KEPT:
            file = self.folder / f"wrong-{self.wrong_streams}.txt"
            file.write_bytes(body)
            self.wrong += [f"{situation} ({file}): {sentence}"[:600] for sentence in wrong]

    def _count(self, heard: Heard) -> None:
        if not heard.stream:
            items = [] if heard.left else response_of(heard)["output"]
        else:
            events = events_of(heard.body)
            self.events += len(events)
            self.previews += sum(event["type"].endswith(".partial_image") for event in events)
            items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        states = [item["status"] for item in items if item["type"] == "image_generation_call"]
        self.pictures += states.count("completed")
        self.failures += states.count("failed")
