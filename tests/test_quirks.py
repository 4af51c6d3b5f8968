"""The matrix of quirks: whatever a model server makes of a turn, the client gets the same stream."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from accumulator import check_types
from deeds import Did, called, said
from dialects import DIALECTS, KITE, Dialect
from driving import Driven, JsonAnswer, bytewise, drive
from exchanges import WEATHER, ask
from kite import HOSTED, run
from manners import WELL, Manner, events_of, frames, tell
from plain import plain_output, plain_requests, plain_stream
from rules import check_response, check_stream, read_events
from sample_stream import paint as base64_of
from transcript import Event

HERE = (said("Here it ", "is."),)
ASKED = ask(tools=[HOSTED, WEATHER])

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
every_turn = pytest.mark.parametrize(
    ("dialect", "deeds"),
    [
        pytest.param(dialect, deeds, id=f"{dialect.name}-{'+'.join(deed.kind for deed in deeds)}")
        for dialect in DIALECTS
        for deeds in dialect.turns
    ],
)


def _turns(deeds: tuple[Did, ...], manner: Manner = WELL) -> list[bytes]:
    """Tell what the model did, and, if it is asked again, its answer to that."""
    names = [deed.name for deed in deeds if deed.name]
    again = bool(names) and set(names) == {"image_generation"}
    return [tell(deeds, manner), *([tell(HERE, manner, turn=2)] if again else [])]


@cache
def _wanted(deeds: tuple[Did, ...]) -> Driven:
    return run(ASKED, _turns(deeds))


def _at_random(seed: str) -> Any:
    numbers = random.Random(seed)

    def split(body: bytes) -> Iterable[bytes]:
        places = sorted(numbers.randrange(len(body) + 1) for _ in range(20))
        return (body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True))

    return split


def _prompts(driven: Driven) -> list[str]:
    return sorted(call.arguments["prompt"] for call in driven.runs)


@every_turn
def test_any_dialect_leads_to_the_stream_of_a_well_behaved_server(
    dialect: Dialect, deeds: tuple[Did, ...]
) -> None:
    driven = run(ASKED, _turns(deeds, dialect.manner))
    wanted = _wanted(deeds)
    assert plain_stream(driven.body) == plain_stream(wanted.body)
    assert plain_requests(driven.asked) == plain_requests(wanted.asked)
    assert _prompts(driven) == _prompts(wanted)


@every_dialect
def test_a_dialect_is_understood_however_its_bytes_are_cut(dialect: Dialect) -> None:
    turns = _turns(max(dialect.turns, key=len), dialect.manner)
    whole = drive(ASKED, turns)
    assert check_types(whole.body) == []
    for split in (bytewise, _at_random(dialect.name)):
        cut = drive(ASKED, turns, split=split)
        assert cut.body == whole.body
        assert cut.asked == whole.asked


# -- answers that are no streams -------------------------------------------------------------------

CALL = events_of((called(KITE),))[-1]["response"]
SAID = events_of((said("Sure."),), turn=3)[-1]["response"]["output"][0]
NOTHING = {**SAID, "id": "msg_e", "content": [{**SAID["content"][0], "text": ""}]}
OBJECTS: dict[str, Event] = {
    "vLLM: null keys": {**CALL, "output": [{**CALL["output"][0], "async": None, "namespace": None}]},
    "llama.cpp: no usage and no number of a version": {**CALL, "object": "response", "completed_at": 1},
    "LiteLLM bridge: an empty message before the calls": {**CALL, "output": [NOTHING, *CALL["output"]]},
    "transformers: an empty message behind the calls": {**CALL, "output": [*CALL["output"], NOTHING]},
    "OGX: no status of items": {
        **CALL,
        "output": [{key: value for key, value in CALL["output"][0].items() if key != "status"}],
    },
    "LocalAI: one id for a call": {**CALL, "output": [{**CALL["output"][0], "id": "call_1a"}]},
    "gpt-oss: an empty reasoning": {
        **CALL,
        "output": [{"id": "rs_1", "type": "reasoning", "summary": [], "content": None}, *CALL["output"]],
    },
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("first", OBJECTS.values(), ids=OBJECTS)
def test_a_response_object_in_any_dialect_leads_to_the_same_response(first: Event, streamed: bool) -> None:
    request = {**ASKED, "stream": streamed}
    answers = [
        JsonAnswer(json.dumps(body).encode()) for body in (first, events_of(HERE, turn=2)[-1]["response"])
    ]
    driven = drive(request, answers)
    assert driven.finish is not None
    response = json.loads(driven.finish.response or b"")
    assert check_response(response, tools=ASKED["tools"]) == []
    wanted = read_events(_wanted((called(KITE),)).body)[-1]["response"]
    assert plain_output(response) == plain_output(wanted)
    assert bool(driven.body) == streamed


@pytest.mark.parametrize(
    "body", [b"null", b'{"detail":"Not Found"}', b"<html>502</html>", b"[]", b'"x"', b""]
)
def test_an_answer_that_is_no_response_is_a_failure_without_a_picture(body: bytes) -> None:
    driven = drive({**ASKED, "stream": False}, [JsonAnswer(body)])
    assert driven.runs == []
    assert driven.finish is not None
    assert driven.finish.failed


# -- turns that are cut off or fail ------------------------------------------------------------------

HALF = (Did("function_call", ('{"prompt": "a r',), "image_generation"),)
CUT_OFF: dict[str, tuple[str, Event, Manner]] = {
    "vLLM: a completed event, an incomplete response": ("completed", {"status": "incomplete"}, WELL),
    "OGX: an incomplete event, completed items": ("incomplete", {}, WELL),
    "LiteLLM bridge: an incomplete event, no reason": ("incomplete", {"incomplete_details": None}, WELL),
    "OpenAI: nothing of the call in the output": ("incomplete", {"output": []}, WELL),
    "mistral.rs: a call that never ends": ("incomplete", {}, Manner(endless=frozenset({"function_call"}))),
}
LEFT_OPEN: dict[str, Manner] = {
    "llama.cpp": Manner(numbers="none", places="none", closing="together"),
    "responses.js": Manner(named=False, closing="last", unfinished=True),
    "Ollama": Manner(deltas="one", places="zero"),
    "gpt-oss reference": Manner(unannounced=frozenset({"function_call"}), deltas="none"),
    "LM Studio": Manner(deltas="none"),
    "vLLM gpt-oss": Manner(silent=frozenset({"function_call"})),
}


@pytest.mark.parametrize(("ending", "fields", "manner"), CUT_OFF.values(), ids=CUT_OFF)
def test_arguments_that_the_token_limit_cut_off_paint_nothing_and_end_incomplete(
    ending: str, fields: Event, manner: Manner
) -> None:
    driven = run(ASKED, [tell((said("Sure."), *HALF), manner, ending=ending, **fields)])
    assert driven.runs == []
    events = read_events(driven.body)
    assert events[-1]["type"] == "response.incomplete"
    assert [item["status"] for item in events[-1]["response"]["output"]] == ["completed", "failed"]


@pytest.mark.parametrize("manner", LEFT_OPEN.values(), ids=LEFT_OPEN)
def test_broken_arguments_of_a_response_that_calls_itself_completed_paint_nothing_and_are_told_the_model(
    manner: Manner,
) -> None:
    driven = run(ASKED, [tell(HALF, manner), tell(HERE, manner, turn=2)])
    wanted = run(ASKED, [tell(HALF), tell(HERE, turn=2)])
    assert driven.runs == []
    assert plain_stream(driven.body) == plain_stream(wanted.body)
    assert "not a JSON object" in driven.asked[1]["input"][-1]["output"]


BEGUN = b"".join(frames(events_of((said("Sure, ", "drawing."), *HALF)))[:-4])
ERROR = {"message": "the engine died: secret words", "type": "server_error", "param": None, "code": None}
FAILED = events_of((), ending="failed", error=ERROR)[-1]


def _frame(payload: Event, *, named: bool = True) -> bytes:
    name = f"event: {payload['type']}\n" if named else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


FAILURES: dict[str, bytes] = {
    "vLLM: killed between two frames": b"",
    "llama.cpp: killed inside a frame": b'event: response.completed\ndata: {"type":"response.comp',
    "llama.cpp: a bare error": _frame({"error": ERROR}, named=False),
    "LiteLLM: failed under a name, [DONE]": _frame({**FAILED, "sequence_number": 0}) + b"data: [DONE]\n\n",
    "LiteLLM: [DONE] alone": b"data: [DONE]\n\n",
    "OGX: failed": _frame(FAILED, named=False),
    "OGX: a flat error": _frame({"type": "error", **ERROR, "sequence_number": 1}, named=False),
    "OpenAI: a nested error, then failed": _frame({"type": "error", "error": ERROR}) + _frame(FAILED),
    "transformers: a flat error, then failed": _frame({"type": "error", **ERROR}, named=False)
    + _frame(FAILED, named=False),
    "mistral.rs: cancelled": _frame({**FAILED, "type": "response.cancelled"}) + b"data: [DONE]\n\n",
    "aimock: malformed JSON": b'data: {"type":"response.output_text.delta",,\n\n',
    "a proxy: HTML": b"<html><body>502 Bad Gateway</body></html>",
    "a proxy: an error that is a string": _frame({"error": "upstream timed out"}, named=False),
}


@pytest.mark.parametrize("begun", [BEGUN, b""], ids=["in the middle", "at once"])
@pytest.mark.parametrize("told", FAILURES.values(), ids=FAILURES)
def test_a_failure_in_any_dialect_is_the_same_failed_response(told: bytes, begun: bytes) -> None:
    driven = drive(ASKED, [begun + told])
    assert driven.runs == []
    assert driven.finish is not None
    if not driven.body:  # nothing at all was heard: the client gets an error instead of a stream
        assert not begun
        assert driven.finish.response is None
        return
    assert check_stream(driven.body, tools=ASKED["tools"], tool_choice="auto") == []
    assert b"secret words" not in driven.body
    wanted = drive(ASKED, [begun + FAILURES["OGX: failed"]])
    assert plain_stream(driven.body) == plain_stream(wanted.body)
    assert drive(ASKED, [begun + told], split=bytewise).body == driven.body


# -- pictures of a model server's own ----------------------------------------------------------------


def _without_completed(events: list[Event]) -> list[Event]:
    return [one for one in events if not one["type"].endswith("_call.completed")]


PAINTED = base64_of("red")
NATIVE: dict[str, Manner] = {
    "xAI: the picture's item has a prompt": Manner(item_extra={"prompt": "a kite"}),
    "Azure: never completed": Manner(item_extra={"status": "generating"}, rewrite=_without_completed),
    "Codex: an empty final output": Manner(item_extra={"status": "generating"}, final="empty"),
    "no steps at all": Manner(
        unannounced=frozenset({"image_generation_call"}), lacking=frozenset({"ing", "ted"})
    ),
}


@pytest.mark.parametrize("manner", NATIVE.values(), ids=NATIVE)
def test_a_picture_that_the_model_server_made_looks_like_one_of_openais(manner: Manner) -> None:
    deeds = (Did("picture", (PAINTED,)), said("Here."))
    driven, wanted = drive(ASKED, [tell(deeds, manner)]), drive(ASKED, [tell(deeds)])
    for one in (driven, wanted):
        assert check_stream(one.body, tools=ASKED["tools"], native_images=True) == []
    assert plain_stream(driven.body) == plain_stream(wanted.body)
