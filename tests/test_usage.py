"""Token counts, added up and made whole."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.usage import IMAGE_DETAILS, add_usage, full_usage

ONE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}


def test_usage_is_added_field_by_field_and_nothing_given_is_changed() -> None:
    more = {**ONE, "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 3}, "total_tokens": 20}
    assert add_usage(ONE, more) == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 4},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 35,
    }
    assert ONE["input_tokens_details"] == {"cached_tokens": 4, "cache_write_tokens": 1}


@pytest.mark.parametrize(
    ("total", "more", "added"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ({}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": "many"}, {"a": "many"}),
        ({"a": "many"}, {"a": 1}, {"a": 1}),
        ({"a": 1.5}, {"a": 1}, {"a": 2.5}),
        ({"a": True}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "c": 2}}),
    ],
)
def test_what_is_no_number_is_the_later_one(
    total: dict[str, Any], more: dict[str, Any], added: dict[str, Any]
) -> None:
    assert add_usage(total, more) == added


@pytest.mark.parametrize(
    "given", [{}, {"input_tokens": None, "input_tokens_details": None}, {"output_tokens_details": "none"}]
)
def test_counts_and_details_that_are_missing_are_zero(given: dict[str, Any]) -> None:
    assert full_usage(given) == {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }


def test_a_missing_total_is_the_sum_and_a_given_one_is_believed() -> None:
    assert full_usage({"input_tokens": 3, "output_tokens": 4})["total_tokens"] == 7
    assert full_usage({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9})["total_tokens"] == 9


def test_details_keep_what_they_say_and_nulls_become_zeros() -> None:
    full = full_usage(
        {"input_tokens_details": {"cached_tokens": None, "audio_tokens": 2, "text_tokens": None}}
    )
    assert full["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 2}
    assert full_usage(ONE) == ONE


def test_a_picture_has_details_of_its_own() -> None:
    assert full_usage({"input_tokens": 8, "output_tokens_details": {"image_tokens": 9}}, IMAGE_DETAILS) == {
        "input_tokens": 8,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"image_tokens": 9, "text_tokens": 0},
        "total_tokens": 8,
    }
