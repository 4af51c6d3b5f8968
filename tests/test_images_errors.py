"""What servers say when they make no picture, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from imagecall.middleware.backends.images_api.errors import AnswerError, ErrorReader, TryLaterError
from imagecall.middleware.backends.secret_values import Secrets

NOW = 1_790_000_000.0
READER = ErrorReader(Secrets(["canary-0123456789"]), lambda: NOW)


def read(payload: Any, status: int = 400, **headers: str) -> AnswerError:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return READER.refusal(status, {key.replace("_", "-"): value for key, value in headers.items()}, body)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"error": {"message": "no paint", "type": "x", "param": None, "code": None}}, "no paint"),
        ({"error": "no paint"}, "no paint"),
        ({"message": "no paint"}, "no paint"),
        ({"detail": "no paint"}, "no paint"),
        ({"detail": {"error": "no paint"}}, "no paint"),
        ({"error": {"detail": "no paint"}}, "no paint"),
        ({"error": {}, "detail": "no paint"}, "no paint"),
        ({"error": "server_error", "message": "no paint"}, "server_error: no paint"),
        ({"error": "HTTPException", "detail": "no paint", "errors": ""}, "HTTPException: no paint"),
        ({"error": "no paint", "message": "no paint"}, "no paint"),
        (
            {"detail": [{"loc": ["body", "size"], "msg": "must have an x"}, {"msg": "no paint"}, "why"]},
            "body.size: must have an x; no paint; why",
        ),
        ("no paint", "no paint"),
        (["no", "paint"], "no; paint"),
        (b"no paint", "no paint"),
        (b"no\n\x00  paint\xff", "no paint\ufffd"),
    ],
)
def test_a_servers_words_are_found_wherever_they_are(payload: Any, text: str) -> None:
    error = read(payload)
    assert error.message == f"The image server answered 400 (Bad Request): {text}"
    assert (error.status, error.details) == (400, None)


@pytest.mark.parametrize("payload", [{}, None, 7, [], b"", {"error": None}, {"error": 7, "detail": []}])
def test_a_server_without_words_is_at_least_named_by_its_status(payload: Any) -> None:
    assert read(payload).message == "The image server answered 400 (Bad Request)."
    assert read(payload, 599).message == "The image server answered 599."


def test_a_page_for_people_is_not_shown() -> None:
    error = read(b"<!DOCTYPE html><h1>nginx</h1>", 502)
    assert error.message == "The image server answered 502 (Bad Gateway) with an HTML page."
    assert error.code == "image_backend_error"


@pytest.mark.parametrize("status", [404, 405])
def test_a_path_that_is_not_there_gets_a_hint(status: int) -> None:
    assert "; its URL must be the Images API's base" in read({"detail": "Not Found"}, status).message
    known = read({"error": {"message": "no such model", "code": "model_not_found"}}, status)
    assert "its URL" not in known.message


def test_only_three_hundred_characters_are_shown() -> None:
    text = read({"error": "no " * 1_000}).message.removeprefix(
        "The image server answered 400 (Bad Request): "
    )
    assert text == ("no " * 100)[:299] + "…"


def test_of_a_long_text_only_the_beginning_is_searched() -> None:
    words = "rejected as a result of our safety system"
    assert read({"error": "y " * 8_000 + words}).code == "moderation_blocked"
    assert read({"error": "y " * 9_000 + words}).code == "image_backend_refused"
    assert read("y " * 9_000 + words).code == "image_backend_refused"
    assert isinstance(read({"error": {"type": "y " * 9_000 + "content_filter"}}, 503), TryLaterError)


NAMED = {"message": "m", "code": "invalid_value", "type": "invalid_request_error", "param": "size"}


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        ({"error": {"message": "m", "code": 400}}, 400, "image_backend_refused"),
        ({"error": {"message": "m", "code": "400"}}, 400, "image_backend_refused"),
        ({"error": {"message": "m", "type": 7, "param": ["x"]}}, 422, "image_backend_refused"),
        ({"error": {"code": "a b", "type": "x" * 65, "param": "é"}}, 403, "image_backend_unauthorized"),
        ({"error": "server_error", "message": "m"}, 500, "server_error"),
        ({"error": "Unauthorized"}, 401, "image_backend_unauthorized"),
        ({"detail": "m"}, 500, "image_backend_error"),
        ({"code": "flat", "message": "m"}, 400, "flat"),
        ({"error": "a_" * 500 + "b"}, 400, "image_backend_refused"),
        ({"error": {"code": "canary-0123456789", "param": "sk-123456"}}, 404, "image_backend_not_found"),
    ],
)
def test_what_is_no_name_of_the_servers_own_is_replaced(payload: Any, status: int, code: str) -> None:
    error = read(payload, status)
    assert type(error) is AnswerError
    assert (error.code, error.type, error.param) == (code, "image_generation_error", None)


def test_code_type_and_param_are_the_servers_own() -> None:
    error = read({"error": NAMED})
    assert (error.code, error.type, error.param) == ("invalid_value", "invalid_request_error", "size")


DETAILS = {"moderation_stage": "input", "categories": ["violence"]}


@pytest.mark.parametrize("status", [400, 429, 503])
def test_a_refusal_of_the_safety_system_is_told_as_it_is_and_never_tried_again(status: int) -> None:
    error = read(
        {
            "error": {
                "code": "moderation_blocked",
                "message": "prompt refused by the safety check",
                "param": None,
                "type": "image_generation_user_error",
                "moderation_details": DETAILS,
            }
        },
        status,
        Retry_After="0",
    )
    assert type(error) is AnswerError
    assert error.message == "prompt refused by the safety check"
    assert (error.code, error.type) == ("moderation_blocked", "image_generation_user_error")
    assert error.details == {"moderation_details": DETAILS}


@pytest.mark.parametrize(
    ("payload", "code", "kind"),
    [
        (
            {"error": {"code": "content_policy_violation", "message": "no"}},
            "content_policy_violation",
            "image_generation_user_error",
        ),
        (
            {"error": {"code": "contentFilter", "message": "no"}},
            "contentFilter",
            "image_generation_user_error",
        ),
        ({"error": {"type": "content_filter", "message": "no"}}, "image_backend_refused", "content_filter"),
        (
            {"error": {"message": "litellm.ContentPolicyViolationError: no", "code": "400"}},
            "moderation_blocked",
            "image_generation_user_error",
        ),
    ],
)
def test_other_names_of_a_refusal_are_known(payload: Any, code: str, kind: str) -> None:
    error = read(payload)
    assert (error.code, error.type, error.details) == (code, kind, None)


def test_moderation_details_are_struck_and_bounded() -> None:
    def details(value: Any) -> Any:
        return read({"error": {"code": "moderation_blocked", "moderation_details": value}})

    error = details({"categories": ["canary-0123456789"]})
    assert error.details == {"moderation_details": {"categories": ["[secret]"]}}
    assert error.message == "The safety system refused this picture."
    assert details({"categories": ["x" * 5_000]}).details is None
    assert details("none").details is None


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_can_be_asked_later(status: int) -> None:
    error = read({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, status, Retry_After="7")
    assert isinstance(error, TryLaterError)
    assert (error.wait, error.code, error.status) == (7.0, "rate_limit_exceeded", status)
    silent = read(b"", status)
    assert isinstance(silent, TryLaterError)
    assert (silent.wait, silent.details) == (None, None)


def test_a_rate_limit_is_told_with_its_reset_time() -> None:
    error = read(
        {"error": {"message": "m", "code": "rate_limit_exceeded", "limit": "images"}}, 429, Retry_After="7"
    )
    assert isinstance(error, TryLaterError)
    assert error.details == {
        "limit": "rate_limit_exceeded",
        "resets_at": 1_790_000_007,
        "resets_in_seconds": 7,
    }
    assert read(b"", 429).code == "image_backend_busy"


@pytest.mark.parametrize(
    ("payload", "status", "headers", "told", "code", "details"),
    [
        (
            {
                "error": {
                    "type": "usage_limit_reached",
                    "message": "No more",
                    "plan_type": "plus",
                    "resets_at": 1_790_007_500,
                    "resets_in_seconds": 7_500,
                }
            },
            429,
            {},
            "(usage_limit_reached); it resets at 2026-09-21 16:18:20 UTC, in 2 h 5 min: No more",
            "usage_limit_reached",
            {"limit": "usage_limit_reached", "resets_at": 1_790_007_500, "resets_in_seconds": 7_500},
        ),
        (
            {"error": {"message": "No more", "code": "insufficient_quota"}},
            429,
            {"Retry_After": "60"},
            "(insufficient_quota); it resets at 2026-09-21 14:14:20 UTC, in 1 min: No more",
            "insufficient_quota",
            {"limit": "insufficient_quota", "resets_at": 1_790_000_060, "resets_in_seconds": 60},
        ),
        (
            {"error": {"code": "billing_hard_limit_reached", "type": "invalid_request_error", "param": None}},
            400,
            {},
            "(billing_hard_limit_reached).",
            "billing_hard_limit_reached",
            {"limit": "billing_hard_limit_reached"},
        ),
        (
            {"error": {"message": "m", "limit": "images_per_day"}},
            429,
            {"x_ratelimit_reset_images": "1h"},
            "(images_per_day); it resets at 2026-09-21 15:13:20 UTC, in 1 h: m",
            "image_backend_busy",
            {"limit": "images_per_day", "resets_at": 1_790_003_600, "resets_in_seconds": 3_600},
        ),
        (
            {"error": {"message": "litellm.RateLimitError: insufficient_quota", "code": "429"}},
            429,
            {},
            "(insufficient_quota): litellm.RateLimitError: insufficient_quota",
            "insufficient_quota",
            {"limit": "insufficient_quota"},
        ),
        (
            {"detail": "Payment required", "limit": 5},
            402,
            {},
            "(image_backend_refused): Payment required",
            "image_backend_refused",
            {"limit": "image_backend_refused"},
        ),
    ],
    ids=["usage", "quota", "billing", "named", "buried", "payment"],
)
def test_a_limit_that_is_used_up_is_named_with_its_reset_time_and_never_tried_again(
    payload: Any, status: int, headers: dict[str, str], told: str, code: str, details: Any
) -> None:
    error = read(payload, status, **headers)
    assert type(error) is AnswerError
    assert error.message == f"The image server's limit is used up {told}"
    assert (error.code, error.details) == (code, details)


def test_a_parameter_is_named_by_param_or_in_words() -> None:
    assert read({"error": {"message": "no", "param": "size"}}).names("size")
    assert read({"detail": [{"loc": ["body", "size"], "msg": "no"}]}, 422).names("size")
    assert not read({"error": "no"}).names("size")
    assert not read({"error": "size"}, 500).names("size")


def test_every_word_is_struck() -> None:
    error = read({"error": {"message": "key canary-0123456789", "code": "x_canary-0123456789"}})
    assert "canary" not in f"{error.message} {error.code}"


def test_whoever_runs_the_server_need_not_know_of_what_passes() -> None:
    passing = [
        read({"error": {"code": "moderation_blocked"}}),
        read({"error": {"type": "content_filter"}}),
        read({"error": "rejected by the safety system"}),
        read({}, 429),
        read({}, 503),
    ]
    assert all(error.is_passing for error in passing)
    staying = [read({}, 401), read({"error": {"code": "insufficient_quota"}}, 429), read({}, 500)]
    assert not any(error.is_passing for error in staying)
