"""The rules that every stream of this product keeps, read off the bytes alone.

Nothing here comes from the packages under test: frames are split by a reader of its own, and each
rule stands for something that a published client trips over. `check_stream` judges a whole body of
server-sent events, `check_beginning` one that was read only so far, `check_response` the JSON object that
a client gets who did not ask for a stream. Each returns one sentence per broken rule; an empty list means
valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from item_rules import EVENT_TYPES, TERMINAL, check_item, is_int
from response_rules import Expect, check_items, check_object, check_picture

__all__ = ["check_beginning", "check_response", "check_stream", "read_events"]

Json = dict[str, Any]

_LIFECYCLE = {
    "response.created": "in_progress",
    "response.in_progress": "in_progress",
    "response.completed": "completed",
    "response.failed": "failed",
    "response.incomplete": "incomplete",
}
_OPENING = ["response.created", "response.in_progress"]
_UNINDEXED = {*_LIFECYCLE, "error", *(name for name in EVENT_TYPES if name.startswith("response.audio."))}


def check_stream(body: bytes, **facts: Any) -> list[str]:
    """Tell what is wrong with a whole stream, in one sentence per broken rule.

    Args:
        body: everything the client received.
        **facts: about the request; see `Expect`.
    """
    expect = Expect(**facts)
    events, wrong = _read(body)
    if not events:
        return [*wrong, "There is no event at all."]
    wrong += _guarded(_check_end(events))
    done: dict[int, Json] = {}
    for index, own in _by_item(events).items():
        wrong += _check_item(index, own, expect)
        if own[-1]["type"] == "response.output_item.done":
            done[index] = own[-1]["item"]
    wrong += _check_events(events, expect)
    last = events[-1].get("response")
    if isinstance(last, dict) and last.get("output") != [done[index] for index in sorted(done)]:
        wrong.append("The final output is not the list of the items as they were done, in index order.")
    return wrong


def check_beginning(body: bytes, **facts: Any) -> list[str]:
    """Tell what is wrong with a stream that the client left: its whole frames, and its finished items.

    Args:
        body: what the client received until then; the frame in whose midst it left does not count.
        **facts: about the request; see `Expect`.
    """
    read = body[: body.rfind(b"\n\n") + 2] if b"\n\n" in body else b""
    events, wrong = _read(read) if read else ([], [])
    if not events or events[-1]["type"] in TERMINAL:
        return check_stream(read, **facts) if events else wrong
    expect = Expect(**facts)
    for index, own in _by_item(events).items():
        if own[-1]["type"] == "response.output_item.done":
            wrong += _check_item(index, own, expect)
            wrong += _guarded(check_items([own[-1]["item"]], expect))
        else:
            wrong += _guarded(_check_previews(index, own, expect))
    return wrong + _check_events(events, expect)


def check_response(response: Any, **facts: Any) -> list[str]:
    """Tell what is wrong with a finished response object; for the `facts` see `Expect`."""
    if not isinstance(response, dict):
        return ["The response is not a JSON object."]
    expect = Expect(**facts)
    wrong = list(_guarded(check_object(response, expect)))
    if f"response.{response.get('status')}" not in TERMINAL:
        wrong.append(f"The status of a finished response is {response.get('status')!r}.")
    return wrong


def read_events(body: bytes) -> list[Json]:
    """Return the JSON payloads of a well-formed stream, in order, without `[DONE]` and comments."""
    events, wrong = _read(body)
    if wrong:
        raise ValueError(wrong[0])
    return events


def _guarded(check: Iterator[str]) -> Iterator[str]:
    """Pass on what a check finds; where it cannot even read a value, that is what it finds."""
    try:
        yield from check
    except (AttributeError, LookupError, TypeError) as error:
        yield f"a value is missing or of another type: {error!r}."


def _read(body: bytes) -> tuple[list[Json], list[str]]:
    events: list[Json] = []
    wrong: list[str] = []
    sentinel = False
    if not body.endswith(b"\n\n"):
        wrong.append("The stream does not end with a whole frame.")
    for lines in _frames(body):
        if all(line.startswith(b":") for line in lines):
            continue
        if sentinel:
            wrong.append("Something follows [DONE].")
        if lines == [b"data: [DONE]"]:
            sentinel = True
            continue
        shape = [line.partition(b": ")[0] for line in lines]
        if shape != [b"event", b"data"]:
            wrong.append(f"A frame has the fields {[name[:20] for name in shape]} instead of event, data.")
            continue
        try:
            event = json.loads(lines[1][len(b"data: ") :].decode(), object_pairs_hook=_no_twins)
        except ValueError as error:
            wrong.append(f"The data of a frame named {lines[0][7:]!r} is not JSON: {error}.")
            continue
        name = lines[0][len(b"event: ") :].decode("latin-1")
        if not isinstance(event, dict) or event.get("type") != name:
            wrong.append(f"A frame is named {name!r}, but its data is of another type.")
        elif name not in EVENT_TYPES:
            wrong.append(f"No SDK knows the event type {name!r}.")
        else:
            events.append(event)
    return events, wrong


def _frames(body: bytes) -> Iterator[list[bytes]]:
    """Split strictly: LF ends a line, one empty line ends a frame. A stray CR stays in its line."""
    lines: list[bytes] = []
    for line in body.split(b"\n"):
        if line:
            lines.append(line)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _no_twins(pairs: list[tuple[str, Any]]) -> Json:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError(f"a key stands twice among {sorted(key for key, _ in pairs)}")
    return dict(pairs)


def _check_events(events: list[Json], expect: Expect) -> list[str]:
    """Hold what is there of a stream against the rules that need no end."""
    wrong = [*_guarded(_check_order(events)), *_guarded(_check_indexes(events))]
    for event in events:
        if event["type"] in _LIFECYCLE:
            told = _guarded(_check_lifecycle(event, expect))
            wrong += [f"{event['type']}: {sentence}" for sentence in told]
    return wrong


def _check_item(index: int, own: list[Json], expect: Expect) -> list[str]:
    told = _guarded(check_item(own, native_images=expect.native_images))
    wrong = [f"Item {index}: {sentence}" for sentence in told]
    return [*wrong, *_guarded(_check_previews(index, own, expect))]


def _check_end(events: list[Json]) -> Iterator[str]:
    names = [event["type"] for event in events]
    for name in _OPENING:
        if name not in names:
            yield f"{name} is never sent."
    ends = [name for name in names if name in TERMINAL]
    if len(ends) != 1 or names[-1] != ends[0]:
        yield f"There is not exactly one terminal event at the very end, but {ends} and {names[-1]!r} last."
    if "error" in names and (names.count("error") != 1 or names[-2:] != ["error", "response.failed"]):
        yield "An error frame stands elsewhere than right before response.failed."


def _check_order(events: list[Json]) -> Iterator[str]:
    names = [event["type"] for event in events]
    numbers = [event.get("sequence_number") for event in events]
    if numbers != list(range(len(events))) or not all(is_int(number) for number in numbers):
        yield f"sequence_number does not run 0, 1, 2, …: {numbers[:60]}."
    if names[:2] != _OPENING[: len(names)]:
        yield f"The stream opens with {names[:2]} instead of created, in_progress."
    for name in _OPENING:
        if names.count(name) > 1:
            yield f"{name} is sent {names.count(name)} times."
    for event in events:
        if event["type"] == "error":
            yield from _check_error_frame(event, events)
        elif "error" in event:
            yield f"{event['type']} has a top-level error key, at which two SDKs raise."
    for key in ("id", "created_at"):
        values = [event["response"].get(key) for event in events if isinstance(event.get("response"), dict)]
        if any(value != values[0] for value in values):
            yield f"The response's {key} changes: {values}."


def _check_error_frame(event: Json, events: list[Json]) -> Iterator[str]:
    nested = event.get("error")
    if not isinstance(nested, dict) or {"type", "code", "message", "param"} - nested.keys():
        yield f"The error frame has no full nested error: {nested!r}."
    elif any(nested[key] != event.get(key, "absent") for key in ("code", "message", "param")):
        yield "The error frame does not say the same flat and nested."
    pictures = (e["item"] for e in events if e["type"] == "response.output_item.done")
    if any(item["type"] == "image_generation_call" and item["status"] == "completed" for item in pictures):
        yield "An error frame is sent although a picture was finished."


def _check_indexes(events: list[Json]) -> Iterator[str]:
    announced = 0
    ids: set[Any] = set()
    calls: set[Any] = set()
    for event in events:
        name, index = event["type"], event.get("output_index")
        if name in _UNINDEXED:
            continue
        if not is_int(index) or not 0 <= index <= announced:
            yield f"{name} has the output_index {index!r} when {announced} items are announced."
        elif (index == announced) != (name == "response.output_item.added"):
            yield f"{name} has the output_index {index}, which is {'new' if index == announced else 'taken'}."
        if name == "response.output_item.added":
            announced += 1
            item = event["item"]
            if item.get("id") in ids:
                yield f"The item id {item.get('id')!r} is used twice."
            if (item["type"], item.get("call_id")) in calls:
                yield f"The call_id {item.get('call_id')!r} is used twice."
            ids.add(item.get("id"))
            calls |= {(item["type"], item["call_id"])} if "call_id" in item else set()


def _by_item(events: list[Json]) -> dict[int, list[Json]]:
    items: dict[int, list[Json]] = {}
    for event in events:
        if event["type"] not in _UNINDEXED and is_int(event.get("output_index")):
            items.setdefault(event["output_index"], []).append(event)
    return items


def _check_previews(index: int, own: list[Json], expect: Expect) -> Iterator[str]:
    if expect.native_images:
        return
    previews = [e for e in own if e["type"] == "response.image_generation_call.partial_image"]
    most = expect.most_partials()
    if most is not None and len(previews) > most:
        yield f"Item {index}: {len(previews)} partial images where {most} were asked for."
    for number, preview in enumerate(previews):
        data = preview.get("partial_image_b64")
        if preview.get("partial_image_index") != number:
            yield f"Item {index}: partial image {number} has index {preview.get('partial_image_index')!r}."
        if "output_format" not in preview:
            yield f"Item {index}: partial image {number} has no output_format."
        for sentence in check_picture(data, preview):
            yield f"Item {index}: partial image {number}: {sentence}"
        if data == own[-1].get("item", {}).get("result"):
            yield f"Item {index}: partial image {number} is the final picture."


def _check_lifecycle(event: Json, expect: Expect) -> Iterator[str]:
    response = event.get("response")
    if not isinstance(response, dict):
        yield "there is no response object."
        return
    status = _LIFECYCLE[event["type"]]
    # A cancelled response ends as a failed one: no SDK knows an event of its own.
    may_be = (status, "cancelled") if status == "failed" else (status,)
    if response.get("status") not in may_be:
        yield f"the response's status is {response.get('status')!r}."
    if status == "in_progress" and response.get("output") != []:
        yield "output is not empty at the start."
    yield from check_object(response, expect)
