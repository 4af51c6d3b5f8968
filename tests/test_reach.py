"""Which pictures of a conversation an edit can start from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.known import Known
from imagecall.events.pictures import Picture
from imagecall.events.reach import pictures_in_reach

A, B, C = ("data:image/png;base64," + letter * 4 for letter in "ABC")
URL = "https://example.org/kite.png"


def reach(*items: Any, known: Known | None = None, fetch: bool = False) -> tuple[Picture, ...]:
    return pictures_in_reach(list(items), known or Known(), fetch=fetch)


def shown(url: object, **part: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, **part}


def says(*parts: Any, **item: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts), **item}


def made(item_id: str, result: object = None, **item: Any) -> dict[str, Any]:
    return {"type": "image_generation_call", "id": item_id, "result": result, **item}


def test_urls_of_earlier_turns_count_only_where_they_may_be_fetched() -> None:
    known = Known(reach=(Picture(url=URL), Picture("ig_0")))
    assert reach(known=known) == (Picture("ig_0"),)
    assert reach(known=known, fetch=True) == known.reach


def test_pictures_count_in_the_order_in_which_the_conversation_shows_them() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text"}, shown(B)]}
    custom = {"type": "custom_tool_call_output", "call_id": "d", "output": [shown(C)]}
    items = [
        says({"type": "input_text", "text": "Look."}, shown(A)),
        {"type": "item_reference", "id": "ig_0"},
        output,
        made("ig_1", "DDDD"),
        {"type": "function_call", "call_id": "d", "name": "crop", "arguments": "{}"},
        custom,
        {"id": "ig_2"},
    ]
    known = Known(reach=(Picture("ig_9"),), pictures=frozenset({"ig_0", "ig_2", "ig_7"}))
    assert reach(*items, known=known) == (
        Picture("ig_9"),
        Picture(data=A),
        Picture("ig_0"),
        Picture(data=B),
        Picture("ig_1", data="DDDD"),
        Picture(data=C),
        Picture("ig_2"),
    )


@pytest.mark.parametrize(
    "item",
    [
        made("ig_1"),
        made("ig_1", ""),
        made("ig_1", status="failed"),
        {"type": "image_generation_call", "id": "ig_1"},
        {"type": "item_reference", "id": "ig_1"},
        {"type": None, "id": "ig_1"},
        {"id": "ig_1"},
    ],
)
def test_a_picture_that_is_only_named_is_in_reach_if_the_store_has_it(item: dict[str, Any]) -> None:
    assert reach(item, known=Known(pictures=frozenset({"ig_1"}))) == (Picture("ig_1"),)
    gone = Known(items={"ig_1": {"type": "image_generation_call", "status": "completed"}})
    assert reach(item, known=gone) == reach(item) == ()


@pytest.mark.parametrize("item_id", [None, 5])
def test_a_picture_without_an_id_is_in_reach_by_its_place_alone(item_id: object) -> None:
    item = {**made("", "AAAA", status="generating"), "id": item_id}
    assert reach(item, item) == (Picture(data="AAAA"), Picture(data="AAAA"))


def test_each_id_counts_once_where_it_stands_first() -> None:
    known = Known(reach=(Picture("ig_1"),), pictures=frozenset({"ig_1", "ig_2"}))
    items = [{"id": "ig_2"}, says(shown(A)), {"id": "ig_2"}, made("ig_1", "AAAA"), says(shown(A))]
    assert reach(*items, known=known) == (
        Picture("ig_1"),
        Picture("ig_2"),
        Picture(data=A),
        Picture(data=A),
    )


@pytest.mark.parametrize("url", [URL, URL.replace("https", "HTTP")])
def test_urls_are_in_reach_where_they_are_fetched(url: str) -> None:
    assert reach(says(shown(url)), fetch=True) == (Picture(url=url),)
    assert reach(says(shown(url))) == ()


@pytest.mark.parametrize(
    "part",
    [
        shown(None, file_id="file_1"),
        shown({"url": A}),
        shown("file:///etc/passwd"),
        shown("ftp://example.org/x.png"),
        {"type": "input_file", "image_url": A},
        {"image_url": A},
        "odd",
        None,
    ],
)
def test_what_is_no_picture_of_ours_is_not_in_reach(part: object) -> None:
    assert reach(says(part), fetch=True) == ()


@pytest.mark.parametrize("content", [None, "text", 5, {"type": "input_image", "image_url": A}])
def test_contents_without_parts_show_nothing(content: object) -> None:
    assert reach({"role": "user", "content": content}, "odd", None, {"output": content}) == ()
    assert pictures_in_reach("Draw.", Known(), fetch=True) == ()


json_values = st.none() | st.integers() | st.text(max_size=3)
items = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["image_generation_call", "item_reference", "message", None]) | json_values,
        "id": st.sampled_from(["ig_1", "ig_2", ""]) | json_values,
        "role": json_values,
        "result": st.sampled_from(["", "AAAA"]) | json_values,
        "content": st.lists(st.builds(shown, st.sampled_from([A, URL]) | json_values), max_size=2)
        | json_values,
        "output": st.lists(st.builds(shown, st.sampled_from([B, URL]) | json_values), max_size=2)
        | json_values,
    },
)


@given(st.lists(items | json_values, max_size=6), st.booleans())
def test_any_history_has_each_id_in_reach_once_and_no_other_source_than_it_shows(
    history: list[Any], fetch: bool
) -> None:
    known = Known(reach=(Picture("ig_2"), Picture("ig_0")), pictures=frozenset({"ig_1", "ig_2"}))
    pictures = reach(*history, known=known, fetch=fetch)
    named = [picture.id for picture in pictures if picture.id]
    assert pictures[:2] == known.reach
    assert len(set(named)) == len(named)
    for picture in pictures:
        assert picture.data or picture.id or picture.url
        assert not picture.url or fetch
        assert picture.data or picture.url or picture.id in known.pictures | {"ig_0"}
