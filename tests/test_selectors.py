"""Which earlier pictures a call starts from: what the model is offered, what it may say, what it is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.errors import RequestError
from imagecall.events.pictures import Picture
from imagecall.events.tools.base import ToolError, ToolOutcome
from imagecall.events.tools.image_generation import ImageGeneration, ToolArgumentError, parse_declaration
from kite import HOSTED

SENT = Picture(data="data:image/png;base64,AAAA")
ONE, TWO, THREE = Picture("ig_1"), Picture("ig_2", data="BBBB"), Picture("ig_3")
REACH = (SENT, ONE, TWO, THREE)


def tool(reach: Sequence[Picture] = REACH, *, workspace: bool = False, **declared: Any) -> ImageGeneration:
    return ImageGeneration(parse_declaration({**HOSTED, **declared}, "tools[0]"), tuple(reach), workspace)


def arguments(
    selector: dict[str, Any],
    reach: Sequence[Picture] = REACH,
    *,
    strict: bool = False,
    made: Sequence[Picture] = (),
    **options: Any,
) -> dict[str, Any]:
    given = {"prompt": "make it blue", **selector}
    return tool(reach, **options).arguments(given, strict=strict, max_prompt=100, made=made)


def images(selector: dict[str, Any], reach: Sequence[Picture] = REACH, **options: Any) -> object:
    return arguments(selector, reach, **options).get("images")


def refusal(selector: dict[str, Any], reach: Sequence[Picture] = REACH, **options: Any) -> ToolError:
    with pytest.raises(ToolArgumentError) as raised:
        arguments(selector, reach, **options)
    return raised.value.error


def offered(**options: Any) -> tuple[list[str], str]:
    """Return the selectors among a function's parameters, and what its description adds for them."""
    function = tool(**options).function("image_generation")
    plain = tool(()).function("image_generation")["description"]
    assert function["description"].startswith(plain)
    names = [
        name for name in function["parameters"]["properties"] if name.startswith(("num_", "referenced_"))
    ]
    return names, function["description"].removeprefix(plain)


# -- what is offered -------------------------------------------------------------------------------


def test_selectors_are_offered_where_there_is_a_picture_to_change() -> None:
    names, advice = offered()
    assert names == ["num_last_images_to_include", "referenced_image_ids"]
    assert advice == (
        " To change or combine pictures that are there already, say which ones with "
        "num_last_images_to_include or referenced_image_ids, never two of these, and in the prompt what to "
        "change; a call without draws a new picture from the prompt alone."
    )


@pytest.mark.parametrize("options", [{"reach": ()}, {"action": "generate"}])
def test_no_selector_is_offered_where_nothing_can_be_changed(options: dict[str, Any]) -> None:
    assert offered(**options) == ([], "")


def test_a_workspace_has_pictures_of_its_own() -> None:
    assert offered(reach=(), workspace=True)[0] == ["referenced_image_paths"]
    assert len(offered(workspace=True)[0]) == 3
    assert offered(workspace=True, action="generate") == ([], "")


def test_a_client_that_wants_edits_only_has_the_newest_picture_changed() -> None:
    assert offered(action="edit")[1].endswith("; a call without changes the newest picture.")


def test_the_offered_parameters_are_plain_json_schema() -> None:
    properties = tool(workspace=True).function("paint")["parameters"]["properties"]
    texts = {"type": "array", "items": {"type": "string"}}
    del properties["num_last_images_to_include"]["description"]
    assert properties["num_last_images_to_include"] == {"type": "integer"}
    for name in ("referenced_image_ids", "referenced_image_paths"):
        assert properties[name].pop("description")
        assert properties[name] == texts
    assert "AAAA" not in json.dumps(tool().function("paint"))


# -- what they mean --------------------------------------------------------------------------------


def test_a_call_without_a_selector_draws_a_new_picture() -> None:
    assert "images" not in arguments({})


@pytest.mark.parametrize("nothing", [None, [], ""])
def test_an_empty_selector_selects_nothing(nothing: object) -> None:
    selector = {"num_last_images_to_include": nothing, "referenced_image_ids": nothing}
    assert images(selector) is None
    assert images({**selector, "num_last_images_to_include": 1}) == (THREE,)


@pytest.mark.parametrize(
    ("count", "chosen"), [(1, (THREE,)), (2, (TWO, THREE)), (4, REACH), (3.0, REACH[1:])]
)
def test_the_newest_pictures_come_in_the_order_in_which_they_were_made(
    count: float, chosen: tuple[Picture, ...]
) -> None:
    assert images({"num_last_images_to_include": count}) == chosen


@pytest.mark.parametrize(
    ("ids", "chosen"),
    [
        (["ig_3", "ig_1"], (ONE, THREE)),
        (["ig_2", "ig_2"], (TWO,)),
        ("ig_2", (TWO,)),
        (["ig_1", "ig_2", "ig_3", "ig_1", "ig_2", "ig_3"], (ONE, TWO, THREE)),
    ],
)
def test_pictures_named_by_id_come_in_the_order_in_which_they_were_made(
    ids: object, chosen: tuple[Picture, ...]
) -> None:
    assert images({"referenced_image_ids": ids}) == chosen


