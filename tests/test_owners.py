"""Whose a request is."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.stored.owners import default_owner


def owner(*headers: tuple[bytes, bytes]) -> str:
    scope: dict[str, Any] = {"type": "http", "headers": [(b"host", b"localhost"), *headers]}
    return default_owner(scope)


BEARER = (b"authorization", b"Bearer sk-secret")


@pytest.mark.parametrize("name", [b"authorization", b"api-key", b"x-api-key"])
def test_two_credentials_are_two_owners_and_one_is_always_the_same(name: bytes) -> None:
    assert owner((name, b"one")) == owner((name, b"one")) != owner((name, b"two"))


def test_the_secret_itself_is_not_told() -> None:
    assert "secret" not in owner(BEARER)
    assert len(owner(BEARER)) == 40


def test_the_same_words_in_another_header_are_another_credential() -> None:
    assert owner((b"api-key", b"one")) != owner((b"x-api-key", b"one"))


def test_authorization_counts_before_the_other_credentials() -> None:
    assert owner((b"x-api-key", b"one"), (b"api-key", b"two"), BEARER) == owner(BEARER)
    assert owner((b"x-api-key", b"one"), (b"api-key", b"two")) == owner((b"api-key", b"two"))


@pytest.mark.parametrize("value", [b"", b" "])
def test_an_empty_credential_is_none(value: bytes) -> None:
    assert owner((b"authorization", value), (b"api-key", b"one")) == owner((b"api-key", b"one"))
    assert owner((b"authorization", value)) == owner() == ""


def test_capitals_in_a_headers_name_and_spaces_around_it_change_nothing() -> None:
    assert owner((b"Authorization", b" Bearer sk-secret ")) == owner(BEARER)
