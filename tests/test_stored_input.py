"""A response's input without its pictures, and with them again."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.stored.stored_input import places, put_back, take_out, weight

SKY = "data:image/png;base64,c2t5"


def items(given: object) -> list[Any]:
    return take_out(given, "resp_1").items


def test_a_string_is_one_message_of_the_user() -> None:
    (message,) = items("Draw a kite.")
    assert message == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Draw a kite."}],
        "id": message["id"],
    }
    assert message["id"].startswith("msg_")


def test_short_messages_get_their_long_form() -> None:
    spoken = items([{"role": "assistant", "content": "Yes."}, {"role": "system", "content": "Be brief."}])
    assert [(item["type"], item["content"]) for item in spoken] == [
        ("message", [{"type": "output_text", "text": "Yes.", "annotations": []}]),
        ("message", [{"type": "input_text", "text": "Be brief."}]),
    ]


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ("message", "msg_"),
        ("function_call", "fc_"),
        ("function_call_output", "fco_"),
        ("reasoning", "rs_"),
        ("image_generation_call", "ig_"),
        ("custom_tool_call", "item_"),
        (7, "item_"),
    ],
)
def test_an_item_without_an_id_always_gets_the_same_one(kind: object, prefix: str) -> None:
    for missing in ({}, {"id": None}, {"id": ""}):
        given = [{"type": kind, **missing}, {"type": kind}]
        first, second = items(given)
        assert first["id"].startswith(prefix)
        assert first["id"] != second["id"]
        assert items(given) == [first, second]
        assert take_out(given, "resp_2").items[0]["id"] != first["id"]


def test_ids_that_are_there_stay() -> None:
    given = [{"type": "reasoning", "id": "rs_7", "summary": []}, {"type": "item_reference", "id": "msg_1"}]
    assert items(given) == given


def test_what_is_no_item_stays_as_it_is() -> None:
    assert items(["stray", 3, None]) == ["stray", 3, None]
    assert items(None) == []


def test_equal_pictures_are_kept_once() -> None:
    part = {"type": "input_image", "image_url": SKY}
    given = [{"role": "user", "content": [part, part]}, {"role": "user", "content": [part]}]
    taken = take_out(given, "resp_1")
    assert list(taken.pictures.values()) == [b"c2t5"]
    assert set(taken.reach) == taken.pictures.keys()
    assert take_out(given, "resp_2").pictures == taken.pictures


def test_the_request_itself_stays_as_it_was() -> None:
    given = [{"role": "user", "content": [{"type": "input_image", "image_url": SKY}]}]
    image = {"type": "image_generation_call", "id": "ig_1", "status": "generating", "result": "c2t5"}
    take_out([*given, image], "resp_1")
    assert given[0]["content"] == [{"type": "input_image", "image_url": SKY}]
    assert image["status"] == "generating"
    assert image["result"] == "c2t5"


@pytest.mark.parametrize(
    "head", ["data:image/png;base64", "DATA:image/svg+xml;charset=utf-8;BASE64", "data:;base64"]
)
def test_a_data_url_comes_back_as_it_was(head: str) -> None:
    given = {"type": "message", "id": "msg_1", "content": [{"image_url": f"{head},c2t5"}]}
    taken = take_out([given], "resp_1")
    assert "c2t5" not in str(taken.items)
    assert set(places(taken.items)) == taken.pictures.keys()
    assert put_back(taken.items[0], taken.pictures) == given


@pytest.mark.parametrize(
    "url",
    ["data:image/svg+xml,<svg/>", "data:image/png;base64,", "data:image/png;base64,ä", "data:", "x", 7, None],
)
def test_anything_else_stays_where_it_is(url: object) -> None:
    given = {"type": "message", "id": "msg_1", "content": [{"type": "input_image", "image_url": url}]}
    taken = take_out([given], "resp_1")
    assert taken.items == [given]
    assert (taken.pictures, taken.reach) == ({}, [])
    assert put_back(given, {}) == given


def test_pictures_are_weighed_wherever_they_are() -> None:
    given = [
        {"role": "user", "content": [{"type": "input_image", "image_url": SKY}, {"image_url": "https://x"}]},
        {"type": "image_generation_call", "id": "ig_1", "result": "12345"},
        {"type": "image_generation_call", "id": "ig_2", "result": None},
        {"type": "message", "result": "no picture"},
    ]
    assert weight(given) == len(SKY) + 5
    assert weight("Draw a kite.") == 0


@pytest.mark.parametrize("result", [None, "", 7, "ä"])
def test_an_image_item_without_a_picture_is_only_mentioned(result: object) -> None:
    taken = take_out([{"type": "image_generation_call", "id": "ig_1", "result": result}], "resp_1")
    assert taken.items == [{"type": "image_generation_call", "id": "ig_1"}]
    assert (taken.pictures, taken.given, taken.reach) == ({}, {}, ["ig_1"])


def test_an_image_item_that_brings_its_picture_is_complete_whatever_it_says() -> None:
    given = {"type": "image_generation_call", "id": "ig_1", "status": "failed", "result": "data:,c2t5"}
    taken = take_out([given], "resp_1")
    assert taken.given == {"ig_1": {"type": "image_generation_call", "id": "ig_1", "status": "completed"}}
    assert taken.pictures == {"ig_1": b"c2t5"}
