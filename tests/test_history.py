"""Pictures of the past: what a client replays, and what one turn hands to the next."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.errors import RequestError
from imagecall.events.history import call_items, lower_history, output_item, replayed
from imagecall.events.known import Known
from imagecall.events.wire import dumps

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGM4oaHxHwAE7AIY0raoogAAAABJRU5ErkJggg=="
USER = {"role": "user", "content": "Draw a kite."}
KITE = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PIXEL}
STORED_KITE = {
    "id": "ig_1",
    "type": "image_generation_call",
    "status": "completed",
    "revised_prompt": "a red kite",
    "size": "64x64",
    "output_format": "webp",
}
STORED = Known({"ig_1": STORED_KITE}, frozenset({"ig_1"}))
SHOWN = (
    "The user already sees this picture. Answer in a sentence; call again only if asked for another "
    "picture or a change."
)
NOT_FOUND = (
    "Item with id '{}' not found. Items are not persisted when `store` is set to false. "
    "Try again with `store` set to true, or remove this item from your input."
)


def lowered(*items, known=STORED, name="image_generation"):
    return lower_history(list(items), name=name, known=known)


def call(prompt, call_id="call_ig_1"):
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "image_generation",
        "arguments": json.dumps({"prompt": prompt}, separators=(",", ":"), ensure_ascii=False),
    }


def shape(items):
    """Tell each item by its type and call id, to read an order at a glance."""
    return [(item.get("type", item.get("role")), item.get("call_id")) for item in items]


def told(items):
    """Read what the model is told of the last picture, without the fixed note."""
    text = json.loads(items[-1]["output"])
    note = text.pop("note")
    return text, note


# --- the two shapes -----------------------------------------------------------------------------


def test_a_call_and_its_output_are_plain():
    assert call_items("call_1", "paint", '{"prompt":"a cat"}') == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "paint",
        "arguments": '{"prompt":"a cat"}',
    }
    assert output_item("call_1", "done") == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "done",
    }


@pytest.mark.parametrize(
    ("given", "repaired"),
    [
        ("", "{}"),
        ("{}", "{}"),
        ('{ "prompt" : "a cat" }', '{ "prompt" : "a cat" }'),
        ('{"prompt": "a cat"}<|end|>', '{"prompt":"a cat"}'),
        ('{"prompt": "a\ncat"}', '{"prompt":"a\\ncat"}'),
        ('{"prompt": "katze', "{}"),
        ('["a cat"]', "{}"),
        ("null", "{}"),
        ("[" * 100_000, "{}"),
        ('"{\\"prompt\\": \\"é\\"}"', '{"prompt":"é"}'),
    ],
)
def test_arguments_of_the_past_are_always_one_json_object(given, repaired):
    assert call_items("call_1", "paint", given)["arguments"] == repaired


# --- a turn's items for the next turn -----------------------------------------------------------


def test_a_replayed_message_keeps_what_the_input_schema_has():
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "output_index": 3,
        "sequence_number": -1,
        "name": None,
        "content": [
            {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": [1], "parsed": None},
            {"type": "output_text", "text": "there", "annotations": None},
            {"type": "refusal", "refusal": "no", "x": 1},
            {"type": "output_audio", "data": "AA", "x": None},
            "odd",
        ],
    }
    assert replayed(message) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "Hi", "annotations": []},
            {"type": "output_text", "text": "there", "annotations": []},
            {"type": "refusal", "refusal": "no"},
            {"type": "output_audio", "data": "AA"},
            "odd",
        ],
    }


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "",
        " \n",
        [{"type": "output_text", "text": "\n", "annotations": []}],
        [{"type": "output_text", "text": None}, {"type": "text", "text": " "}],
    ],
)
def test_a_message_that_says_nothing_is_not_replayed(content):
    assert replayed({"id": "msg_1", "type": "message", "role": "assistant", "content": content}) is None


@pytest.mark.parametrize(
    "part", [{"type": "refusal", "refusal": "No."}, {"type": "output_image", "data": "AA"}]
)
def test_a_message_without_text_may_say_something(part):
    message = {"type": "message", "role": "assistant", "content": [part]}
    assert replayed(message) == message


def test_a_message_with_a_plain_string_is_replayed():
    message = {"id": None, "type": "message", "role": "assistant", "content": "Hi"}
    assert replayed(message) == {"type": "message", "role": "assistant", "content": "Hi"}


def test_a_replayed_call_loses_its_id_and_status_and_its_broken_arguments():
    given = {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "list",
        "namespace": "files",
        "arguments": "",
        "status": "completed",
        "caller": None,
    }
    assert replayed(given) == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "list",
        "arguments": "{}",
        "namespace": "files",
    }
    assert replayed({"type": "function_call", "call_id": "c", "name": "n", "arguments": {"a": 1}}) == {
        "type": "function_call",
        "call_id": "c",
        "name": "n",
        "arguments": '{"a":1}',
    }


def test_replayed_reasoning_has_a_summary_and_no_nulls():
    reasoning = {
        "id": "rs_1",
        "type": "reasoning",
        "status": None,
        "encrypted_content": None,
        "content": [{"type": "reasoning_text", "text": "Hm.", "x": None}, "odd"],
        "output_index": -1,
    }
    assert replayed(reasoning) == {
        "id": "rs_1",
        "type": "reasoning",
        "content": [{"type": "reasoning_text", "text": "Hm."}, "odd"],
        "summary": [],
    }


def test_encrypted_reasoning_is_replayed_without_empty_parts():
    reasoning = {
        "type": "reasoning",
        "summary": [],
        "content": [],
        "encrypted_content": "gAAA",
        "status": "completed",
    }
    assert replayed(reasoning) == {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "gAAA",
        "status": "completed",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"summary": [], "content": []},
        {"summary": None, "content": [{"type": "reasoning_text", "text": "\n"}]},
        {"summary": [{"type": "summary_text", "text": ""}], "encrypted_content": ""},
        {"content": "a string is no list of parts"},
    ],
)
def test_reasoning_with_nothing_in_it_is_not_replayed(fields):
    assert replayed({"id": "rs_1", "type": "reasoning", **fields}) is None


def test_items_of_unknown_types_are_replayed_without_their_nulls():
    assert replayed({"type": "web_search_call", "id": "ws_1", "action": None, "x": [None]}) == {
        "type": "web_search_call",
        "id": "ws_1",
        "x": [None],
    }


# --- the input a client replays -----------------------------------------------------------------


def test_a_picture_becomes_a_call_and_its_output():
    item = {
        **KITE,
        "action": "generate",
        "background": "opaque",
        "output_format": "png",
        "quality": "low",
        "size": "1024x1024",
        "revised_prompt": "a kite é",
        "future_field": {"x": 1},
    }
    thanks = {"role": "user", "content": "Thanks."}
    result = lowered(USER, item, thanks, known=Known())
    assert result[:2] == [USER, call("a kite é")]
    assert result[3] is thanks
    assert set(result[2]) == {"type", "call_id", "output"}
    assert told(result[:3]) == (
        {"status": "completed", "image_id": "ig_1", "size": "1024x1024", "output_format": "png"},
        SHOWN,
    )


def test_the_base64_of_old_pictures_never_reaches_the_model():
    big = PIXEL * 1000
    pictures = [
        {**KITE, "id": f"ig_{n}", "result": ("data:image/png;base64," if n % 2 else "") + big}
        for n in range(10)
    ]
    text = json.dumps(lowered(USER, *pictures, known=Known()))
    assert PIXEL[:80] not in text
    assert len(text) < 20_000


def test_the_prompt_is_the_whole_revised_prompt():
    prompt = "A long prompt. " * 100
    assert lowered(USER, {**KITE, "revised_prompt": prompt})[1] == call(prompt)


def test_without_a_revised_prompt_the_store_knows_it():
    assert lowered(USER, KITE)[1] == call("a red kite")


def test_some_servers_call_it_prompt():
    assert lowered(USER, {**KITE, "prompt": "a blue kite"})[1] == call("a blue kite")


def test_an_unknown_prompt_is_what_the_user_said_last():
    parts = [
        {"type": "input_text", "text": "Draw"},
        {"type": "input_image", "image_url": "x"},
        {"text": "it."},
        5,
    ]
    said = {"type": "message", "role": "user", "content": parts}
    silent = {"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}
    assert lowered(USER, said, silent, {"role": "assistant", "content": "Yes?"}, KITE, known=Known())[
        4
    ] == call("Draw\nit.")
    assert lowered({"role": "user", "content": 5}, {**KITE, "revised_prompt": ""}, known=Known())[1] == call(
        ""
    )


def test_an_id_alone_is_looked_up():
    result = lowered(USER, {"type": "image_generation_call", "id": "ig_1"})
    assert result[1] == call("a red kite")
    assert told(result)[0] == {
        "status": "completed",
        "image_id": "ig_1",
        "size": "64x64",
        "output_format": "webp",
    }


@pytest.mark.parametrize(
    "reference",
    [
        {"type": "item_reference", "id": "ig_1"},
        {"type": None, "id": "ig_1"},
        {"id": "ig_1"},
        {**KITE, "result": None},
        {**KITE, "result": ""},
        {**KITE, "result": None, "status": "generating"},
    ],
)
def test_a_reference_to_a_picture_is_the_picture(reference):
    assert lowered(USER, reference) == lowered(USER, {"type": "image_generation_call", "id": "ig_1"})


def test_a_repeated_reference_counts_once():
    reference = {"type": "item_reference", "id": "ig_1"}
    assert lowered(USER, reference, reference, KITE, reference) == lowered(USER, reference)


def test_a_picture_with_another_prefix_is_known_by_its_id():
    known = Known({"img-7": {**STORED_KITE, "id": "img-7", "revised_prompt": "a cat"}})
    assert lowered({"type": "item_reference", "id": "img-7"}, known=known)[0] == call("a cat", "call_img-7")


def test_references_to_other_items_travel_on():
    others = [{"type": "item_reference", "id": "rs_1"}, {"id": "msg_1"}, {"type": "item_reference", "id": 5}]
    assert lowered(*others) == others


def test_references_to_known_items_give_way_to_what_the_server_takes():
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Here.", "annotations": [], "logprobs": []}],
    }
    weather = {**call("", "c1"), "name": "weather", "id": "fc_1", "status": "completed", "namespace": None}
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "xyz", "status": None}
    known = Known({item["id"]: item for item in (message, weather, thought)})
    ids = [{"type": "item_reference", "id": "rs_1"}, {"id": "msg_1"}, {"type": None, "id": "fc_1"}]
    assert lowered(USER, *ids, ids[1], known=known) == [
        USER,
        {"id": "rs_1", "type": "reasoning", "encrypted_content": "xyz", "summary": []},
        {**message, "content": [{"type": "output_text", "text": "Here.", "annotations": []}]},
        {**call("", "c1"), "name": "weather"},
    ]


def test_a_reference_to_a_known_item_that_says_nothing_is_dropped():
    silent = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    own = {"id": "msg_ig_1", "type": "message", "role": "assistant", "content": [{"type": "output_text"}]}
    spoken = {**own, "id": "msg_ig_2", "content": [{"type": "output_text", "text": "Hm."}]}
    known = Known({item["id"]: item for item in (silent, own, spoken)})
    references = [{"id": "msg_1"}, {"id": "msg_ig_1"}, {"id": "msg_ig_2"}, {"id": "msg_ig_3"}]
    assert [item["id"] for item in lowered(*references, known=known)] == ["msg_ig_2"]


def test_a_picture_and_a_clients_call_that_are_only_referenced_are_one_complete_turn():
    weather = {**call("", "c1"), "name": "weather", "id": "fc_1"}
    known = Known({"ig_1": STORED_KITE, "fc_1": weather}, frozenset({"ig_1"}))
    output = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    reference = {"type": "item_reference", "id": "ig_1"}
    items = [USER, reference, reference, {"type": "item_reference", "id": "fc_1"}, output]
    assert shape(lowered(*items, known=known)) == [
        ("user", None),
        ("function_call", "call_ig_1"),
        ("function_call", "c1"),
        ("function_call_output", "call_ig_1"),
        ("function_call_output", "c1"),
    ]


def test_a_call_id_that_a_known_item_has_is_not_used_again():
    known = Known({"ig_1": STORED_KITE, "fc_1": {**call("", "call_ig_1"), "id": "fc_1"}})
    references = [{"id": "ig_1"}, USER, {"id": "fc_1"}]
    assert [item.get("call_id") for item in lowered(*references, known=known)] == [
        "call_ig_1_",
        "call_ig_1_",
        None,
        "call_ig_1",
    ]


def test_tools_that_stand_in_the_input_stay_in_their_place():
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]}
    result = lowered(tools, USER, KITE, tools)
    assert shape(result) == [
        ("additional_tools", None),
        ("user", None),
        ("function_call", "call_ig_1"),
        ("function_call_output", "call_ig_1"),
        ("additional_tools", None),
    ]
    assert result[0] is result[-1] is tools


def test_a_past_edit_names_a_picture_as_the_next_one_should():
    edit = {**KITE, "revised_prompt": "make it blue", "action": "edit"}
    selected = {"prompt": "make it blue", "num_last_images_to_include": 1}
    assert json.loads(lowered(USER, edit)[1]["arguments"]) == selected
    by_id = Known({"ig_1": {**STORED_KITE, "action": "edit"}}, frozenset({"ig_1"}))
    assert json.loads(lowered({"id": "ig_1"}, known=by_id)[0]["arguments"]) == {
        **selected,
        "prompt": "a red kite",
    }
    failed = {**edit, "status": "failed", "result": ""}
    assert json.loads(lowered(USER, failed, known=Known())[1]["arguments"]) == {"prompt": "make it blue"}


def test_a_picture_whose_bytes_are_gone_was_made_all_the_same():
    gone = Known({"ig_1": STORED_KITE})
    assert lowered({"id": "ig_1"}, known=gone) == lowered({"id": "ig_1"})


def test_a_picture_that_is_there_is_complete_whatever_its_server_said():
    unsure = {**STORED_KITE, "status": "generating"}
    known = Known({"ig_1": unsure}, frozenset({"ig_1"}))
    assert lowered({"id": "ig_1"}, known=known) == lowered({"id": "ig_1"})
    assert told(lowered({"id": "ig_1"}, known=Known({"ig_1": unsure})))[0]["status"] == "unavailable"


def test_a_stored_failure_is_told_by_the_id_alone():
    error = {"code": "moderation_blocked", "message": "refused", "param": None, "type": "x"}
    known = Known({"ig_1": {**STORED_KITE, "status": "failed", "error": error}})
    text, note = told(lowered({"type": "image_generation_call", "id": "ig_1"}, known=known))
    assert (text["status"], text["error"]["code"]) == ("failed", "moderation_blocked")
    assert note.startswith("The safety system refused this.")


def test_what_a_client_left_out_of_an_item_the_store_knows():
    bare = {"type": "image_generation_call", "id": "ig_1", "result": PIXEL}
    assert lowered(USER, bare) == lowered(USER, {"id": "ig_1"})


@pytest.mark.parametrize("status", ["in_progress", "generating", "completed", "failed", None, 5])
def test_a_result_says_more_than_the_status(status):
    assert told(lowered(USER, {**KITE, "status": status}, known=Known()))[0]["status"] == "completed"


def test_a_failed_call_tells_why_it_failed():
    failed = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "failed",
        "result": "",
        "error": {"code": "moderation_blocked", "message": "refused", "param": None, "type": "x"},
    }
    text, note = told(lowered(USER, failed))
    assert text == {
        "status": "failed",
        "image_id": "ig_1",
        "error": {"code": "moderation_blocked", "message": "refused"},
    }
    assert note.startswith("The safety system refused this.")


@pytest.mark.parametrize(
    "fields",
    [{"status": "completed"}, {"status": "generating"}, {"revised_prompt": "a kite"}, {"prompt": "a kite"}],
)
def test_a_picture_that_cannot_be_found_is_no_longer_available(fields):
    lost = {"type": "image_generation_call", "id": "ig_9", "result": None, **fields}
    result = lowered(USER, lost)
    assert shape(result) == [
        ("user", None),
        ("function_call", "call_ig_9"),
        ("function_call_output", "call_ig_9"),
    ]
    assert told(result) == (
        {"status": "unavailable", "image_id": "ig_9"},
        "This picture is no longer available.",
    )


@pytest.mark.parametrize(
    "item",
    [
        {"type": "image_generation_call", "id": "ig_9"},
        {"type": "image_generation_call", "id": "ig_9", "result": None, "status": None},
        {"type": "item_reference", "id": "ig_9"},
        {"id": "ig_9"},
    ],
)
def test_an_unknown_id_is_refused_by_name(item):
    with pytest.raises(RequestError) as raised:
        lowered(USER, item)
    error = raised.value
    assert (error.message, error.param, error.status) == (NOT_FOUND.format("ig_9"), "input[1].id", 400)


def test_a_picture_without_an_id_needs_a_result():
    assert lowered(USER, {"type": "image_generation_call", "result": PIXEL})[1] == call(
        "Draw a kite.", "call_1"
    )
    with pytest.raises(RequestError) as raised:
        lowered(USER, {"type": "image_generation_call"})
    assert (raised.value.message, raised.value.param) == (
        "Missing required parameter: 'input[1].id'.",
        "input[1].id",
    )


def test_pictures_without_ids_are_not_taken_for_one():
    nameless = {"type": "image_generation_call", "result": PIXEL}
    assert [item["call_id"] for item in lowered(nameless, nameless)] == [
        "call_0",
        "call_0",
        "call_1",
        "call_1",
    ]


def test_call_ids_never_meet_the_clients_own():
    mine = {"type": "function_call", "call_id": "call_ig_1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_ig_1", "output": "x"}
    assert shape(lowered(mine, output, KITE))[2:] == [
        ("function_call", "call_ig_1_"),
        ("function_call_output", "call_ig_1_"),
    ]


def test_the_function_has_the_name_of_this_request():
    assert lowered(KITE, name="image_generation_2")[0]["name"] == "image_generation_2"


def test_pictures_side_by_side_are_called_one_after_the_other():
    assert shape(lowered(USER, KITE, {**KITE, "id": "ig_2"})) == [
        ("user", None),
        ("function_call", "call_ig_1"),
        ("function_call_output", "call_ig_1"),
        ("function_call", "call_ig_2"),
        ("function_call_output", "call_ig_2"),
    ]


WEATHER = {
    "id": "fc_W",
    "type": "function_call",
    "call_id": "call_W",
    "name": "get_weather",
    "arguments": "{}",
}
RAIN = {"type": "function_call_output", "call_id": "call_W", "output": "rain"}


@pytest.mark.parametrize("calls", [[KITE, WEATHER], [WEATHER, KITE]])
def test_a_turn_with_the_clients_own_call_is_complete_again(calls):
    result = lowered(USER, *calls, RAIN)
    order = [("function_call", "call_ig_1" if item is KITE else "call_W") for item in calls]
    assert shape(result) == [
        ("user", None),
        *order,
        ("function_call_output", "call_ig_1"),
        ("function_call_output", "call_W"),
    ]
    assert result[-1] is RAIN
    assert WEATHER in result


def test_a_message_between_the_calls_parts_the_turns():
    said = {"type": "message", "role": "assistant", "content": "And now the weather."}
    assert shape(lowered(KITE, said, WEATHER, RAIN)) == [
        ("function_call", "call_ig_1"),
        ("function_call_output", "call_ig_1"),
        ("message", None),
        ("function_call", "call_W"),
        ("function_call_output", "call_W"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "message", "id": "msg_ig_1", "role": "assistant", "content": []},
        {"id": "msg_ig_1", "role": "assistant", "content": ""},
        {
            "type": "message",
            "id": "msg_ig_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ""}],
        },
        {"type": "item_reference", "id": "msg_ig_1"},
        {"id": "msg_ig_1"},
    ],
)
def test_our_own_empty_message_is_left_out(message):
    assert lowered(USER, message) == [USER]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
        {"type": "message", "id": "msg_ig_1", "role": "assistant", "content": "Here it is."},
        {"type": "other", "id": "msg_ig_1"},
    ],
)
def test_other_messages_stay(message):
    assert lowered(USER, message) == [USER, message]


def test_what_is_no_item_travels_on():
    odd = [None, 5, "text", ["list"], {}, {"type": ["function_call"]}, {"type": {}, "id": {}}]
    assert lowered(*odd) == odd


def test_the_same_history_gives_the_same_bytes_and_stays_as_it_was():
    items = [USER, KITE, {"type": "item_reference", "id": "ig_1"}, WEATHER, RAIN, {**KITE, "id": "ig_2"}]
    before = copy.deepcopy(items)
    assert json.dumps(lowered(*items)) == json.dumps(lowered(*copy.deepcopy(items)))
    assert items == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ids = st.sampled_from(["ig_1", "ig_2", "msg_ig_1", "fc_1", None, 5])
kinds = st.sampled_from(
    [
        "image_generation_call",
        "item_reference",
        "message",
        "function_call",
        "reasoning",
        "function_call_output",
        None,
    ]
)
contents = json_values | st.lists(
    st.fixed_dictionaries({}, optional={"type": kinds, "text": json_values}), max_size=2
)
histories = st.lists(
    json_values
    | st.fixed_dictionaries(
        {},
        optional={
            "id": ids,
            "type": kinds | json_values,
            "status": st.sampled_from(["completed", "failed", "generating", None]),
            "result": st.sampled_from(["", PIXEL, None]) | json_values,
            "revised_prompt": json_values,
            "role": st.sampled_from(["user", "assistant"]) | json_values,
            "content": contents,
            "summary": contents,
            "call_id": json_values,
            "arguments": json_values,
            "error": json_values,
        },
    ),
    max_size=6,
)


BASE64 = PIXEL * 3
known_items = st.fixed_dictionaries(
    {"type": kinds.filter(lambda kind: kind is not None)},
    optional={
        "status": st.sampled_from(["completed", "failed", 5]),
        "content": contents,
        "error": json_values,
    },
)
pasts = st.builds(Known, st.dictionaries(ids, known_items, max_size=3), st.frozensets(ids, max_size=3))


@given(
    st.lists(
        st.builds(lambda given: {"type": "item_reference", "id": given}, ids)
        | st.builds(
            lambda given, **item: {"type": "image_generation_call", "id": given, **item},
            st.sampled_from(["ig_1", "ig_2", "ig_3"]),
            result=st.sampled_from([BASE64, "data:image/png;base64," + BASE64, None, ""]),
            status=st.sampled_from(["completed", "failed", "generating"]),
            action=st.sampled_from(["edit", "generate"]),
        )
        | st.just(USER),
        max_size=6,
    ),
    st.builds(
        Known,
        st.fixed_dictionaries({"ig_1": known_items, "ig_2": known_items, "fc_1": known_items}),
        st.frozensets(ids, max_size=3),
    ),
)
def test_every_past_picture_is_a_call_with_its_output_and_never_base64(items, known):
    result = lower_history(items, name="image_generation", known=known)
    ours = [item for item in result if str(item.get("call_id", "")).startswith("call_ig")]
    calls = [item for item in ours if item["type"] == "function_call"]
    assert ours == [one for item in calls for one in ours if one["call_id"] == item["call_id"]]
    assert len(ours) == 2 * len({item["call_id"] for item in calls})
    assert BASE64[:40] not in json.dumps(ours)
    assert dumps(lower_history(copy.deepcopy(items), name="image_generation", known=known)) == dumps(result)


@given(histories, pasts)
def test_any_history_is_lowered_or_refused_and_never_changed(items, known):
    before = copy.deepcopy(items)
    inlined = [replayed(item) for item in known.items.values()]
    try:
        result = lower_history(items, name="image_generation", known=known)
    except RequestError as error:
        assert error.param.startswith("input[")  # noqa: PT017  either end is asserted
        result = []
    assert items == before
    pairs = [item for item in result if item not in before and item not in inlined]
    calls = [item["call_id"] for item in pairs if item["type"] == "function_call"]
    outputs = [item["call_id"] for item in pairs if item["type"] == "function_call_output"]
    assert calls == outputs
    assert len(set(calls)) == len(calls)


@given(histories)
def test_any_item_can_be_replayed(items):
    for item in items:
        if isinstance(item, dict):
            before = copy.deepcopy(item)
            replayed(item)
            assert item == before
