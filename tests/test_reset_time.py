"""When a server can be asked again, in all the ways in which servers say so."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.backends.images_api.reset_time import Reset, find_reset

NOW = 1_790_000_000.0  # Monday, 21 September 2026, 14:13:20 UTC


def after(seconds: float) -> Reset:
    return Reset(NOW + seconds, seconds)


@pytest.mark.parametrize(
    ("headers", "reset"),
    [
        ({}, None),
        ({"Retry-After": "0"}, after(0)),
        ({"Retry-After": " 120 "}, after(120)),
        ({"retry-after": "1.5"}, after(1.5)),
        ({"Retry-After": "Mon, 21 Sep 2026 14:14:20 GMT"}, after(60)),
        ({"Retry-After": "Mon, 21 Sep 2026 14:14:20 -0000"}, after(60)),
        ({"Retry-After": "Mon, 21 Sep 2026 12:00:00 GMT"}, Reset(1_789_992_000.0, 0)),
        ({"Retry-After": "2026-09-21T14:14:20Z"}, after(60)),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "900000000"}, None),
        ({"Retry-After": "Mon, 21 Sep 2099 12:00:00 GMT"}, None),
        ({"Retry-After": "100000d"}, None),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, after(1.5)),
        ({"Retry-After-Ms": "x", "Retry-After": "9"}, after(9)),
        ({"x-ratelimit-reset-requests": "6m0s"}, after(360)),
        ({"X-RateLimit-Reset-Images": "1h2m3.5s"}, after(3723.5)),
        ({"x-ratelimit-reset-tokens": "20ms"}, after(0.02)),
        ({"x-ratelimit-reset": "1790000060"}, after(60)),
        ({"x-ratelimit-reset": "1790000060000"}, after(60)),
        ({"x-ratelimit-reset": "60", "retry-after": "5"}, after(5)),
        (
            {
                "x-ratelimit-reset-requests": "9s",
                "x-ratelimit-remaining-requests": "10",
                "x-ratelimit-reset-images": "5s",
                "x-ratelimit-remaining-images": "0",
                "x-ratelimit-reset-tokens": "2s",
                "x-ratelimit-remaining-tokens": "0",
            },
            after(5),
        ),
        ({"x-ratelimit-reset-requests": "9s", "x-ratelimit-remaining-requests": "10"}, None),
        ({"x-ratelimit-reset-requests": "never", "x-ratelimit-limit-requests": "5"}, None),
    ],
)
def test_headers_tell_it(headers: dict[str, str], reset: Reset | None) -> None:
    assert find_reset(headers, {}, NOW) == reset


@pytest.mark.parametrize(
    ("error", "reset"),
    [
        ({"resets_in_seconds": 3600}, after(3600)),
        ({"resets_in_seconds": "3600"}, after(3600)),
        ({"resets_at": 1_790_003_600}, after(3600)),
        ({"resets_at": "2026-09-21T15:13:20+00:00"}, after(3600)),
        ({"resets_at": 1_790_003_600, "resets_in_seconds": 3500}, Reset(1_790_003_600, 3500)),
        ({"resets_at": 1_789_000_000}, Reset(1_789_000_000, 0)),
        ({"resets_at": None, "resets_in_seconds": True}, after(7)),
        ({"resets_at": {}, "resets_in_seconds": []}, after(7)),
    ],
)
def test_the_errors_own_words_come_first(error: dict[str, Any], reset: Reset) -> None:
    assert find_reset({"Retry-After": "7"}, error, NOW) == reset


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "at 2026-09-21 14:13:20 UTC, in 0 s"),
        (0.6, "at 2026-09-21 14:13:20 UTC, in 1 s"),
        (61, "at 2026-09-21 14:14:21 UTC, in 1 min 1 s"),
        (7_500, "at 2026-09-21 16:18:20 UTC, in 2 h 5 min"),
        (86_400 * 3 + 5, "at 2026-09-24 14:13:25 UTC, in 3 d 5 s"),
    ],
)
def test_it_can_be_told_in_words(seconds: float, words: str) -> None:
    assert after(seconds).words() == words
