"""Whole exchanges written down: the turns of a well-behaved model server, and what the client gets.

`exchange` drives the translator once with whole turns and again with turns cut in every way, and holds
each stream against the rules; `outline` writes a stream down, a line for each event.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from driving import NOW, Driven, Turn, bytewise, drive, paint
from imagecall.events.actions import Action, Finish, KeepPicture, KeepResponse, NextTurn, Run, Send
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions, lower_request
from imagecall.events.tools.base import ToolOutcome
from imagecall.events.translator import Translator
from kite import HOSTED, run
from rules import read_events
from transcript import Event, call, encode, event, message, number

__all__ = [
    "OPENING",
    "WEATHER",
    "Steps",
    "ask",
    "calling",
    "exchange",
    "failed",
    "final",
    "oslo",
    "outline",
    "painted",
    "painting",
    "said",
    "says",
    "told_outputs",
    "turn",
]

_ASKED: Event = {"model": "m", "input": "Draw a kite.", "stream": True, "tools": [HOSTED]}
WEATHER: Event = {"type": "function", "name": "weather", "parameters": {}}

OPENING = ["created resp_1", "in_progress"]
"""How `outline` writes the beginning of a response down."""


def ask(**fields: Any) -> Event:
    """Make a client's request."""
    return {**_ASKED, **fields}


def says(text: str, index: int = 0, item_id: str = "msg_a") -> list[Event]:
    """Make a message as a model server tells it, in two deltas."""
    return message(index, item_id, text[:2], text[2:])


def painting(
    arguments: str | Event, index: int = 0, item_id: str = "fc_a", name: str = "image_generation"
) -> list[Event]:
    """Make a call of our function as a model server tells it, with a prompt or with all arguments."""
    words = json.dumps({"prompt": arguments} if isinstance(arguments, str) else arguments)
    return calling(words, index, item_id, name)


def calling(words: str, index: int = 0, item_id: str = "fc_a", name: str = "image_generation") -> list[Event]:
    """Make a call with arguments that are written just so."""
    item = {"id": item_id, "type": "function_call", "call_id": f"call_{item_id}", "name": name}
    return call(index, {**item, "arguments": words, "status": "completed"}, words[:5], words[5:])


def oslo(index: int = 0, name: str = "weather") -> list[Event]:
    """Make a call of the client's own function."""
    return painting({"city": "Oslo"}, index, "fc_o", name)


def turn(*items: list[Event], number_of: int = 1, status: str = "completed", **fields: Any) -> bytes:
    """Make a turn that is told as it should be. `fields` are those of its last response object."""
    told = [one for events in items for one in events]
    done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    start = {"id": f"resp_{number_of}", "object": "response", "created_at": 1_790_000_000, "model": "m"}
    end = {**start, "status": status, "output": done, **fields}
    opening = [
        event(kind, response={**start, "status": "in_progress"}) for kind in ("created", "in_progress")
    ]
    return encode(number([*opening, *told, event(status, response=end)]))


def exchange(request: Event, *turns: Turn, **how: Any) -> Driven:
    """Drive an exchange; how the turns are cut must change nothing, unless pictures end amid them."""
    checks = {"internal": how.pop("internal", "image_generation")}
    driven = run(request, turns, **checks, **how)
    for split in () if how.get("at_once") else (bytewise, *_splits(turns)):
        other = drive(request, turns, split=split, **how)
        assert other.body == driven.body
        assert (other.asked, other.delays, other.runs) == (driven.asked, driven.delays, driven.runs)
        assert other.kept == driven.kept
        assert other.finish == driven.finish
    return driven


def _splits(turns: Sequence[Turn]) -> Iterator[Any]:
    for seed in range(3):
        numbers = random.Random(seed + sum(len(turn) for turn in turns if isinstance(turn, bytes)))

        def split(body: bytes, numbers: random.Random = numbers) -> Iterable[bytes]:
            places = sorted(numbers.randrange(len(body) + 1) for _ in range(8))
            return (body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True))

        yield split


