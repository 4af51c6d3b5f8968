"""What is struck out of a server's words."""

from __future__ import annotations

import pytest
from imagecall.middleware.backends.secret_values import Secrets, is_secret_name, named_secrets

KEY = "canary-0123456789abcdef"
SECRETS = Secrets([KEY, "s3cret", "none", ""], ["studio-north", "short"])


@pytest.mark.parametrize(
    ("text", "struck"),
    [
        ("nothing here", "nothing here"),
        (f"the key {KEY} is wrong", "the key [secret] is wrong"),
        (f"x={KEY.upper()}&y=1", "x=[secret]&y=1"),
        ("the key canary-01****cdef is wrong", "the key [secret] is wrong"),
        ("ends with 89abcdef.", "ends with [secret]"),
        ("a canary-0 of seven 9abcdef", "a [secret] of seven 9abcdef"),
        ("api_key=S3cret", "api_key=[secret]"),
        ("none of it", "none of it"),
        ("no short of studio-north and studio", "no short of [secret] and studio"),
        ("Incorrect API key provided: sk-proj-ab****yz.", "Incorrect API key provided: [secret]"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: [secret]"),
        ("a basic drawing of a risk-taker", "a basic drawing of a risk-taker"),
    ],
)
def test_secrets_and_what_looks_like_one_are_struck_out(text: str, struck: str) -> None:
    assert SECRETS.strike(text) == struck


def test_they_are_struck_out_of_any_json_value() -> None:
    value = {"a": [f"key {KEY}", 7, None], KEY: {"b": True}}
    assert SECRETS.strike_all(value) == {"a": ["key [secret]", 7, None], "[secret]": {"b": True}}


def test_without_secrets_only_what_looks_like_one_is_struck_out() -> None:
    assert Secrets().strike("plain words and sk-12345678") == "plain words and [secret]"


@pytest.mark.parametrize(
    "name",
    ["Authorization", "api-key", "X-Api-Key", "sig", "access_token", "Cookie", "Ocp-Apim-Subscription-Key"],
)
def test_names_give_secrets_away(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["api-version", "X-Title", "design", "steps"])
def test_other_names_do_not(name: str) -> None:
    assert not is_secret_name(name)


def test_what_stands_under_a_secrets_name_is_found_however_deep() -> None:
    headers = {"Authorization": "Bearer one ", "X-Title": "two"}
    body = {
        "a": [{"api_key": "three"}, "four"],
        "credentials": {"id": 5, "more": ["six seven", None]},
        "token": "",
    }
    found = ["Bearer one", "one", "three", "three", "5", "5", "six seven", "seven", "None", "None", ""]
    assert list(named_secrets([headers, body])) == found