def test_files_of_the_workspace_come_in_the_order_in_which_they_are_named() -> None:
    selector = {"referenced_image_paths": ["b.png", "a/c.png", "b.png"]}
    assert images(selector, (), workspace=True) == (Picture(path="b.png"), Picture(path="a/c.png"))


def test_pictures_of_the_responses_earlier_turns_are_the_newest() -> None:
    made = (Picture("ig_4", data=b"CCCC"),)
    assert images({"num_last_images_to_include": 2}, made=made) == (THREE, *made)
    assert images({"referenced_image_ids": ["ig_4", "ig_1"]}, (ONE,), made=made) == (ONE, *made)
    assert images({}, (), made=made, action="edit") == made


def test_a_client_that_wants_edits_only_gets_the_last_picture_changed() -> None:
    assert images({}, action="edit") == (THREE,)
    assert images({"referenced_image_ids": ["ig_1"]}, action="edit") == (ONE,)


@pytest.mark.parametrize(
    ("options", "ignored"),
    [
        ({"action": "generate"}, {"num_last_images_to_include": 9, "referenced_image_ids": ["ig_1"]}),
        ({"workspace": False}, {"referenced_image_paths": ["a.png"]}),
    ],
)
def test_a_selector_that_cannot_count_is_an_unknown_argument(
    options: dict[str, Any], ignored: dict[str, Any]
) -> None:
    assert images(ignored, **options) is None
    error = refusal(ignored, strict=True, **options)
    assert error.message.startswith(f"Unknown argument '{next(iter(ignored))}'; there are: prompt, ")


def test_strict_arguments_know_the_selectors() -> None:
    assert images({"num_last_images_to_include": 1}, strict=True) == (THREE,)
    assert images({"referenced_image_paths": ["a.png"]}, (), strict=True, workspace=True) is not None
    assert refusal({"n": 1}, strict=True).message.endswith(
        "output_format, num_last_images_to_include, referenced_image_ids."
    )
    assert refusal({"n": 1}, (), strict=True).message.endswith("background, output_format.")


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "reach", "message", "param"),
    [
        (
            {"num_last_images_to_include": 1, "referenced_image_ids": ["ig_1"]},
            REACH,
            "Give only one of num_last_images_to_include and referenced_image_ids.",
            "referenced_image_ids",
        ),
        *(
            (
                {"num_last_images_to_include": count},
                REACH,
                (
                    "num_last_images_to_include must be a whole number from 1 to 5; leave it out to draw a "
                    "new picture."
                ),
                "num_last_images_to_include",
            )
            for count in (0, -1, 6, 1.5, True, "2", [1])
        ),
        (
            {"num_last_images_to_include": 1},
            (),
            "There is no picture to change; leave out num_last_images_to_include to draw a new one.",
            "num_last_images_to_include",
        ),
        (
            {"num_last_images_to_include": 2},
            (ONE,),
            "There is only 1 picture to change; num_last_images_to_include can be 1 at most.",
            "num_last_images_to_include",
        ),
        (
            {"num_last_images_to_include": 5},
            REACH,
            "There are only 4 pictures to change; num_last_images_to_include can be 4 at most.",
            "num_last_images_to_include",
        ),
        *(
            (
                {"referenced_image_ids": ids},
                REACH,
                "referenced_image_ids must be a list of strings.",
                "referenced_image_ids",
            )
            for ids in (7, {"id": "ig_1"}, [7], ["ig_1", " "], [["ig_1"]])
        ),
        (
            {"referenced_image_ids": [f"ig_{number}" for number in range(6)]},
            REACH,
            "referenced_image_ids names 6 pictures; 5 are the most.",
            "referenced_image_ids",
        ),
        (
            {"referenced_image_ids": ["ig_1", "ig_9"]},
            REACH,
            "There is no picture with the id 'ig_9' to change; the newest ids are: ig_1, ig_2, ig_3.",
            "referenced_image_ids",
        ),
        (
            {"referenced_image_ids": ["ig_9"]},
            (SENT,),
            (
                "There is no picture with the id 'ig_9' to change; no picture has an id, use "
                "num_last_images_to_include."
            ),
            "referenced_image_ids",
        ),
        (
            {"referenced_image_ids": ["ig_9"]},
            (),
            (
                "There is no picture with the id 'ig_9' to change; leave out referenced_image_ids to draw a "
                "new one."
            ),
            "referenced_image_ids",
        ),
    ],
)
def test_a_wrong_selector_is_told_to_the_model_with_what_would_be_right(
    selector: dict[str, Any], reach: tuple[Picture, ...], message: str, param: str
) -> None:
    assert refusal(selector, reach) == ToolError(
        message, code="invalid_arguments", type="image_generation_user_error", param=param
    )


