"""`UpstreamURL`: which target a real upstream is asked for, and which URLs are refused."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest
from imagecall.middleware.proxy import ProxyApp
from loopback import answering, ask, body_of, http_scope, raw_server

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


async def target_asked(base: str, **scope: object) -> bytes:
    """Return the request target that the upstream at the path `base` sees for the scope."""
    seen: list[bytes] = []
    async with raw_server(answering(OK, seen=seen)) as url, aclosing(ProxyApp(url + base)) as app:
        assert (await ask(app, http_scope(method="GET", **scope)))[0]["status"] == 204
    return seen[0].split(b" ")[1]


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("", "/v1/responses", b"/v1/responses"),
        ("/", "/v1/responses", b"/v1/responses"),
        ("/v1", "/v1/responses", b"/v1/responses"),
        ("/v1/", "/v1/responses", b"/v1/responses"),
        ("/v1", "/responses", b"/v1/responses"),
        ("", "/responses", b"/responses"),
        ("/openai/v1", "/v1/responses", b"/openai/v1/responses"),
        ("/openai/v1", "/openai/v1/responses", b"/openai/v1/responses"),
        ("/openai/v1", "/responses", b"/openai/v1/responses"),
        ("/openai/v1", "/openai/models", b"/openai/v1/openai/models"),
        ("/v1/responses", "/v1/responses", b"/v1/responses"),
        ("/v1", "/v1beta/models", b"/v1/v1beta/models"),
        ("/v1", "/v1", b"/v1"),
        ("/v1", "/v1/", b"/v1/"),
        ("", "/", b"/"),
    ],
)
async def test_segments_that_end_the_base_and_begin_the_path_are_written_once(
    base: str, path: str, target: bytes
) -> None:
    assert await target_asked(base, path=path) == target


async def test_path_and_query_travel_byte_for_byte() -> None:
    raw = b"/v1//a%2Fb/%7e/../c;x=1/\"<>'|"
    query = b"q=%20+%2f&&q=&#=?"
    target = await target_asked("", raw_path=raw, query_string=query)
    assert target == raw + b"?" + query


async def test_bytes_that_no_request_line_may_hold_are_percent_encoded() -> None:
    target = await target_asked("", raw_path="/é a\r\n".encode(), query_string=b"\xff")
    assert target == b"/%C3%A9%20a%0D%0A?%FF"


async def test_a_server_without_raw_path_gets_the_path_encoded() -> None:
    assert await target_asked("", path="/v1/a b/(c)", raw_path=None) == b"/v1/a%20b/(c)"


@pytest.mark.parametrize(
    ("root_path", "raw_path", "target"),
    [
        ("/llm", b"/llm/v1/responses", b"/v1/responses"),
        ("/llm/", b"/llm/v1/responses", b"/v1/responses"),
        ("/llm", b"/llm", b"/"),
        ("/llm", b"/llms/v1", b"/llms/v1"),
        ("/my llm", b"/my%20llm/v1", b"/v1"),
    ],
)
async def test_the_place_where_the_app_is_mounted_is_not_forwarded(
    root_path: str, raw_path: bytes, target: bytes
) -> None:
    assert await target_asked("", root_path=root_path, raw_path=raw_path) == target


@pytest.mark.parametrize("raw_path", [b"*", b"@other.example/", b"http://other.example/"])
async def test_a_target_that_is_no_path_is_refused(raw_path: bytes) -> None:
    app = ProxyApp("http://127.0.0.1:9")
    messages = await ask(app, http_scope(method="OPTIONS", raw_path=raw_path))
    assert messages[0]["status"] == 400
    assert json.loads(body_of(messages)) == {
        "error": {
            "message": "The request's target must be a path.",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
    }


@pytest.mark.parametrize(
    ("upstream", "complaint"),
    [
        ("http://h:secret", "is not a URL"),
        ("ftp://h/secret", "is not an http:// or https:// URL"),
        ("localhost:8000", "is not an http:// or https:// URL"),
        ("http:///secret", "is not an http:// or https:// URL"),
        ("http://user:secret@h", "holds a user or password"),
        ("http://:secret@h", "holds a user or password"),
        ("http://secret@h", "holds a user or password"),
        ("http://h/?key=secret", "holds a query or fragment"),
        ("http://h/#secret", "holds a query or fragment"),
    ],
)
def test_an_upstream_that_is_no_plain_url_is_refused_without_repeating_it(
    upstream: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        ProxyApp(upstream)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ == (complaint == "is not a URL")
