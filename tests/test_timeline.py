"""A client's stream as a drawing."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from exchanges import ask, calling, says, turn
from imagecall.middleware.recording import Recording, read_recording, replay_recording
from imagecall.middleware.replay import RecordedTurn
from imagecall.middleware.terminal.timeline import timeline

SAMPLES = Path(__file__).parent.parent / "samples"


def drawn(recording: Recording) -> list[str]:
    return [line.plain for line in timeline(recording)]


def recording(*turns: bytes, client: bytes = b"", **request: Any) -> Recording:
    return Recording(ask(**request), tuple(RecordedTurn(body) for body in turns), client)


def sizes(recorded: Recording) -> dict[int, int]:
    """Tell how long each frame of a stream is without the base64 in it."""
    frames = replay_recording(recorded).split(b"\n\n")[:-1]
    bare: dict[int, int] = {}
    for frame in frames:
        event = json.loads(frame.partition(b"data: ")[2])
        items = [event.get("item") or {}, *(event.get("response") or {}).get("output", [])]
        encoded = sum(len(item.get("result") or "") for item in items)
        bare[event["sequence_number"]] = len(frame) + 2 - encoded
    return bare


def test_two_pictures_at_once_have_a_lane_each_and_their_base64_is_a_size() -> None:
    recorded = read_recording(SAMPLES / "vllm-parallel-pictures")
    results = [
        item["result"]
        for item in json.loads(recorded.client.split(b"data: ")[-1])["response"]["output"]
        if item.get("result")
    ]
    first, second = (f"{len(base64.b64decode(result)) / 1000:.1f} kB picture" for result in results)
    lines = [line.split("  ") for line in drawn(recorded)]
    events = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    size = {number: f"{bare} bytes" for number, bare in sizes(recorded).items()}
    image = "response.image_generation_call."
    added, done = "response.output_item.added", "response.output_item.done"
    assert events[:15] == [
        ["turn 1"],
        ["0", "response.created", size[0], "in_progress"],
        ["1", "response.in_progress", size[1], "in_progress"],
        ["2", "┌", added, size[2], "image_generation_call in_progress"],
        ["3", "├", f"{image}in_progress", size[3]],
        ["4", "├", f"{image}generating", size[4]],
        ["5", "│┌", added, size[5], "image_generation_call in_progress"],
        ["6", "│├", f"{image}in_progress", size[6]],
        ["7", "├│", f"{image}completed", size[7]],
        ["8", "└│", done, f"{size[8]} + {first}", "image_generation_call 256x256 completed"],
        ["9", "├", f"{image}generating", size[9]],
        ["10", "├", f"{image}completed", size[10]],
        ["11", "└", done, f"{size[11]} + {second}", "image_generation_call 256x256 completed"],
        ["turn 2"],
        ["12", "┌", added, size[12], "message in_progress"],
    ]
    assert [line[:3] for line in events[16:19]] == [
        ["14–17", "├", "response.output_text.delta × 4"],
        ["18", "├", "response.output_text.done"],
        ["19", "├", "response.content_part.done"],
    ]
    assert events[-1][:2] == ["21", "response.completed"]
    assert events[-1][3] == "completed"


def test_the_columns_stand_under_each_other() -> None:
    lines = [line for line in drawn(read_recording(SAMPLES / "vllm-parallel-pictures")) if "turn" not in line]
    assert {line.index("response.") for line in lines} == {len("14–17  ┌┌┌  ")}
    assert len({len(line.partition("bytes  ")[0]) for line in lines if line.count("  in_progress")}) == 1


def test_an_answer_in_one_piece_has_no_events_and_still_its_turns() -> None:
    recorded = read_recording(SAMPLES / "litellm-not-streamed")
    first, second, whole = drawn(recorded)
    assert (first, second) == ("turn 1", "turn 2")
    assert whole.split()[0] == "response"
    assert whole.endswith(" kB picture  completed")


def test_what_is_said_by_turns_is_not_joined() -> None:
    words = json.dumps({"city": "Oslo"})
    both = turn(says("Hello", 0), calling(words, 1, name="weather"), says("Bye", 2, "msg_b"))
    function = {"type": "function", "name": "weather", "parameters": {}}
    tools = [function, {"type": "image_generation"}]
    lines = drawn(recording(both + b"data: [DONE]\n\n", tools=tools))
    deltas = [line for line in lines if ".delta" in line]
    assert [line.split("response.")[1].split("  ")[0].strip() for line in deltas] == [
        "output_text.delta × 2",
        "function_call_arguments.delta × 2",
        "output_text.delta × 2",
    ]
    assert lines[-1].split() == ["[DONE]", "14", "bytes"]


def test_a_refusal_is_told_with_the_turn_that_met_it() -> None:
    refused = RecordedTurn(b'{"error":{"message":"No."}}', 401, ((b"content-type", b"application/json"),))
    assert drawn(Recording(ask(), (refused,), b"")) == ["turn 1", "    error  27 bytes"]


def test_a_turn_that_gave_nothing_is_told_all_the_same() -> None:
    image = json.dumps({"prompt": "a kite"})
    lines = drawn(recording(turn(calling(image)), b""))
    assert [line for line in lines if line.startswith("turn")] == ["turn 1", "turn 2"]
    assert lines[-1].split()[1] == "response.failed"


def test_an_empty_answer_has_no_drawing() -> None:
    assert drawn(Recording(ask(), (RecordedTurn(b"", 503, ()),), b"")) == []


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/meta.toml")))
def test_every_recording_can_be_drawn(name: str) -> None:
    recorded = read_recording(SAMPLES / name)
    assert sum(line.startswith("turn ") for line in drawn(recorded)) == len(recorded.turns)
