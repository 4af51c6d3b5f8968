"""One turn of a model server: function calls, the client's and ours, and other calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from imagecall.events.turn_events import CallSettled, Closed, Delta, Opened
from transcript import Event, event
from turn_reading import COMPLETED, CREATED, Reading, begun, call_item, canonical, read

GOOD = '{"prompt":"a kite"}'
OURS = call_item("fc_d", "draw", GOOD)
THEIRS = call_item("fc_o", "weather", '{"city":"Oslo"}')
SETTLED = '0 settled {"prompt": "a kite"}'
CUT_OFF = "0 settled The call was cut off before its arguments were complete."


def opened(item: Event) -> Event:
    return event("output_item.added", 0, item=begun(item))


def closed(item: Event) -> Event:
    return event("output_item.done", 0, item=item)


def delta(words: object, item_id: str = "fc_d") -> Event:
    return event("function_call_arguments.delta", 0, item_id, delta=words)


def ended(words: object, item_id: str = "fc_d", **fields: Any) -> Event:
    return event("function_call_arguments.done", 0, item_id, arguments=words, **fields)


def final(*items: Event, status: str = "completed") -> Event:
    return event(status, response={"status": status, "output": items})


def told(*payloads: Event, end: Event = COMPLETED, **options: Any) -> list[str]:
    return read(CREATED, *payloads, end, **options)[1:-1]


# -- whose call it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["draw", "functions.draw", "draw<|channel|>commentary", " draw"])
def test_a_call_of_our_function_is_ours_whatever_sticks_to_its_name(name: str) -> None:
    item = {**OURS, "name": name}
    assert told(opened(item), closed(item)) == [f"0 + function_call {name} (ours)", SETTLED]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("paint", {}),
        ("functions.draw", {"declared": ["functions.draw"]}),
        ("draw", {"name": None}),
        ("draw", {"name": "draw_2", "declared": ["draw"]}),
    ],
)
def test_any_other_call_is_the_clients(name: str, options: dict[str, Any]) -> None:
    item = {**OURS, "name": name}
    assert told(opened(item), closed(item), **options) == [
        f"0 + function_call {name}",
        f"0 function_call_arguments.delta {GOOD}",
        f"0 function_call_arguments.done {GOOD}",
        f"0 - function_call completed {GOOD}",
    ]


@pytest.mark.parametrize(
    "payloads",
    [
        [opened({**OURS, "name": None}), delta(GOOD), ended(GOOD, name="draw"), closed(OURS)],
        [opened({**OURS, "name": ""}), delta(GOOD), ended(GOOD), closed(OURS)],
        [opened({**OURS, "name": None}), delta(GOOD), final(OURS)],
        [delta(GOOD), ended(GOOD, name="functions.draw")],
        [delta(GOOD), closed(OURS)],
        [delta(GOOD), final(OURS)],
        [closed(OURS)],
        [closed({**OURS, "name": None}), final(OURS)],
    ],
)
def test_a_call_is_held_back_until_its_name_is_known(payloads: list[Event]) -> None:
    lines = told(*payloads)
    assert lines[0].startswith("0 + function_call")
    assert lines[0].endswith("(ours)")
    assert lines[1:] == [SETTLED]


def test_what_was_held_of_a_clients_call_comes_when_its_name_does() -> None:
    lines = told(
        opened({**THEIRS, "name": None}),
        delta('{"city":', "fc_o"),
        delta('"Oslo"}', "fc_o"),
        ended(THEIRS["arguments"], "fc_o", name="weather"),
        closed({**THEIRS, "name": None}),
    )
    assert lines == [
        "0 + function_call weather",
        '0 function_call_arguments.delta {"city":',
        '0 function_call_arguments.delta "Oslo"}',
        '0 function_call_arguments.done {"city":"Oslo"}',
        '0 - function_call completed {"city":"Oslo"}',
    ]


@pytest.mark.parametrize("ends", [[], [closed({**THEIRS, "name": None})], [ended("{}", "fc_o")]])
def test_a_call_without_a_name_is_dropped_with_a_note(ends: list[Event]) -> None:
    reading = Reading()
    reading.take(CREATED, opened({**THEIRS, "name": None}), delta("{}", "fc_o"), *ends)
    assert reading.take(COMPLETED, closed(THEIRS)) == ["ended completed"]
    assert reading.turn.notes == ["dropped a function call that has no name"]
    assert list(reading.turn.items) == []


def test_a_clients_call_that_nobody_announced_waits_for_the_call_id_it_is_answered_by() -> None:
    reading = Reading()
    held = reading.take(
        CREATED, delta('{"city":', "fc_o"), ended(THEIRS["arguments"], "fc_o", name="weather")
    )
    assert held == ["started resp_1"]
    assert reading.take(closed({**THEIRS, "name": ""})) == [
        "0 + function_call weather",
        '0 function_call_arguments.delta {"city":',
        '0 function_call_arguments.delta "Oslo"}',
        '0 function_call_arguments.done {"city":"Oslo"}',
        '0 - function_call completed {"city":"Oslo"}',
    ]
    opening = next(one for one in reading.events if isinstance(one, Opened))
    assert (opening.body["call_id"], opening.body["id"]) == ("call_fc_o", "fc_o")


# -- the client's calls ----------------------------------------------------------------------------

WEATHER = [
    "0 + function_call weather",
    '0 function_call_arguments.delta {"city":"Oslo"}',
    '0 function_call_arguments.done {"city":"Oslo"}',
    '0 - function_call completed {"city":"Oslo"}',
]
WORDS = THEIRS["arguments"]


@pytest.mark.parametrize(
    "payloads",
    [
        [opened(THEIRS), delta(WORDS, "fc_o"), ended(WORDS, "fc_o"), closed(THEIRS)],
        [opened(THEIRS), delta(WORDS, "fc_o"), ended(None, "fc_o"), closed(THEIRS)],
        [opened(THEIRS), delta(WORDS, "fc_o"), ended("", "fc_o"), closed({**THEIRS, "arguments": None})],
        [opened(THEIRS), delta(WORDS, "fc_o"), closed({**THEIRS, "arguments": ""})],
        [opened(THEIRS), delta(WORDS, "fc_o"), final({**THEIRS, "status": None})],
        [opened(THEIRS), delta(WORDS, "fc_o")],
        [opened(THEIRS), ended(WORDS, "fc_o"), ended(WORDS, "fc_o"), closed(THEIRS)],
        [opened(THEIRS), closed(THEIRS)],
        [opened(THEIRS), closed({**THEIRS, "arguments": {"city": "Oslo"}})],
        [event("output_item.added", 0, item=THEIRS)],
        [event("output_item.added", 0, item=THEIRS), ended(WORDS, "fc_o"), closed(THEIRS)],
        [event("output_item.added", 0, item={**THEIRS, "status": None}), closed(THEIRS)],
        [closed(THEIRS)],
        [final(THEIRS)],
    ],
)
def test_the_arguments_of_a_clients_call_come_once_and_whole(payloads: list[Event]) -> None:
    assert told(*payloads) == WEATHER


def test_an_announced_call_is_in_progress_and_without_arguments() -> None:
    reading = Reading()
    reading.take(CREATED, event("output_item.added", 0, item=THEIRS))
    opening = reading.events[-1]
    assert isinstance(opening, Opened)
    assert opening.body == begun(THEIRS)
    assert reading.lines(reading.turn.receive(canonical(COMPLETED)))[-2] == WEATHER[-1]


def test_what_is_missing_of_streamed_arguments_is_caught_up_with() -> None:
    assert told(opened(THEIRS), delta('{"city"', "fc_o"), closed(THEIRS)) == [
        WEATHER[0],
        '0 function_call_arguments.delta {"city"',
        '0 function_call_arguments.delta :"Oslo"}',
        *WEATHER[2:],
    ]


def test_streamed_arguments_stay_as_they_were_read_if_they_are_good() -> None:
    spaced = '{"city": "Oslo"}'
    ends = [ended(spaced, "fc_o"), closed({**THEIRS, "arguments": spaced})]
    assert told(opened(THEIRS), delta(WORDS, "fc_o"), *ends) == WEATHER
    assert told(opened(THEIRS), delta("{", "fc_o"), delta("{", "fc_o"), *ends)[-1].endswith(spaced)


def test_deltas_that_come_after_the_arguments_end_or_are_no_text_are_dropped() -> None:
    late = [delta("more", "fc_o"), delta(None, "fc_o")]
    assert told(opened(THEIRS), delta(7, "fc_o"), ended(WORDS, "fc_o"), *late, closed(THEIRS)) == WEATHER


def test_the_servers_own_frame_ends_the_arguments_if_it_says_them_all() -> None:
    reading = Reading()
    reading.take(CREATED, opened(THEIRS))
    frame = canonical(ended(WORDS, "fc_o"))
    reading.take(frame)
    told_end = reading.events[-1]
    assert isinstance(told_end, Delta)
    assert told_end.raw is frame.raw


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_clients_call_that_is_cut_off_closes_incomplete_and_has_no_end_of_arguments(status: str) -> None:
    cut = {**THEIRS, "arguments": '{"ci', "status": "in_progress"}
    for payloads in ([opened(THEIRS), delta('{"ci', "fc_o")], [opened(THEIRS)], []):
        lines = told(*payloads, end=final(cut, status=status))
        assert lines == [
            "0 + function_call weather",
            '0 function_call_arguments.delta {"ci',
            '0 - function_call incomplete {"ci',
        ]
    whole = told(opened(THEIRS), delta(WORDS, "fc_o"), end=final(status=status))
    assert whole == [*WEATHER[:3], '0 - function_call incomplete {"city":"Oslo"}']


# -- our calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payloads",
    [
        [opened(OURS), delta('{"prompt":'), delta('"a kite"}'), ended(GOOD), closed(OURS)],
        [opened(OURS), delta(GOOD), ended(""), closed({**OURS, "arguments": ""})],
        [opened(OURS), delta(GOOD), closed({**OURS, "arguments": None})],
        [opened(OURS), delta(GOOD)],
        [opened(OURS), ended(GOOD + "<|call|>")],
        [opened(OURS), ended(json.dumps(GOOD))],
        [opened(OURS), closed({**OURS, "arguments": {"prompt": "a kite"}})],
        [opened(OURS), delta("{"), ended("{"), closed(OURS)],
        [opened(OURS), closed({**OURS, "arguments": "{"}), final(OURS)],
        [opened(OURS), final(OURS)],
        [event("output_item.added", 0, item=OURS)],
        [opened(OURS), ended(GOOD), ended('{"prompt":"another"}'), closed({**OURS, "arguments": "{}"})],
        [closed(OURS), closed(OURS), final(OURS)],
        [closed(OURS), closed({**OURS, "id": "fc_x", "call_id": None})],
        [final(OURS)],
    ],
)
def test_our_call_is_settled_once_by_the_first_source_that_holds_an_object(payloads: list[Event]) -> None:
    assert told(*payloads) == ["0 + function_call draw (ours)", SETTLED]


def test_our_call_is_settled_as_soon_as_its_arguments_have_ended() -> None:
    reading = Reading()
    assert reading.take(CREATED, opened(OURS), delta(GOOD))[2:] == []
    assert reading.take(ended(GOOD)) == [SETTLED]
    assert reading.take(closed(OURS), delta("{}")) == []


@pytest.mark.parametrize("words", ["", "  ", None, "{}"])
def test_a_call_without_arguments_has_none(words: object) -> None:
    item = {**OURS, "arguments": words}
    assert told(opened(OURS), ended(words), closed(item))[1:] == ["0 settled {}"]
    assert told(closed(item))[1:] == ["0 settled {}"]
    assert told(final(item))[1:] == ["0 settled {}"]


@pytest.mark.parametrize("words", ["{", "a kite", "[]", '{"prompt":"a ki', 7, "null"])
def test_arguments_that_are_no_object_are_a_problem_when_the_turn_is_over(words: object) -> None:
    problem = "0 settled The arguments are not a JSON object."
    reading = Reading()
    waiting = reading.take(
        CREATED, opened(OURS), delta(words), ended(words), closed({**OURS, "arguments": words})
    )
    assert waiting[1:] == ["0 + function_call draw (ours)"]
    assert reading.take(COMPLETED) == [problem, "ended completed"]
    assert told(closed({**OURS, "arguments": words}))[1:] == [problem]


@pytest.mark.parametrize(
    "payloads",
    [
        [opened(OURS), delta('{"prompt":"'), delta("x" * 90), delta('"}'), ended("{}")],
        [opened(OURS), ended('{"prompt":"' + "x" * 90 + '"}')],
        [closed({**OURS, "arguments": '{"prompt":"' + "x" * 90 + '"}'})],
        [event("output_item.added", 0, item={**OURS, "arguments": '{"prompt":"' + "x" * 90 + '"}'})],
    ],
)
def test_arguments_that_are_too_long_are_a_problem_wherever_they_stand(payloads: list[Event]) -> None:
    lines = told(*payloads, max_arguments=100)
    assert lines[1:] == ["0 settled The arguments are longer than 100 characters."]
    assert told(*payloads, max_arguments=103)[1].startswith("0 settled {")


@pytest.mark.parametrize("end", ["incomplete", "failed", "cancelled"])
@pytest.mark.parametrize("payloads", [[], [delta('{"prompt":"a ki')], [delta(GOOD)]])
def test_a_call_that_was_not_settled_when_the_response_broke_off_is_not_run(
    end: str, payloads: list[Event]
) -> None:
    for output in ([], [OURS]):
        terminal = event(end, response={"status": end, "output": output})
        assert told(opened(OURS), *payloads, end=terminal)[1:] == [CUT_OFF]
    assert read(CREATED, opened(OURS), *payloads)[2:] == [CUT_OFF, "ended failed"]


@pytest.mark.parametrize("end", ["incomplete", "failed"])
def test_a_call_that_only_a_broken_response_tells_of_is_not_even_begun(end: str) -> None:
    assert told(end=final(OURS, status=end)) == []


def test_a_call_that_was_settled_before_the_break_stays_settled() -> None:
    assert told(opened(OURS), closed(OURS), end=final(status="incomplete"))[1:] == [SETTLED]


def test_two_of_our_calls_are_settled_each_on_its_own() -> None:
    second = call_item("fc_e", "draw", '{"prompt":"a dog"}')
    lines = told(opened(OURS), opened(second), delta("{}", "fc_e"), closed(second), closed(OURS))
    assert lines == [
        "0 + function_call draw (ours)",
        "1 + function_call draw (ours)",
        '1 settled {"prompt": "a dog"}',
        SETTLED,
    ]


def test_what_is_settled_is_what_the_model_wrote() -> None:
    reading = Reading()
    reading.take(CREATED, closed({**OURS, "arguments": '{"prompt":"A\u2028B","n":[1,{"a":null}]}'}))
    call = reading.events[-1]
    assert isinstance(call, CallSettled)
    assert call.arguments == {"prompt": "A\u2028B", "n": [1, {"a": None}]}


# -- calls of other kinds --------------------------------------------------------------------------

SQL = {"id": "ct", "type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"}


def custom(kind: str, **fields: str) -> Event:
    return event(f"custom_tool_call_input.{kind}", 0, "ct", **fields)


@pytest.mark.parametrize(
    "payloads",
    [
        [event("output_item.added", 0, item=SQL), custom("delta", delta="SELECT 1"), closed(SQL)],
        [custom("delta", delta="SELECT 1"), custom("done", input="SELECT 1"), closed(SQL)],
        [event("output_item.added", 0, item={**SQL, "input": ""}), custom("delta", delta="SELECT 1")],
        [event("output_item.added", 0, item=SQL)],
        [closed(SQL)],
        [final(SQL)],
    ],
)
def test_the_input_of_a_custom_tool_comes_once_and_whole(payloads: list[Event]) -> None:
    lines = told(*payloads)
    assert lines[0].startswith("0 + custom_tool_call")
    assert lines[1:3] == [
        "0 custom_tool_call_input.delta SELECT 1",
        "0 custom_tool_call_input.done SELECT 1",
    ]
    assert lines[3].split(maxsplit=2)[2].removeprefix("custom_tool_call ").endswith("SELECT 1")
    assert len(lines) == 4


def test_an_input_that_only_its_end_tells_is_kept() -> None:
    reading = Reading()
    started = event("output_item.added", 0, item={**SQL, "input": ""})
    reading.take(CREATED, started, custom("done", input="SELECT 1"), COMPLETED)
    end = next(one for one in reading.events if isinstance(one, Closed))
    assert end.body["input"] == "SELECT 1"


def test_code_that_is_cut_off_stands_in_its_item_and_has_no_end() -> None:
    item = {"id": "ci", "type": "code_interpreter_call", "status": "in_progress", "code": None}
    payloads = [
        event("output_item.added", 0, item=item),
        event("code_interpreter_call.in_progress", 0, "ci"),
        event("code_interpreter_call_code.delta", 0, "ci", delta="print("),
    ]
    assert told(*payloads, end=final(status="incomplete"))[1:] == [
        "0 code_interpreter_call.in_progress",
        "0 code_interpreter_call_code.delta print(",
        "0 - code_interpreter_call failed print(",
    ]


def test_other_hosted_items_pass_with_their_events() -> None:
    item = {"id": "ws", "type": "web_search_call", "status": "completed", "action": {}}
    payloads = [
        event("output_item.added", 0, item={**item, "status": None}),
        event("web_search_call.searching", 0, "ws"),
        closed(item),
    ]
    assert told(*payloads) == [
        "0 + web_search_call",
        "0 web_search_call.searching",
        "0 - web_search_call completed",
    ]


# -- pictures that the server makes itself ---------------------------------------------------------

PICTURE = {"id": "ig_x", "type": "image_generation_call", "status": "completed", "result": "QUJD"}
PHASES = ["0 image_generation_call.in_progress", "0 image_generation_call.generating"]


def native(phase: str) -> Event:
    return event(f"image_generation_call.{phase}", 0, "ig_x")


@pytest.mark.parametrize(
    "payloads",
    [
        [native("in_progress"), native("generating"), native("completed"), closed(PICTURE)],
        [native("in_progress"), native("generating"), closed({**PICTURE, "status": "generating"})],
        [native("in_progress"), closed(PICTURE)],
        [closed(PICTURE)],
        [final(PICTURE)],
    ],
)
def test_a_native_picture_goes_through_all_its_steps(payloads: list[Event]) -> None:
    lines = told(event("output_item.added", 0, item={**PICTURE, "result": None, "prompt": "x"}), *payloads)
    assert lines == [
        "0 + image_generation_call",
        *PHASES,
        "0 image_generation_call.completed",
        "0 - image_generation_call completed QUJD",
    ]


def test_a_native_picture_is_announced_bare_and_keeps_its_previews() -> None:
    reading = Reading()
    started = event("output_item.added", 0, item={**PICTURE, "result": None, "prompt": "x"})
    lines = reading.take(CREATED, started, native("partial_image"), closed(PICTURE))
    assert lines[2:] == [
        "0 image_generation_call.partial_image",
        "0 image_generation_call.completed",
        "0 - image_generation_call completed QUJD",
    ]
    opening = reading.events[1]
    assert isinstance(opening, Opened)
    assert opening.body == {"id": "ig_x", "type": "image_generation_call", "status": "in_progress"}


@pytest.mark.parametrize("result", [None, "", 7])
def test_a_native_picture_without_a_result_has_failed(result: object) -> None:
    reading = Reading()
    error = {"type": "t", "code": "moderation_blocked", "message": "m", "param": None}
    assert reading.take(CREATED, closed({**PICTURE, "result": result, "error": error}))[2:] == [
        *PHASES,
        "0 - image_generation_call failed",
    ]
    end = reading.events[-1]
    assert isinstance(end, Closed)
    assert end.body == {**PICTURE, "status": "failed", "result": "", "error": error}
    cut = Reading()
    cut.take(CREATED, event("output_item.added", 0, item={**PICTURE, "result": None}), final(status="failed"))
    end = cut.events[-2]
    assert isinstance(end, Closed)
    assert end.body["error"].keys() == error.keys()
