"""`ProxyApp`: what the upstream gets, what the client gets, byte for byte."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

import pytest
from imagecall.middleware.proxy import ProxyApp
from loopback import Client, answering, ask, body_of, http_scope, raw_server, read_request

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
OK_MESSAGES = [
    {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"text/plain"), (b"content-length", b"2")],
    },
    {"type": "http.response.body", "body": b"ok", "more_body": True},
    {"type": "http.response.body", "body": b"", "more_body": False},
]


async def requests_made(*asked: tuple[dict[str, object], tuple[bytes, ...]]) -> list[bytes]:
    """Return whole requests as the upstream reads them, with its port cut from `Host`."""
    seen: list[bytes] = []
    async with raw_server(answering(*[OK] * len(asked), seen=seen)) as url, aclosing(ProxyApp(url)) as app:
        for scope, pieces in asked:
            assert await ask(app, http_scope("/x", **scope), *pieces) == OK_MESSAGES
    return [request.replace(url[len("http://127.0.0.1") :].encode(), b"", 1) for request in seen]


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "TRACE"])
async def test_a_request_without_a_body_gets_none_and_no_header_is_made_up(method: str) -> None:
    headers = [(b"host", b"imagecall.example"), (b"authorization", b"Bearer k"), (b"expect", b"100-continue")]
    [request] = await requests_made(({"method": method, "headers": headers}, ()))
    assert request == method.encode() + b" /x HTTP/1.1\r\nHost: 127.0.0.1\r\nauthorization: Bearer k\r\n\r\n"


@pytest.mark.parametrize("method", ["POST", "DELETE", "PROPFIND"])
async def test_a_body_with_a_length_keeps_it(method: str) -> None:
    headers = [(b"content-length", b"7"), (b"content-encoding", b"gzip")]
    [request] = await requests_made(({"method": method, "headers": headers}, (b"abc", b"defg")))
    assert request == (
        method.encode()
        + b" /x HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-length: 7\r\ncontent-encoding: gzip\r\n\r\nabcdefg"
    )


async def test_a_chunked_body_stays_chunked_whatever_length_is_claimed_beside_it() -> None:
    headers = [(b"transfer-encoding", b"chunked"), (b"content-length", b"1"), (b"accept", b"*/*")]
    [request] = await requests_made(({"headers": headers}, (b"abc", b"", b"defg")))
    assert request == (
        b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\naccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    )


async def test_hop_by_hop_headers_stay_behind_and_repeated_ones_keep_their_order() -> None:
    headers = [
        (b"x-tag", b"one"),
        (b"connection", b"close, X-Private"),
        (b"x-private", b"1"),
        (b"te", b"trailers"),
        (b"x-other", b"caf\xc3\xa9"),
        (b"proxy-authorization", b"Basic x"),
        (b"x-tag", b"two"),
    ]
    [request] = await requests_made(({"method": "GET", "headers": headers}, ()))
    assert request == (
        b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nx-tag: one\r\nx-other: caf\xc3\xa9\r\nx-tag: two\r\n\r\n"
    )


async def test_one_connection_serves_requests_in_turn() -> None:
    requests = await requests_made(
        ({"method": "GET"}, ()), ({"headers": [(b"content-length", b"1")]}, (b"a",))
    )
    assert [request[:4] for request in requests] == [b"GET ", b"POST"]


async def answer_to(answer: bytes, **scope: object) -> list[dict[str, object]]:
    async with raw_server(answering(answer)) as url, aclosing(ProxyApp(url)) as app:
        return await ask(app, http_scope(**scope))


async def test_response_headers_come_raw_in_order_without_hop_by_hop_ones() -> None:
    big = b"x" * 20_000
    messages = await answer_to(
        b"HTTP/1.1 302 Found\r\nSet-Cookie: a=1; Path=/\r\nLocation: /elsewhere\r\n"
        b"Connection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\n"
        b"SET-COOKIE: b=2\r\nX-Latin: \xe9\r\nX-Big: " + big + b"\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert messages == [
        {
            "type": "http.response.start",
            "status": 302,
            "headers": [
                (b"set-cookie", b"a=1; Path=/"),
                (b"location", b"/elsewhere"),
                (b"set-cookie", b"b=2"),
                (b"x-latin", b"\xe9"),
                (b"x-big", big),
            ],
        },
        {"type": "http.response.body", "body": b"", "more_body": False},
    ]


async def test_no_cookie_is_kept() -> None:
    seen: list[bytes] = []
    cookie = b"HTTP/1.1 204 No Content\r\nSet-Cookie: session=1; Path=/\r\n\r\n"
    async with (
        raw_server(answering(cookie, OK, seen=seen)) as url,
        aclosing(ProxyApp(url.replace("127.0.0.1", "localhost"))) as app,  # cookies need a name
    ):
        await ask(app, http_scope(method="GET"))
        await ask(app, http_scope(method="GET"))
    assert seen[0] == seen[1]


async def test_a_compressed_body_is_passed_on_as_it_is() -> None:
    packed = gzip.compress(b"hello")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    messages = await answer_to(head + packed)
    assert messages[0]["headers"] == [
        (b"content-encoding", b"gzip"),
        (b"content-length", b"%d" % len(packed)),
    ]
    assert body_of(messages) == packed


@pytest.mark.parametrize(
    ("method", "head", "headers"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", [(b"content-length", b"5")]),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-A: b\r\n\r\n", [(b"x-a", b"b")]),
        ("GET", b'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: "e"\r\n\r\n', [(b"etag", b'"e"')]),
    ],
)
async def test_answers_without_a_body_end_at_once(
    method: str, head: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    messages = await answer_to(head, method=method)
    assert messages[0]["headers"] == headers
    assert messages[1:] == [{"type": "http.response.body", "body": b"", "more_body": False}]


def assert_unreachable(messages: list[dict[str, object]]) -> None:
    body = body_of(messages)
    assert messages[0] == {
        "type": "http.response.start",
        "status": 502,
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
    }
    assert json.loads(body) == {
        "error": {
            "message": "The model server cannot be reached.",
            "type": "upstream_error",
            "param": None,
            "code": "upstream_unreachable",
        }
    }


async def test_a_closed_port_is_a_502_and_the_log_says_where_and_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with aclosing(ProxyApp(f"http://127.0.0.1:{port}/v1")) as app:
        messages = await ask(app, http_scope(), b"{}")
    assert_unreachable(messages)
    reason = f"Connect call failed ('127.0.0.1', {port})"
    assert caplog.messages == [f"The model server at http://127.0.0.1:{port} cannot be reached: {reason}."]


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n\r\n"])
async def test_an_upstream_that_does_not_answer_in_http_is_a_502(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        messages = await ask(app, http_scope())
    assert_unreachable(messages)
    assert "the connection failed before a valid answer came" in caplog.text


@contextmanager
def full_backlog() -> Iterator[int]:
    """Yield the port of a listener that takes nobody in: the kernel drops further attempts unanswered."""
    with socket.socket() as listener, socket.socket() as first:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        first.connect(listener.getsockname())
        yield listener.getsockname()[1]


async def test_connecting_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    with full_backlog() as port:
        async with aclosing(ProxyApp(f"http://127.0.0.1:{port}", connect_timeout=0.05)) as app:
            messages = await ask(app, http_scope())
    assert_unreachable(messages)
    assert "no connection within 0.05 seconds" in caplog.text


async def test_the_lifespan_closes_the_connections_and_a_later_request_opens_new_ones() -> None:
    seen: list[bytes] = []
    async with raw_server(answering(OK, seen=seen)) as url:
        app = ProxyApp(url)
        life = Client(app, {"type": "lifespan"})
        async with asyncio.TaskGroup() as group:
            group.create_task(life.run())
            life.say("lifespan.startup")
            assert await life.hears.get() == {"type": "lifespan.startup.complete"}
            assert await ask(app, http_scope()) == OK_MESSAGES
            life.say("lifespan.shutdown")
            assert await life.hears.get() == {"type": "lifespan.shutdown.complete"}
        assert await ask(app, http_scope()) == OK_MESSAGES
        await app.aclose()
        await app.aclose()
    assert len(seen) == 2


async def test_an_unknown_scope_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="no ASGI scope of type 'mqtt'"):
        await ProxyApp("http://127.0.0.1:9")({"type": "mqtt"}, asyncio.Queue().get, asyncio.Queue().put)


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://{host}/v1/responses?a=1", "/v1/responses?a=1"),
        ("http://elsewhere.test/v1", "http://elsewhere.test/v1"),
        ("/v1/responses", "/v1/responses"),
    ],
)
async def test_a_redirect_of_the_upstream_to_itself_stays_on_this_side(location: str, told: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        host = request.split(b"Host: ")[1].split(b"\r\n")[0].decode()
        head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {location.format(host=host)}\r\n"
        writer.write(head.encode() + b"Content-Length: 0\r\n\r\n")

    async with raw_server(serve) as url, aclosing(ProxyApp(url)) as app:
        messages = await ask(app, http_scope(), b"{}")
    assert (b"location", told.encode()) in messages[0]["headers"]
