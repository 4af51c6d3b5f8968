"""Whole requests: what the client sends, what the model server gets, turn by turn."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.errors import RequestError
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions, lower_request, references
from imagecall.events.tools.image_generation import ImageGeneration, parse_declaration

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGM4oaHxHwAE7AIY0raoogAAAABJRU5ErkJggg=="
HOSTED = {"type": "image_generation"}
WEATHER = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
SEARCH = {"type": "web_search"}
FILES = {
    "type": "namespace",
    "name": "files",
    "tools": [{"type": "function", "name": "list"}, {"type": "custom", "name": "patch"}],
}
USER = {"role": "user", "content": "Draw a red kite over a harbour."}
CALL = {"type": "function_call", "call_id": "c1", "name": "image_generation", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}


def function(name="image_generation", **declared):
    return ImageGeneration(parse_declaration({**HOSTED, **declared}, "tools[0]")).function(name)


def request(**fields):
    return {"model": "local-model", "input": USER["content"], "tools": [HOSTED], "stream": True, **fields}


def lowered(body, known=None, **options):
    before = copy.deepcopy(body)
    result = lower_request(body, known or Known(), LoweringOptions(**options))
    assert body == before
    return result


def refusal(body):
    with pytest.raises(RequestError) as raised:
        lowered(body)
    assert raised.value.status == 400
    return raised.value.message, raised.value.param


# --- the declaration ----------------------------------------------------------------------------


def test_the_function_stands_where_the_declaration_stood_and_all_else_as_it_was():
    body = {
        "model": "local-model",
        "input": "Draw.",
        "tools": [
            SEARCH,
            {**HOSTED, "size": "512x512", "quality": "low"},
            FILES,
            {"type": "mcp", "server_label": "s"},
        ],
        "stream": True,
        "reasoning": {"effort": "low"},
        "future": [None],
    }
    result = lowered(body)
    tools = [SEARCH, function(size="512x512", quality="low"), FILES, {"type": "mcp", "server_label": "s"}]
    assert result.body == {**body, "tools": tools}
    assert list(result.body) == list(body)
    assert result.name == "image_generation"
    assert result.tool.declaration.size == "512x512"


def test_the_same_request_twice_gives_the_same_bytes():
    body = request(tools=[{**HOSTED, "partial_images": 2}, WEATHER], tool_choice=HOSTED)
    first, second = lowered(body), lowered(copy.deepcopy(body))
    assert json.dumps(first.body) == json.dumps(second.body)
    assert json.dumps(first.next_turn([CALL], [OUTPUT])) == json.dumps(second.next_turn([CALL], [OUTPUT]))


def test_a_request_without_the_tool_is_nothing_to_do():
    assert lowered(request(tools=[WEATHER])) is None
    assert lowered({"model": "m", "input": [USER], "previous_response_id": "resp_1"}) is None
    assert lowered({}) is None


def test_two_equal_declarations_are_one():
    own = {"type": "function", "name": "image_generation"}
    twin = {**HOSTED, "size": "1024x1024"}
    result = lowered(request(tools=[own, twin, SEARCH, {**twin, "quality": None}]))
    assert result.body["tools"] == [own, function("image_generation_2", size="1024x1024"), SEARCH]
    assert result.name == "image_generation_2"
    assert result.declared == {"image_generation"}


def test_two_different_declarations_are_refused_by_position():
    assert refusal(request(tools=[HOSTED, SEARCH, {**HOSTED, "size": "1x1"}])) == (
        "'tools[2]' declares the image_generation tool a second time with other settings; declare it once.",
        "tools[2]",
    )


def test_a_wrong_declaration_is_refused_with_its_path():
    assert refusal(request(tools=[SEARCH, {**HOSTED, "partial_images": 9}]))[1] == "tools[1].partial_images"
    added = {"type": "additional_tools", "role": "developer", "tools": [{**HOSTED, "size": 1}]}
    assert refusal(request(input=[USER, added]))[1] == "input[1].tools[0].size"


def test_our_function_takes_the_first_name_that_is_free():
    tools = [
        {"type": "custom", "name": "image_generation"},
        {
            "type": "namespace",
            "name": "image_generation_2",
            "tools": [{"type": "function", "name": "image_generation_3"}],
        },
        HOSTED,
    ]
    result = lowered(request(tools=tools))
    assert result.name == "image_generation_4"
    assert result.body["tools"] == [*tools[:2], function("image_generation_4")]
    assert result.declared == {"image_generation", "image_generation_3"}


def test_the_clients_functions_are_known_wherever_they_stand():
    added = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [FILES, {"type": "function", "name": "f"}],
    }
    result = lowered(request(tools=[HOSTED, WEATHER, None, {"type": "namespace"}], input=[USER, added]))
    assert result.declared == {"get_weather", "list", "patch", "f"}


def test_tools_may_be_declared_in_the_input_alone():
    added = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [WEATHER, {**HOSTED, "quality": "low"}],
    }
    result = lowered({"model": "m", "input": [added, USER]})
    assert result.body == {
        "model": "m",
        "input": [{**added, "tools": [WEATHER, function(quality="low")]}, USER],
        "stream": False,
    }
    assert result.echo == {"tools": [], "tool_choice": "auto"}


def test_the_latest_of_several_declarations_prevails():
    first = {"type": "additional_tools", "role": "developer", "tools": [{**HOSTED, "size": "1x1"}]}
    last = {"type": "additional_tools", "role": "developer", "tools": [WEATHER, {**HOSTED, "size": "2x2"}]}
    other = {"type": "additional_tools", "role": "developer", "tools": []}
    result = lowered(request(input=[first, USER, last, other]))
    ours = function(size="2x2")
    assert result.tool.declaration.size == "2x2"
    assert result.body["tools"] == [ours]
    assert result.body["input"] == [
        {**first, "tools": [ours]},
        USER,
        {**last, "tools": [WEATHER, ours]},
        other,
    ]


def test_the_background_is_refused_where_the_tool_is():
    assert refusal(request(background=True)) == (
        (
            "The image_generation tool cannot run in the background, since no store is set here; leave out "
            "'background', or set a store."
        ),
        "background",
    )
    assert lowered(request(background=False)).body["background"] is False
    assert lowered(request(background=True, tools=[])) is None


def test_models_of_other_names_are_left_alone():
    unknown = request(input=[{"type": "image_generation_call", "id": "ig_9"}], tool_choice=HOSTED, tools=[])
    assert lowered(unknown, models=("gpt-*", "o?")) is None
    assert lowered(request(), models=("gpt-*", "local*")) is not None
    assert lowered(request(), models=("Local*",)) is None
    assert lowered({"tools": [HOSTED]}) is not None
    assert lowered({"tools": [HOSTED], "model": 5}, models=("local*",)) is None


def test_without_a_backend_the_function_is_the_clients_to_run():
    result = lowered(request(), backend=False)
    assert result.body == lowered(request()).body
    assert (result.name, result.echo["tools"]) == (None, [HOSTED])


# --- tool_choice --------------------------------------------------------------------------------


def test_a_forced_picture_offers_nothing_else_and_is_not_forced_again():
    added = {"type": "additional_tools", "role": "developer", "tools": [SEARCH]}
    body = request(tools=[WEATHER, HOSTED, SEARCH], input=[added, USER], tool_choice=HOSTED)
    result = lowered(body)
    assert result.body == {**body, "tools": [function()], "input": [USER], "tool_choice": "required"}
    assert result.next_turn([CALL], [OUTPUT]) == {
        **body,
        "tools": [WEATHER, function(), SEARCH],
        "input": [added, USER, CALL, OUTPUT],
        "tool_choice": "auto",
    }
    assert result.echo == {"tools": body["tools"], "tool_choice": HOSTED}


def test_a_picture_may_be_forced_by_the_functions_name():
    body = request(tools=[WEATHER, HOSTED], tool_choice=HOSTED)
    result = lowered(body, forced_choice="function")
    assert result.body["tool_choice"] == {"type": "function", "name": "image_generation"}
    assert result.body["tools"] == [WEATHER, function()]
    assert result.next_turn([], [])["tool_choice"] == "auto"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, "You must answer the latest message by calling the function image_generation."),
        (
            {"instructions": None},
            "You must answer the latest message by calling the function image_generation.",
        ),
        (
            {"instructions": "Be brief."},
            "Be brief.\n\nYou must answer the latest message by calling the function image_generation.",
        ),
    ],
)
def test_a_picture_may_be_asked_for_where_no_force_is_allowed(given, sent):
    result = lowered(request(tool_choice=HOSTED, **given), forced_choice="auto")
    assert (result.body["tool_choice"], result.body["instructions"]) == ("auto", sent)
    assert result.echo["instructions"] == given.get("instructions")
    later = result.next_turn([CALL], [OUTPUT])
    assert later["tool_choice"] == "auto"
    assert later.get("instructions") == given.get("instructions")


@pytest.mark.parametrize(
    ("choice", "later"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "auto"),
        (None, None),
        (5, 5),
        ({"type": "function", "name": "get_weather"}, "auto"),
        ({"type": "allowed_tools", "mode": "auto", "tools": 5}, "auto"),
        ({"type": "allowed_tools", "mode": "any", "tools": [HOSTED]}, "auto"),
    ],
)
def test_other_choices_travel_on_and_a_forced_one_is_auto_later(choice, later):
    result = lowered(request(tools=[HOSTED, WEATHER], tool_choice=choice))
    assert result.body["tool_choice"] == choice
    assert result.body["tools"] == [function(), WEATHER]
    assert result.next_turn([], [])["tool_choice"] == later
    assert result.echo["tool_choice"] == ("auto" if choice is None else choice)


def test_a_choice_that_was_not_made_is_not_made_up():
    result = lowered(request())
    assert "tool_choice" not in result.body
    assert "tool_choice" not in result.next_turn([], [])


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_filter_the_tools_for_all_turns(mode):
    mcp = {"type": "mcp", "server_label": "wiki", "server_url": "http://wiki"}
    other_mcp = {**mcp, "server_label": "mail"}
    more = {"type": "additional_tools", "role": "developer", "tools": [WEATHER, SEARCH]}
    gone = {"type": "additional_tools", "role": "developer", "tools": [WEATHER]}
    entries = [
        HOSTED,
        SEARCH,
        {"type": "mcp", "server_label": "wiki", "name": "ask"},
        {"type": "function", "name": "list"},
        5,
    ]
    choice = {"type": "allowed_tools", "mode": mode, "tools": entries}
    body = request(
        tools=[WEATHER, HOSTED, SEARCH, mcp, other_mcp, FILES, "odd", {**FILES, "tools": None}],
        input=[more, gone, USER],
        tool_choice=choice,
    )
    result = lowered(body)
    kept = [function(), SEARCH, mcp, {**FILES, "tools": [{"type": "function", "name": "list"}]}]
    assert result.body == {
        **body,
        "tools": kept,
        "input": [{**more, "tools": [SEARCH]}, USER],
        "tool_choice": mode,
    }
    assert result.next_turn([CALL], [OUTPUT]) == {
        **body,
        "tools": kept,
        "input": [{**more, "tools": [SEARCH]}, USER, CALL, OUTPUT],
        "tool_choice": "auto",
    }
    assert (result.echo["tools"], result.echo["tool_choice"]) == (body["tools"], choice)


def test_allowed_tools_may_leave_the_picture_out():
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
    assert lowered(request(tools=[HOSTED, WEATHER], tool_choice=choice)).body["tools"] == [WEATHER]


def test_an_allowed_member_may_name_its_namespace():
    entries = [
        {"type": "function", "name": "list", "namespace": "mail"},
        {"type": "namespace", "name": "disk"},
    ]
    mail, disk = {**FILES, "name": "mail"}, {**FILES, "name": "disk"}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": entries}
    result = lowered(request(tools=[FILES, mail, disk, HOSTED], tool_choice=choice))
    assert result.body["tools"] == [{**mail, "tools": FILES["tools"][:1]}, disk]


@pytest.mark.parametrize(
    "choice", [HOSTED, {"type": "allowed_tools", "mode": "auto", "tools": [SEARCH, HOSTED]}]
)
def test_a_choice_of_a_tool_that_is_not_declared_is_refused_in_openais_words(choice):
    expected = ("Tool choice 'image_generation' not found in 'tools' parameter.", "tool_choice")
    assert refusal(request(tools=[WEATHER], tool_choice=choice)) == expected
    assert refusal({"input": "hi", "tool_choice": choice}) == expected


# --- the history --------------------------------------------------------------------------------


def test_a_history_is_lowered_without_the_tool_too():
    picture = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PIXEL}
    own = {"type": "function", "name": "image_generation"}
    body = {"input": [USER, picture, {"role": "user", "content": "Thanks."}], "tools": [own]}
    result = lowered(body)
    assert (result.tool, result.name) == (None, None)
    assert result.body["tools"] == [own]
    assert result.body["stream"] is False
    assert [item.get("name") for item in result.body["input"]] == [None, "image_generation_2", None, None]
    assert PIXEL[:50] not in json.dumps(result.body)


def test_known_pictures_are_looked_up_by_id():
    body = request(input=[USER, {"type": "item_reference", "id": "ig_1"}])
    assert references(body) == ("ig_1",)
    result = lowered(
        body,
        Known({"ig_1": {"type": "image_generation_call", "status": "completed", "revised_prompt": "a kite"}}),
    )
    assert json.loads(result.body["input"][1]["arguments"]) == {"prompt": "a kite"}


def test_references_name_each_item_once_in_order():
    items = [
        {"type": "image_generation_call", "id": "ig_2", "result": PIXEL},
        {"type": "item_reference", "id": "rs_1"},
        {"id": "ig_1"},
        {"type": None, "id": "ig_2"},
        {"type": "image_generation_call"},
        {"type": "message", "id": "msg_1", "role": "user", "content": "x"},
        {"id": "msg_2", "role": "user", "content": "x"},
        {"type": "item_reference", "id": 5},
        "odd",
    ]
    assert references({"input": items}) == ("rs_1", "ig_1", "ig_2")
    assert references({"input": "ig_1"}) == references({}) == ()


def test_an_unknown_picture_is_refused_with_its_place_in_the_clients_input():
    added = {"type": "additional_tools", "role": "developer", "tools": [WEATHER]}
    body = request(input=[added, USER, {"id": "ig_9"}], tool_choice=HOSTED)
    assert refusal(body)[1] == "input[2].id"


# --- what the answer needs ----------------------------------------------------------------------


@pytest.mark.parametrize(("given", "stream"), [(True, True), (False, False), (None, False), ("yes", False)])
def test_stream_is_always_said(given, stream):
    result = lowered(request(stream=given))
    assert (result.stream, result.body["stream"], result.next_turn([], [])["stream"]) == (
        stream,
        stream,
        stream,
    )


def test_the_answer_echoes_what_the_client_wrote():
    body = request(
        previous_response_id=None, instructions="Be brief.", tools=[HOSTED, WEATHER], tool_choice="auto"
    )
    assert lowered(body).echo == {
        "tools": [HOSTED, WEATHER],
        "tool_choice": "auto",
        "previous_response_id": None,
        "instructions": "Be brief.",
    }


@pytest.mark.parametrize(("given", "limit"), [(3, 3), (0, 0), (True, None), ("3", None), (None, None)])
def test_the_limit_of_tool_calls_is_a_number_or_none(given, limit):
    assert lowered(request(max_tool_calls=given)).max_tool_calls == limit


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ({"format": {"type": "json_schema", "name": "x"}}, True),
        ({"format": {"type": "json_object"}}, True),
        ({"format": {"type": "text"}}, False),
        ({"format": "json_object"}, False),
        ({"verbosity": "low"}, False),
        (None, False),
    ],
)
def test_a_client_that_wants_json_is_recognised(text, wanted):
    assert lowered(request(text=text)).json_text is wanted


def test_a_made_up_response_has_the_requests_own_values():
    body = request(temperature=0, top_p=None, metadata={"a": "b"}, parallel_tool_calls=False, include=["x"])
    assert lowered(body).defaults == {
        "model": "local-model",
        "temperature": 0,
        "parallel_tool_calls": False,
        "metadata": {"a": "b"},
    }


# --- later turns --------------------------------------------------------------------------------


def test_a_later_turn_is_the_clients_request_with_all_turns_so_far():
    body = request(previous_response_id="resp_1", tools=[HOSTED, WEATHER], future=1)
    result = lowered(body)
    first, again = {"type": "reasoning", "summary": []}, {**CALL, "call_id": "c2"}
    later = result.next_turn([first, CALL, OUTPUT, again], [{**OUTPUT, "call_id": "c2"}])
    assert later == {
        **body,
        "tools": [function(), WEATHER],
        "input": [USER, first, CALL, OUTPUT, again, {**OUTPUT, "call_id": "c2"}],
    }
    assert list(later) == list(body)
    assert result.next_turn([CALL], [OUTPUT])["input"] == [USER, CALL, OUTPUT]


def test_a_request_without_an_input_has_one_later():
    body = {"model": "m", "prompt": {"id": "pmpt_1"}, "tools": [HOSTED]}
    assert lowered(body).next_turn([CALL], [OUTPUT])["input"] == [CALL, OUTPUT]


def test_the_last_turn_may_call_nothing():
    assert lowered(request()).next_turn([], [], last=True)["tool_choice"] == "none"
    assert lowered(request(tool_choice=HOSTED)).next_turn([], [], last=True)["tool_choice"] == "none"


def test_items_that_a_server_refused_are_left_out():
    reasoning = {"type": "reasoning", "summary": []}
    body = request(input=[USER, reasoning])
    later = lowered(body).next_turn([reasoning, CALL], [OUTPUT], without=frozenset({"reasoning"}))
    assert later["input"] == [USER, reasoning, CALL, OUTPUT]


def test_a_conversation_gets_the_new_outputs_only():
    result = lowered(request(conversation="conv_1"))
    assert result.body["input"] == USER["content"]
    assert result.next_turn([CALL], [OUTPUT])["input"] == [OUTPUT]
    assert lowered(request(conversation=None)).next_turn([CALL], [OUTPUT])["input"] == [USER, CALL, OUTPUT]


# --- anything at all ----------------------------------------------------------------------------


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["image_generation", "image_generation_2", "f"]) | json_values
tool_types = st.sampled_from(["image_generation", "function", "custom", "mcp"]) | json_values
plain_tools = st.fixed_dictionaries({"type": tool_types}, optional={"name": names, "size": json_values})
tools = json_values | st.lists(
    json_values
    | plain_tools
    | st.fixed_dictionaries(
        {"type": st.just("namespace")},
        optional={"name": names, "tools": json_values | st.lists(plain_tools, max_size=2)},
    ),
    max_size=4,
)
choices = (
    st.sampled_from(["auto", "required", "none", HOSTED])
    | st.fixed_dictionaries(
        {"type": st.just("allowed_tools")},
        optional={"mode": st.sampled_from(["auto", "required"]) | json_values, "tools": tools},
    )
    | json_values
)
items = st.lists(
    json_values
    | st.fixed_dictionaries({"type": st.just("additional_tools")}, optional={"tools": tools})
    | st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["image_generation_call", "item_reference", "message"]) | json_values,
            "id": st.sampled_from(["ig_1", "msg_ig_1"]) | json_values,
            "status": json_values,
            "result": json_values,
            "role": json_values,
            "content": json_values,
        },
    ),
    max_size=4,
)
bodies = st.dictionaries(st.text(max_size=5), json_values, max_size=3) | st.fixed_dictionaries(
    {},
    optional={
        "model": json_values,
        "input": json_values | items,
        "tools": tools,
        "tool_choice": choices,
        "stream": json_values,
        "background": json_values,
        "conversation": json_values,
        "instructions": json_values,
        "text": json_values,
        "max_tool_calls": json_values,
    },
)


@given(bodies, st.sampled_from(["required", "function", "auto"]))
def test_any_body_is_lowered_or_refused_and_never_changed(body, forced):
    before = copy.deepcopy(body)
    try:
        references(body)
        result = lower_request(body, Known(), LoweringOptions(forced_choice=forced))
        again = lower_request(body, Known(), LoweringOptions(forced_choice=forced))
    except RequestError as error:
        assert error.param  # noqa: PT017  either end is asserted
    else:
        assert result == again
        if result is not None:
            later = result.next_turn([CALL], [OUTPUT], last=True, without=frozenset({"reasoning"}))
            assert later["input"][-1] == OUTPUT
            assert later["tool_choice"] == "none"
            assert [key for key in result.body if key in body] == list(body)
    assert body == before