def test_wrong_paths_are_told_to_the_model() -> None:
    paths = [f"{number}.png" for number in range(6)]
    assert refusal({"referenced_image_paths": paths}, workspace=True).message == (
        "referenced_image_paths names 6 pictures; 5 are the most."
    )
    both = {"referenced_image_paths": ["a.png"], "referenced_image_ids": ["ig_1"]}
    assert refusal(both, workspace=True).message == (
        "Give only one of referenced_image_ids and referenced_image_paths."
    )


def test_an_edit_of_nothing_cannot_be_mended_by_the_model() -> None:
    error = refusal({}, (), action="edit")
    assert error == ToolError(
        "There is no picture to change: the user has sent none, and none was made.",
        code="no_image_to_edit",
        type="image_generation_user_error",
    )
    item = {"id": "ig_1", "status": "failed", "error": {"code": error.code, "message": error.message}}
    assert json.loads(tool().feedback(item))["note"] == (
        "No picture was made. Do not repeat the same call; tell the user what went wrong."
    )


def test_the_model_reads_every_id_that_it_is_told() -> None:
    reach = [Picture(f"ig_{number:048x}") for number in range(9)]
    error = refusal({"referenced_image_ids": ["x" * 100]}, reach)
    shown = {"type": "", "code": error.code, "message": error.message, "param": error.param}
    text = tool().feedback({"id": "ig_1", "status": "failed", "error": shown})
    assert [picture.id in text for picture in reach] == [False] * 4 + [True] * 5
    assert json.loads(text)["error"]["message"] == error.message
    assert json.loads(text)["note"] == "No picture was made. Correct the arguments and call again."


@given(
    st.dictionaries(
        st.sampled_from(["num_last_images_to_include", "referenced_image_ids", "referenced_image_paths"]),
        st.none()
        | st.integers(-2, 7)
        | st.text(max_size=5)
        | st.lists(st.sampled_from(["ig_1", "ig_2", "x"]) | st.integers(), max_size=7),
    ),
    st.booleans(),
)
def test_any_selector_names_at_most_five_pictures_in_order_or_is_refused(
    selector: dict[str, Any], workspace: bool
) -> None:
    try:
        chosen = arguments(selector, workspace=workspace).get("images", ())
    except ToolArgumentError as refused:
        assert refused.error.code == "invalid_arguments"  # noqa: PT017  either end is asserted
        return
    assert len(chosen) <= 5
    assert chosen == tuple(picture for picture in (*REACH, *chosen) if picture in chosen)[: len(chosen)]


# -- the mask --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "mask"),
    [
        ("data:image/png;base64,AAAA", Picture(data="data:image/png;base64,AAAA")),
        ("AAAA", Picture(data="AAAA")),
        ("HTTPS://example.org/mask.png", Picture(url="HTTPS://example.org/mask.png")),
    ],
)
def test_the_mask_goes_with_an_edit(url: str, mask: Picture) -> None:
    declared = {"input_image_mask": {"image_url": url}, "input_fidelity": "high"}
    edit = arguments({"num_last_images_to_include": 1}, **declared)
    assert (edit["images"], edit["mask"], edit["input_fidelity"]) == ((THREE,), mask, "high")
    assert "mask" not in arguments({}, **declared)


@pytest.mark.parametrize("empty", [None, {}, {"image_url": None, "file_id": None}, {"image_url": ""}])
def test_an_empty_mask_is_none(empty: object) -> None:
    assert "mask" not in arguments({"num_last_images_to_include": 1}, input_image_mask=empty)


def test_an_uploaded_mask_is_refused_since_it_cannot_be_read() -> None:
    with pytest.raises(RequestError) as raised:
        parse_declaration({**HOSTED, "input_image_mask": {"file_id": "file_1"}}, "tools[3]")
    assert (raised.value.status, raised.value.param) == (400, "tools[3].input_image_mask.file_id")
    assert raised.value.message == (
        "Invalid value for 'tools[3].input_image_mask.file_id': uploaded files cannot be read here; give the "
        "mask as a data URL in 'image_url'."
    )


# -- the item --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "declared", "action"),
    [
        ({"prompt": "p"}, {}, "generate"),
        ({"prompt": "p", "images": (ONE,)}, {}, "edit"),
        ({"num_last_images_to_include": 9}, {}, "edit"),
        ({"referenced_image_paths": ["a"]}, {}, "generate"),
        ({"num_last_images_to_include": 9}, {"action": "generate"}, "generate"),
    ],
)
def test_an_item_tells_whether_it_was_to_be_an_edit(
    given: dict[str, Any], declared: dict[str, Any], action: str
) -> None:
    assert tool(**declared).finished("ig_9", given, ToolOutcome(data=b"AAAA"))["action"] == action


def test_no_repr_shows_a_picture() -> None:
    assert "AAAA" not in repr(tool())
    assert "BBBB" not in repr(TWO)
