"""The hosted tool alone: its declaration, its function, its arguments, its items, its words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.errors import RequestError
from imagecall.events.tools.base import ToolError, ToolOutcome, ToolProgress
from imagecall.events.tools.image_generation import (
    Declaration,
    ImageGeneration,
    ToolArgumentError,
    parse_declaration,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGM4oaHxHwAE7AIY0raoogAAAABJRU5ErkJggg=="


def tool(**fields):
    return ImageGeneration(parse_declaration({"type": "image_generation", **fields}, "tools[0]"))


def settled(given, *, strict=False, max_prompt=32_000, **fields):
    return tool(**fields).arguments(given, strict=strict, max_prompt=max_prompt)


def refusal(given, **options):
    with pytest.raises(ToolArgumentError) as raised:
        settled(given, **options)
    assert str(raised.value) == raised.value.error.message
    return raised.value.error


# --- the declaration ----------------------------------------------------------------------------


def test_a_declaration_with_every_field_is_taken_as_it_is():
    fields = {
        "type": "image_generation",
        "action": "edit",
        "background": "transparent",
        "input_fidelity": "high",
        "input_image_mask": {"image_url": "data:image/png;base64,AAAA"},
        "model": "flux-pro",
        "moderation": "low",
        "output_compression": 100,
        "output_format": "avif",
        "partial_images": 3,
        "quality": "ultra",
        "size": "333x777",
    }
    assert parse_declaration(fields, "tools[0]").model_dump(exclude_none=True) == fields


def test_fields_this_version_does_not_know_are_kept():
    declaration = parse_declaration(
        {"type": "image_generation", "frame_count": 9, "svg": {"a": 1}}, "tools[0]"
    )
    assert declaration.unknown() == {"frame_count": 9, "svg": {"a": 1}}


def test_null_means_not_given():
    explicit = parse_declaration({"type": "image_generation", "size": None, "new": None}, "tools[0]")
    assert explicit == parse_declaration({"type": "image_generation"}, "tools[0]")
    assert explicit.unknown() == {}


def test_auto_pins_nothing():
    declaration = parse_declaration(
        {
            "type": "image_generation",
            "size": "auto",
            "quality": "auto",
            "background": "auto",
            "moderation": "low",
        },
        "tools[0]",
    )
    assert declaration.pinned() == {"moderation": "low"}


@pytest.mark.parametrize(
    ("fields", "param", "reason"),
    [
        ({"partial_images": 4}, "tools[2].partial_images", "input should be less than or equal to 3"),
        ({"partial_images": -1}, "tools[2].partial_images", "input should be greater than or equal to 0"),
        ({"partial_images": "2"}, "tools[2].partial_images", "input should be a valid integer"),
        ({"partial_images": True}, "tools[2].partial_images", "input should be a valid integer"),
        (
            {"output_compression": 101},
            "tools[2].output_compression",
            "input should be less than or equal to 100",
        ),
        ({"size": 1024}, "tools[2].size", "input should be a valid string"),
        ({"quality": ["low"]}, "tools[2].quality", "input should be a valid string"),
        ({"action": "paint"}, "tools[2].action", "input should be 'generate', 'edit' or 'auto'"),
        ({"background": "red"}, "tools[2].background", "input should be 'transparent', 'opaque' or 'auto'"),
        ({"input_fidelity": "max"}, "tools[2].input_fidelity", "input should be 'high' or 'low'"),
        ({"moderation": "off"}, "tools[2].moderation", "input should be 'auto' or 'low'"),
        (
            {"input_image_mask": {"image_url": 1}},
            "tools[2].input_image_mask.image_url",
            "input should be a valid string",
        ),
        (
            {"input_image_mask": {"url": "x"}},
            "tools[2].input_image_mask.url",
            "extra inputs are not permitted",
        ),
        (
            {"background": "transparent", "output_format": "jpeg"},
            "tools[2].output_format",
            "a transparent background needs 'png' or 'webp'",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_whole_path(fields, param, reason):
    with pytest.raises(RequestError) as raised:
        parse_declaration({"type": "image_generation", **fields}, "tools[2]")
    error = raised.value
    assert (error.message, error.param, error.status) == (
        f"Invalid value for '{param}': {reason}.",
        param,
        400,
    )


# --- the function -------------------------------------------------------------------------------


def test_the_function_offers_the_options_that_the_declaration_leaves_open():
    function = tool(quality="low", size="auto").function("image_generation_2")
    parameters = function["parameters"]
    assert {key: value for key, value in function.items() if key not in ("description", "parameters")} == {
        "type": "function",
        "name": "image_generation_2",
        "strict": False,
    }
    assert list(parameters["properties"]) == ["prompt", "size", "background", "output_format"]
    assert parameters["required"] == ["prompt"]
    assert parameters["additionalProperties"] is False


def test_the_function_with_all_pinned_asks_for_a_prompt_only():
    function = tool(size="1x1", quality="low", background="opaque", output_format="png").function("f")
    assert list(function["parameters"]["properties"]) == ["prompt"]


def test_the_model_is_told_when_to_call_and_what_not_to_print():
    description = tool().function("f")["description"]
    for told in ("Call this whenever", "shows the picture to the user", "never print links", "base64"):
        assert told in description


def test_the_model_is_not_offered_what_excludes_a_pinned_option():
    jpeg = tool(output_format="jpeg").function("f")["parameters"]["properties"]
    assert jpeg["background"]["enum"] == ["opaque", "auto"]
    clear = tool(background="transparent").function("f")["parameters"]["properties"]
    assert clear["output_format"]["enum"] == ["png", "webp"]


def test_two_functions_share_nothing_that_could_be_changed():
    hosted = tool()
    first = hosted.function("f")
    first["parameters"]["properties"].clear()
    assert hosted.function("f") == tool().function("f") != first


# --- the arguments ------------------------------------------------------------------------------


def test_the_models_prompt_alone_makes_a_call():
    assert settled({"prompt": " a red cat "}) == {"prompt": " a red cat ", "partial_images": 0, "extra": {}}


def test_the_declaration_wins_key_by_key():
    given = {"prompt": "a cat", "size": "4096x4096", "quality": "high", "background": "opaque"}
    assert settled(
        given, size="512x512", partial_images=2, moderation="low", model="m", output_compression=0, n=1
    ) == {
        "prompt": "a cat",
        "quality": "high",
        "background": "opaque",
        "size": "512x512",
        "output_compression": 0,
        "moderation": "low",
        "model": "m",
        "partial_images": 2,
        "extra": {"n": 1},
    }


def test_nulls_autos_and_unknown_arguments_are_dropped():
    given = {"prompt": "a cat", "size": None, "quality": "auto", "model": "gpt", "n": 5, "partial_images": 3}
    assert settled(given) == {"prompt": "a cat", "partial_images": 0, "extra": {}}


def test_a_wrong_value_for_a_pinned_option_does_not_matter():
    assert settled({"prompt": "a cat", "size": 5}, size="1x1")["size"] == "1x1"


def test_strict_arguments_refuse_unknown_keys_but_not_pinned_ones():
    error = refusal({"prompt": "a cat", "n": 5}, strict=True)
    assert error == ToolError(
        "Unknown argument 'n'; there are: prompt, size, quality, background, output_format.",
        code="invalid_arguments",
        type="image_generation_user_error",
        param="n",
    )
    assert settled({"prompt": "a cat", "size": "2x2"}, strict=True, size="1x1")["size"] == "1x1"


@pytest.mark.parametrize(
    "given", [{}, {"prompt": None}, {"prompt": ""}, {"prompt": " \n"}, {"prompt": ["a"]}]
)
def test_a_call_without_a_prompt_names_the_argument(given):
    assert refusal(given) == ToolError(
        "The argument 'prompt' must be a string that describes the picture.",
        code="invalid_arguments",
        type="image_generation_user_error",
        param="prompt",
    )


def test_a_prompt_may_be_as_long_as_the_limit_and_no_longer():
    assert settled({"prompt": "abc"}, max_prompt=3)["prompt"] == "abc"
    error = refusal({"prompt": "abcd"}, max_prompt=3)
    assert error.message == "The argument 'prompt' has 4 characters, more than the 3 that max_prompt allows."
    assert error.param == "prompt"


@pytest.mark.parametrize("value", [1024, "", " ", ["1024x1024"], {}])
def test_an_option_of_the_wrong_type_is_an_error_for_the_model(value):
    error = refusal({"prompt": "a cat", "size": value})
    assert (error.message, error.param) == ("The argument 'size' must be a string.", "size")


def test_an_unknown_background_is_an_error_for_the_model():
    error = refusal({"prompt": "a cat", "background": "white"})
    assert error.message == "The argument 'background' must be one of transparent, opaque, auto."


def test_a_transparent_jpeg_is_blamed_on_the_argument_that_the_model_can_change():
    both = {"prompt": "a cat", "background": "transparent", "output_format": "jpeg"}
    assert refusal(both).param == "output_format"
    assert refusal(both, output_format="JPG").param == "background"
    assert refusal(both, background="transparent").param == "output_format"


# --- the items ----------------------------------------------------------------------------------


def test_the_tools_names_are_those_of_the_wire():
    hosted = tool()
    assert (hosted.type, hosted.item_type, hosted.id_prefix, hosted.execution) == (
        "image_generation",
        "image_generation_call",
        "ig",
        "server",
    )
    assert hosted.phases == {
        "started": "in_progress",
        "working": "generating",
        "partial": "partial_image",
        "finished": "completed",
    }


def test_the_announced_item_has_exactly_three_keys():
    assert tool().announced("ig_1") == {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "in_progress",
    }


def test_a_finished_item_shows_what_the_picture_really_is():
    outcome = ToolOutcome(
        data=b"AAAA",
        facts={"size": "64x64", "output_format": "jpeg", "background": "opaque", "quality": None, "dpi": 300},
    )
    item = tool(size="1024x1024").finished("ig_1", {"prompt": "a cat", "quality": "high"}, outcome)
    assert item == {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "completed",
        "revised_prompt": "a cat",
        "action": "generate",
        "background": "opaque",
        "output_format": "jpeg",
        "quality": "high",
        "size": "64x64",
    }


def test_what_nobody_knows_of_a_finished_item_is_auto():
    item = tool().finished("ig_1", {"prompt": "a cat"}, ToolOutcome(data=b"AAAA"))
    assert [item[key] for key in ("background", "output_format", "quality", "size")] == [
        "auto",
        "png",
        "auto",
        "auto",
    ]


def test_the_backends_rewritten_prompt_is_the_revised_one():
    outcome = ToolOutcome(data=b"AAAA", facts={"revised_prompt": "a fluffy cat"})
    assert tool().finished("ig_1", {"prompt": "a cat"}, outcome)["revised_prompt"] == "a fluffy cat"


def test_a_call_that_was_given_pictures_is_an_edit():
    item = tool().finished("ig_1", {"prompt": "blue", "images": ["ig_0"]}, ToolOutcome(data=b"AAAA"))
    assert item["action"] == "edit"


def test_a_failed_item_has_an_empty_result_and_its_error():
    details = {"moderation_details": {"categories": ["violence"], "moderation_stage": "input"}, "trace": "x"}
    error = ToolError(
        "refused", code="moderation_blocked", type="image_generation_user_error", details=details
    )
    item = tool(size="512x512").finished("ig_1", {"prompt": "a fight"}, ToolOutcome(error=error))
    assert item == {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "failed",
        "result": "",
        "error": {
            "type": "image_generation_user_error",
            "code": "moderation_blocked",
            "message": "refused",
            "param": None,
            "moderation_details": {"categories": ["violence"], "moderation_stage": "input"},
        },
        "revised_prompt": "a fight",
        "action": "generate",
        "background": "auto",
        "output_format": "png",
        "quality": "auto",
        "size": "512x512",
    }


def test_arguments_that_were_refused_leave_no_trace_in_the_failed_item():
    error = ToolError("no prompt", code="invalid_arguments", param="prompt")
    item = tool().finished("ig_1", {"prompt": 5, "size": 1024}, ToolOutcome(error=error))
    assert "revised_prompt" not in item
    assert item["size"] == "auto"
    assert item["error"] == {
        "type": "image_generation_error",
        "code": "invalid_arguments",
        "message": "no prompt",
        "param": "prompt",
    }


def test_a_partial_image_tells_its_size_and_format():
    progress = ToolProgress(b"AAAA", {"size": "64x64", "output_format": "webp"})
    assert tool(quality="low").partial(progress) == {
        "background": "auto",
        "output_format": "webp",
        "quality": "low",
        "size": "64x64",
    }


# --- the words for the model --------------------------------------------------------------------


def feedback(**fields):
    return json.loads(tool().feedback({"type": "image_generation_call", **fields}))


def test_the_model_hears_that_the_user_sees_the_picture_already():
    told = feedback(
        id="ig_1", status="completed", size="64x64", output_format="png", result=PIXEL, quality="low"
    )
    note = told.pop("note")
    assert told == {"status": "completed", "image_id": "ig_1", "size": "64x64", "output_format": "png"}
    assert "already sees this picture" in note
    assert "call again only if asked for another picture" in note


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("moderation_blocked", "Do not try the same prompt again"),
        ("invalid_arguments", "Correct the arguments and call again"),
        ("timeout", "Do not repeat the same call"),
    ],
)
def test_the_model_hears_why_a_call_failed_and_what_to_do(code, advice):
    told = feedback(id="ig_1", status="failed", error={"code": code, "message": "No.", "param": None})
    assert told["error"] == {"code": code, "message": "No."}
    assert advice in told["note"]


def test_a_failure_without_a_reason_is_told_without_one():
    assert set(feedback(id="ig_1", status="failed")) == {"status", "image_id", "note"}


def test_a_picture_of_unknown_fate_is_no_longer_available():
    assert feedback(id="ig_1", status="generating") == {
        "status": "unavailable",
        "image_id": "ig_1",
        "note": "This picture is no longer available.",
    }


def test_base64_in_an_error_never_reaches_the_model():
    text = tool().feedback({"status": "failed", "error": {"message": f"cannot decode {PIXEL * 20} at all"}})
    assert json.loads(text)["error"] == {"message": "cannot decode … at all"}


def test_a_long_error_is_cut():
    text = tool().feedback({"status": "failed", "error": {"message": "much too long " * 1000}})
    assert json.loads(text)["error"]["message"] == ("much too long " * 1000)[:200]


words = st.one_of(
    st.none(), st.integers(), st.text(), st.text(min_size=100, max_size=300, alphabet='"\\\x00é猫😀')
)


@given(
    st.dictionaries(st.sampled_from(["id", "status", "size", "output_format", "result"]), words),
    st.one_of(words, st.dictionaries(st.sampled_from(["code", "message", "param", "type"]), words)),
    st.sampled_from(["completed", "failed", None, "generating"]),
)
def test_the_words_for_the_model_are_always_short_json(item, error, status):
    text = tool().feedback({**item, "error": error, "status": status})
    assert isinstance(json.loads(text), dict)
    assert len(text.encode()) < 2048


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*Declaration.model_fields, "svg", "model_config", "self"]), json_values)
)
def test_any_declaration_is_taken_or_refused_with_its_path(fields):
    fields.pop("type", None)
    try:
        declaration = parse_declaration(fields, "tools[7]")
    except RequestError as error:
        assert error.param.startswith("tools[7].")  # noqa: PT017  both ends are asserted
    else:
        assert None not in declaration.pinned().values()


@given(
    st.dictionaries(
        st.sampled_from(["prompt", "size", "quality", "background", "output_format", "n"]), json_values
    )
)
def test_any_arguments_are_settled_or_refused(given_arguments):
    try:
        merged = settled(given_arguments)
    except ToolArgumentError:
        return
    assert merged["prompt"] == given_arguments["prompt"]
    assert None not in merged.values()
    assert "auto" not in [value for key, value in merged.items() if key != "prompt"]


def test_text_that_is_no_unicode_is_a_value_like_any_other_but_no_name():
    kept = parse_declaration({"type": "image_generation", "size": "\ud800", "new": "\ud800"}, "tools[0]")
    assert (kept.size, kept.unknown()) == ("\ud800", {"new": "\ud800"})
    with pytest.raises(RequestError) as raised:
        parse_declaration({"type": "image_generation", "\ud800": 1}, "tools[0]")
    assert raised.value.param == "tools[0]"
