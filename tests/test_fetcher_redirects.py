"""Redirects: each one is a new URL with all checks."""

from __future__ import annotations

import pytest
from fetching import FILE, PUBLIC, Names, answer, fetcher, redirect, refused, site


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_followed_without_cookies(status: str) -> None:
    async with site(redirect("../b%2Fc.png?d=%2F", status), answer()) as (host, seen):
        assert await fetcher(Names()).fetch(f"http://{host}/x/y/a.png") == FILE
    assert seen[1].startswith(b"GET /x/b%2Fc.png?d=%2F HTTP/1.1\r\n")
    assert b"cookie" not in seen[1].lower()


async def test_a_redirect_to_another_allowed_host_is_checked_and_followed() -> None:
    names = Names()
    async with site(answer()) as (host, _), site(redirect(f"http://{host}/b")) as (first, seen):
        assert await fetcher(names).fetch(f"http://{first}/") == FILE
        second = f"//cdn.{host}/"
    async with site(answer()) as (host, _), site(redirect(second)) as (first, seen):
        names = Names([PUBLIC], ["10.0.0.1"])
        assert (await refused(fetcher(names), f"http://{first}/"))[0] == "image_url_not_allowed"
    assert [name for name, _ in names.asked] == ["pictures.example", "cdn.pictures.example"]
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("http://127.0.0.2:8000/", "is not on a host that can be found on the public internet"),
        ("http://[::ffff:169.254.169.254]/", "is not on a host that can be found on the public internet"),
        ("//metadata.internal/", "is not on a host that can be found on the public internet"),
        ("https://other.example/", "is not on a host that may be asked for pictures"),
        ("file:///etc/passwd", "is not an http or https URL"),
        ("ftp://pictures.example/", "is not an http or https URL"),
        ("http://me:s3cret@pictures.example/", "holds a user or password"),
        ("http://[", "is not a valid URL"),
    ],
)
async def test_a_redirect_to_where_a_url_may_not_lead_is_refused(location: str, problem: str) -> None:
    hosts = ("pictures.example:*", "127.*:*", "::ffff:*:*", "*.internal")
    async with site(redirect(location)) as (host, seen):
        code, message = await refused(fetcher(Names([PUBLIC], ["127.0.0.2"]), *hosts), f"http://{host}/")
    assert (code, message) == ("image_url_not_allowed", f"The picture's URL {problem}.")
    assert len(seen) == 1


async def test_five_redirects_are_followed_and_no_more() -> None:
    async with site(*[redirect("/")] * 5, answer()) as (host, seen):
        assert await fetcher(Names()).fetch(f"http://{host}/") == FILE
    assert len(seen) == 6
    async with site(*[redirect("/")] * 6) as (host, seen):
        assert await refused(fetcher(Names()), f"http://{host}/") == (
            "image_fetch_failed",
            "The picture's URL is redirected more than 5 times.",
        )
    assert len(seen) == 6
