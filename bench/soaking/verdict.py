"""Whether what a client heard is right: by the rules for every stream, and by what this one asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rules import check_beginning, check_response, check_stream

from .pictures import mark_of, read_mark

__all__ = ["HOSTED", "Heard", "Wanted", "events_of", "judge", "response_of"]

Json = dict[str, Any]

HOSTED: Json = {"type": "image_generation"}

_TAG = re.compile(rb"tag-\d+")


@dataclass(frozen=True, slots=True)
class Heard:
    """What a client got for one request.

    Attributes:
        status: of the answer; 0 if there was none.
        body: as far as it was read.
        left: where the client left; empty when it heard all.
        stream: whether the body is a stream.
    """

    status: int
    body: bytes
    left: str = ""
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one request must bring.

    Attributes:
        tag: stands in the request, and wherever the answer repeats it: no other one may.
        pictures: how many.
        failed: how many pictures fail.
        tools: the declaration.
        sources: marks of the pictures that an edit starts from.
        statuses: of the response object.
    """

    tag: str
    pictures: int = 0
    failed: int = 0
    tools: tuple[Json, ...] = field(default=(HOSTED,))
    sources: tuple[bytes, ...] = ()
    statuses: tuple[str, ...] = ("completed",)


def judge(heard: Heard, wanted: Wanted) -> list[str]:
    """Return a sentence for each thing that is wrong."""
    facts: Json = {"tools": [*wanted.tools], "tool_choice": "auto"}
    if heard.left and not heard.body:
        return []
    if heard.status != 200:
        return [f"The status is {heard.status}: {heard.body[:300]!r}"]
    if heard.left:
        wrong = check_beginning(heard.body, **facts) if heard.stream else []
    elif heard.stream:
        wrong = check_stream(heard.body, **facts)
    else:
        response = json.loads(heard.body)
        wrong = check_response(response, **facts)
        if response.get("status") == "cancelled" and "cancelled" in wanted.statuses:
            wrong.remove("The status of a finished response is 'cancelled'.")
    if wrong:
        return wrong
    read = heard.body[: heard.body.rfind(b"\n\n") + 2] if heard.left else heard.body
    return [*_strangers(read, wanted), *_own(heard, wanted)]


def events_of(body: bytes) -> list[Json]:
    """Read the whole frames of a stream that keeps the rules."""
    datas = re.findall(rb"(?:^|\n)data: (\{.*)\n\n", body)
    return [json.loads(data) for data in datas]


def response_of(heard: Heard) -> Json:
    """Read the response object of an answer that was heard to its end."""
    response: Json = events_of(heard.body)[-1]["response"] if heard.stream else json.loads(heard.body)
    return response


def _strangers(body: bytes, wanted: Wanted) -> Iterator[str]:
    """Find words of other clients."""
    strange = {tag.decode() for tag in _TAG.findall(body)} - {wanted.tag}
    if strange:
        yield f"The stream of {wanted.tag} holds {sorted(strange)}."


def _own(heard: Heard, wanted: Wanted) -> Iterator[str]:
    events = events_of(heard.body) if heard.stream else []
    if heard.left:
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    else:
        response = response_of(heard)
        items = response["output"]
        if response["status"] not in wanted.statuses:
            yield f"The response is {response['status']} instead of {' or '.join(wanted.statuses)}."
        elif response["status"] == "completed":
            yield from _counts(items, wanted)
        if response["metadata"] != {"tag": wanted.tag}:
            yield f"The metadata are {response['metadata']}."
    previews: dict[str, list[str]] = {}
    for event in events:
        if event["type"] == "response.image_generation_call.partial_image":
            previews.setdefault(event["item_id"], []).append(event["partial_image_b64"])
    for item in items:
        if item["type"] == "image_generation_call" and item["status"] == "completed":
            yield from _picture(item, previews.get(item["id"], []), wanted)


def _counts(items: list[Json], wanted: Wanted) -> Iterator[str]:
    states = [item["status"] for item in items if item["type"] == "image_generation_call"]
    found = (states.count("completed"), states.count("failed"))
    if found != (wanted.pictures, wanted.failed):
        yield f"{found} pictures were made and failed instead of {(wanted.pictures, wanted.failed)}."


def _picture(item: Json, previews: list[str], wanted: Wanted) -> Iterator[str]:
    """Hold a picture against its prompt: the painter writes into it what it was made from."""
    prompt = item["revised_prompt"]
    sources = wanted.sources if item["action"] == "edit" else ()
    if wanted.tag not in prompt:
        yield f"A picture of {prompt!r} came to {wanted.tag}."
    if item["action"] != ("edit" if wanted.sources else "generate"):
        yield f"The picture of {prompt!r} is an {item['action']}."
    if read_mark(item["result"]) != mark_of(prompt, *sources):
        yield f"The picture of {prompt!r} is not the one that was painted for it."
    for number, preview in enumerate(previews):
        if read_mark(preview) != mark_of(f"{prompt} {number}"):
            yield f"Preview {number} of {prompt!r} is another one."