class Steps:
    """A translator that is driven by hand."""

    def __init__(self, request: Event, **options: Any) -> None:
        lowered = lower_request(request, Known(), LoweringOptions())
        assert lowered is not None
        numbers = Counter[str]()

        def new_id(prefix: str) -> str:
            numbers[prefix] += 1
            return f"{prefix}_{numbers[prefix]}"

        self.translator = Translator(lowered, new_id=new_id, now=lambda: NOW, **options)
        self.body = b""
        self.actions: list[Action] = []

    def take(self, actions: list[Action]) -> list[str]:
        """Note actions; return the lines of what they send and the names of what else they want."""
        self.actions += actions
        told = []
        for action in actions:
            match action:
                case Send(frames):
                    self.body += frames
                    told += outline(frames)
                case Run(made):
                    told.append(f"run {made.id}")
                case KeepPicture(item):
                    told.append(f"keep {item['id']}")
                case KeepResponse():
                    told.append("keep the response")
                case NextTurn():
                    told.append("ask again")
                case Finish():
                    told.append("finish")
        return told

    def turn(self, body: bytes) -> list[str]:
        """Read a whole turn."""
        return self.take([*self.translator.receive(body), *self.translator.turn_ended()])

    def finished(self, call_id: str, outcome: ToolOutcome | None = None) -> list[str]:
        """Let a call end, well unless told otherwise."""
        arguments = next(one.call for one in self.actions if isinstance(one, Run) and one.call.id == call_id)
        return self.take(self.translator.tool_finished(call_id, outcome or paint(arguments)))

    @property
    def finish(self) -> Finish:
        """The last action."""
        last = self.actions[-1]
        assert isinstance(last, Finish)
        return last


def final(driven: Driven) -> Event:
    """Return the response object with which the client's stream ends."""
    response: Event = read_events(driven.body)[-1]["response"]
    return response


def told_outputs(asked: Any) -> list[Event]:
    """Read what the model is told of its calls: the outputs in a follow-up request."""
    return [
        json.loads(item["output"]) for item in asked["input"] if item.get("type") == "function_call_output"
    ]


def outline(body: Driven | bytes) -> list[str]:
    """Write a stream down: `0 + message` opens item 0, `0 - message completed Hi` closes it."""
    return [_line(one) for one in read_events(body if isinstance(body, bytes) else body.body)]


def painted(prompt: str, index: int = 0) -> list[str]:
    """Write down what a client sees of a picture that is made at once."""
    lines = ["+ image_generation_call", "in_progress", "generating", "completed"]
    return [f"{index} {line}" for line in (*lines, f"- image_generation_call completed {prompt}")]


def failed(told: str, index: int = 0) -> list[str]:
    """Write down what a client sees of a picture that fails; `told` is the code and the prompt."""
    lines = ["+ image_generation_call", "in_progress", "generating"]
    return [f"{index} {line}" for line in (*lines, f"- image_generation_call failed {told}".strip())]


def said(text: str, index: int = 0) -> list[str]:
    """Write down what a client sees of a message that came in two deltas."""
    lines = [
        "+ message",
        "content_part.added",
        *(f"output_text.delta {piece}" for piece in (text[:2], text[2:]) if text),
        f"output_text.done {text}",
        f"content_part.done {text}",
        f"- message completed {text}",
    ]
    return [f"{index} {line}".strip() for line in lines]


def _line(one: Event) -> str:
    name = one["type"].removeprefix("response.")
    place = f"{one['output_index']} " if "output_index" in one else ""
    match name:
        case "output_item.added":
            return f"{place}+ {one['item']['type']}"
        case "output_item.done":
            item = one["item"]
            problem = item["error"]["code"] if item.get("error") else ""
            words = [problem, item.get("revised_prompt"), item.get("arguments"), _texts(item)]
            told = [f"{place}-", item["type"], str(item.get("status")), *words]
        case "created":
            told = ["created", one["response"]["id"]]
        case "image_generation_call.partial_image":
            told = [f"{place}partial_image", str(one["partial_image_index"])]
        case _:
            part = one.get("part") or {}
            told = [place + name.removeprefix("image_generation_call.")]
            told += [one.get("delta"), one.get("text"), one.get("arguments"), part.get("text")]
    return " ".join(word for word in told if word and word.strip())


def _texts(item: Event) -> str:
    return "|".join(part.get("text", "") for part in item.get("content") or [])
