"""Translate every recorded stream of a folder and judge what a client would get.

Usage: `python tests/replay_dir.py DIR`. Each `*.sse` file below DIR is one turn of a model server; if
`NAME.request.json` stands beside it, that is what it answered. A picture's follow-up turn is always
the same short text. One line per file, the sum at the end, exit code 1 when a stream is not valid.
"""

# ruff: noqa: T201  what this prints is what it is for

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import openai
from accumulator import accumulate, accumulate_events
from driving import Driven, JsonAnswer, Turn, drive
from item_rules import TERMINAL
from rules import check_stream, read_events

__all__ = ["client_request", "judge", "main"]

Json = dict[str, Any]

_HOSTED = {"type": "image_generation"}
_NAME = "image_generation"


def _canned() -> bytes:
    """Make the turn in which the model says something about its picture."""
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {
        "id": "msg_canned",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    told = {**part, "text": "Here it is."}
    done = {**item, "status": "completed", "content": [told]}
    response = {"id": "resp_canned", "object": "response", "created_at": 1, "model": "canned"}
    place = {"output_index": 0, "item_id": "msg_canned", "content_index": 0}
    frames: list[Json] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.in_progress", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        {"type": "response.output_text.delta", **place, "delta": "Here it is.", "logprobs": []},
        {"type": "response.output_text.done", **place, "text": "Here it is.", "logprobs": []},
        {"type": "response.content_part.done", **place, "part": told},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [done]}},
    ]
    numbered = ({**frame, "sequence_number": number} for number, frame in enumerate(frames))
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (f["type"].encode(), json.dumps(f).encode()) for f in numbered
    )


CANNED = _canned()


def client_request(recording: Path) -> Json:
    """Make the request that a client of ours would have sent to get this recording.

    The recordings ask model servers for a function named `image_generation`: that is our lowered
    tool, so here it is the hosted one again. Other tools stay; the history is left out.
    """
    recorded: Json = {}
    for name in (f"{recording.stem}.request.json", f"{recording.name}.request.json"):
        if recording.with_name(name).exists():
            recorded = json.loads(recording.with_name(name).read_bytes() or b"{}")
    recorded = recorded.get("request", recorded)
    tools = [_HOSTED if tool.get("name") == _NAME else tool for tool in recorded.get("tools") or []]
    if _HOSTED["type"] not in [tool["type"] for tool in tools]:
        tools.append(_HOSTED)
    request = {"model": "recorded", "input": "Draw a red cat.", "stream": True, "tools": tools}
    choice = recorded.get("tool_choice")
    if choice is not None:
        request["tool_choice"] = _HOSTED if _NAME in json.dumps(choice) else choice
    return request


def _pieces(body: bytes) -> Iterable[bytes]:
    return (body[start : start + 11] for start in range(0, len(body), 11))


def judge(recording: Path) -> tuple[str, list[str]]:
    """Translate one recording; return what became of it, in words, and what is wrong with it."""
    raw = recording.read_bytes()
    request = client_request(recording)
    turn: Turn = JsonAnswer(raw) if raw.lstrip().startswith(b"{") else raw
    driven = drive(request, [turn], rest=CANNED)
    if driven.finish is None:
        return "hangs", ["The exchange does not finish."]
    if driven.finish.response is None and not driven.body:
        return "refused", ["A stream is refused like an error page."] if b'"response.' in raw else []
    wrong = check_stream(
        driven.body,
        tools=request["tools"],
        tool_choice=request.get("tool_choice", "auto"),
        client_functions={tool.get("name") for tool in request["tools"]},
        native_images=b"image_generation_call" in raw,
    )
    if not wrong:
        wrong = [*_accumulate(driven.body), *_check_end(driven, turn)]
    if isinstance(turn, bytes) and drive(request, [turn], rest=CANNED, split=_pieces).body != driven.body:
        wrong.append("In small pieces the same recording gives another stream.")
    return _summary(driven), wrong


def _accumulate(body: bytes) -> list[str]:
    events = read_events(body)
    try:
        if events[-1]["type"] != "response.completed":
            accumulate_events(body)
        elif len(accumulate(body).output) != len(events[-1]["response"]["output"]):
            return ["openai-python gathers another number of items."]
    except (RuntimeError, openai.APIError, AttributeError, LookupError, TypeError, AssertionError) as error:
        return [f"openai-python raises {error!r}."]
    return []


def _check_end(driven: Driven, turn: Turn) -> list[str]:
    """A recording that was cut before its end must not look like a success."""
    cut = isinstance(turn, bytes) and not any(f'"{name}"'.encode() in turn for name in TERMINAL)
    last = read_events(driven.body)[-1]
    if cut and last["type"] != "response.failed":
        return [f"The recording has no end, but the stream ends in {last['type']}."]
    if driven.finish is None or json.loads(driven.finish.response or b"null") != last["response"]:
        return ["Those who did not ask for a stream get another response."]
    return []


def _summary(driven: Driven) -> str:
    events = read_events(driven.body) if driven.body else []
    last = events[-1].get("response", {}) if events else {}
    kinds = " ".join(item["type"] for item in last.get("output", []))
    return f"{last.get('status')} after {len(driven.asked)} turns, {len(driven.runs)} runs: {kinds}"


def main(folder: str) -> int:
    """Judge a folder; return the exit code."""
    recordings = sorted(Path(folder).rglob("*.sse"))
    if not recordings:
        print(f"There is no *.sse file below {folder}.")
        return 1
    valid = 0
    for recording in recordings:
        try:
            summary, wrong = judge(recording)
        except Exception as error:  # noqa: BLE001  one bad recording must not hide the others
            summary, wrong = "crashes", [repr(error)]
        valid += not wrong
        print(f"{'WRONG' if wrong else 'ok   '} {recording.relative_to(folder)}: {summary}")
        for sentence in wrong:
            print(f"      {sentence}")
    print(f"{valid} of {len(recordings)} valid")
    return 0 if valid == len(recordings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
