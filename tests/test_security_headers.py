"""Whose headers go where: the client's to the model server alone, to each server its own key."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
import uvicorn
from asgi import Client, ask, draw, lifespan, middleware, post
from fetching import answer as file_answer
from fetching import site
from image_servers import OpenAI
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import ImageRequest
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from imagecall.middleware.proxy import ProxyApp
from images_api import KEY
from limits import EDIT, fetching_from_here
from loopback import raw_server, read_request
from mcp_backends import Front, http_backend
from mcp_servers import official
from mcp_servers.studio import Studio
from model_server import KITE_TURNS, SSE, Answer, ModelServer, calling, saying
from painters import Painter, png
from painting import ignore
from serving import serve
from waiting import no_hanging

CANARIES: dict[bytes, bytes] = {
    b"authorization": b"Bearer canary-client-key",
    b"cookie": b"session=canary-cookie",
    b"api-key": b"canary-azure-key",
    b"x-custom": b"canary-custom",
    b"proxy-authorization": b"Basic canary-proxy",
    b"x-forwarded-for": b"203.0.113.99",
    b"openai-organization": b"canary-org",
}
CLIENT = post(headers=[*CANARIES.items()])


def holds_a_canary(said: str) -> bool:
    return "canary-c" in said or any(value.decode().split()[-1] in said for value in CANARIES.values())


async def test_no_header_of_the_client_goes_to_an_images_api_and_no_key_of_it_to_the_model_server() -> None:
    images, model = OpenAI(), ModelServer(*KITE_TURNS)
    with images.served() as url:
        app = middleware(model, OpenAIImagesBackend(url, **images.config))
        async with lifespan(app):
            client = await ask(app, draw(), CLIENT, owners=1)
    assert b"image_generation_call.completed" in client.body
    [asked] = images.asked
    assert not holds_a_canary(f"{asked.headers} {asked.query} {asked.fields}")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    for turn in model.asked:
        assert {name: turn.headers[name] for name in CANARIES} == CANARIES
        assert KEY not in f"{turn.scope} {turn.body!r}"
    assert KEY not in repr(client.messages)


async def test_no_header_of_the_client_goes_to_an_mcp_server() -> None:
    front = Front(official.http_app(Studio()), key="canary-mcp")
    with serve(front) as url:
        app = middleware(ModelServer(*KITE_TURNS), MCPBackend(url=f"{url}/mcp", api_key="canary-mcp"))
        client = Client(app, draw(), CLIENT)  # without `ask`: the session has tasks of its own
        async with lifespan(app):
            await client.run()
    assert b"image_generation_call.completed" in client.body
    assert front.headers
    assert not holds_a_canary(f"{front.headers} {front.bodies} {front.queries}")
    assert {headers[b"authorization"] for headers in front.headers} == {b"Bearer canary-mcp"}
    assert b"canary-mcp" not in repr(client.messages).encode()


async def test_no_header_of_the_client_goes_where_a_picture_is_fetched_from() -> None:
    async with site(file_answer(png("sent"))) as (host, seen):
        look = [{"role": "user", "content": [{"type": "input_image", "image_url": f"http://{host}/"}]}]
        with fetching_from_here():
            app = middleware(
                ModelServer(calling("", arguments=EDIT), saying("Done.")),
                Painter(),
                fetch_hosts="pictures.example",
            )
        client = await ask(app, draw(input=look), CLIENT)
    assert b"image_generation_call.completed" in client.body
    assert len(seen) == 1
    assert not holds_a_canary(seen[0].decode())


@pytest.mark.parametrize("kind", ["images", "mcp"])
async def test_neither_proxies_nor_passwords_of_the_environment_are_used(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("default login canary-login password canary-netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if kind == "images":
        images = OpenAI()
        with images.served() as url:
            async with OpenAIImagesBackend(url, **images.config) as backend:
                await backend.generate(ImageRequest("a kite"), ignore)
        sent = f"{images.asked[0].headers}"
    else:
        front = Front(official.http_app(Studio()))
        async with http_backend(front) as session:
            await session.generate(ImageRequest("a kite"), ignore)
        sent = f"{front.headers}"
    assert "Basic" not in sent


async def test_what_describes_the_old_body_is_gone_from_a_request_that_was_rewritten() -> None:
    model = ModelServer(*KITE_TURNS)
    stale = [
        (b"Content-Length", b"3"),
        (b"content-length", b"4"),
        (b"transfer-encoding", b"chunked"),
        (b"Content-MD5", b"x"),
        (b"content-digest", b"sha-256=:x:"),
        (b"repr-digest", b"sha-256=:x:"),
        (b"digest", b"SHA-256=x"),
        (b"trailer", b"x-end"),
        (b"Accept-Encoding", b"gzip"),
    ]
    await ask(middleware(model, Painter()), draw(), post(headers=[*stale, (b"x-kept", b"1")]))
    assert len(model.asked) == 2
    for turn in model.asked:
        described = {name.lower() for name, _ in stale}
        about = [(name, value) for name, value in turn.scope["headers"] if name.lower() in described]
        assert about == [
            (b"content-length", str(len(turn.body)).encode()),
            (b"accept-encoding", b"identity"),
        ]
        assert turn.headers[b"x-kept"] == b"1"


@pytest.mark.parametrize("stream", [True, False])
async def test_what_describes_the_old_body_is_gone_from_an_answer_that_was_rewritten(stream: bool) -> None:
    stale = [(b"Content-Digest", b"x"), (b"content-md5", b"x"), (b"trailer", b"x"), (b"etag", b"x")]
    stale += [(b"content-length", b"3"), (b"transfer-encoding", b"chunked"), (b"digest", b"x")]
    model = ModelServer(Answer(KITE_TURNS[0], headers=[*SSE, *stale, (b"x-kept", b"1")]), KITE_TURNS[1])
    client = await ask(middleware(model, Painter()), draw(stream=stream))
    names = [name for name, _ in client.headers]
    assert b"x-kept" in names
    assert {name.lower() for name, _ in stale} & {*names} <= ({b"content-length"} if not stream else set())
    assert dict(client.headers).get(b"content-length", b"") == (b"" if stream else b"%d" % len(client.body))


# -- raw bytes on real sockets ---------------------------------------------------------------------

DRAW = json.dumps(draw(stream=False)).encode()
PLAIN = b'{"model": "m", "input": "Hi."}'
SMUGGLED = b"POST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
ANSWER = b"HTTP/1.1 418 I'm a teapot\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def standing_before(upstream: str, kind: Literal["h11", "httptools"]) -> AsyncIterator[tuple[str, int]]:
    """Serve the middleware before a forwarding application, with one of uvicorn's two parsers."""
    proxy = ProxyApp(upstream)
    config = uvicorn.Config(
        ImageGenerationMiddleware(proxy, Painter()), http=kind, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with aclosing(proxy), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            yield listener.getsockname()
            server.should_exit = True


async def sent_through(kind: Literal["h11", "httptools"], raw: bytes) -> tuple[bytes, list[bytes]]:
    """Send raw bytes; give all that comes back, and the requests that the upstream read, each whole."""
    seen: list[bytes] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):  # its client was cut off amid its body: none to be read
            while request := await read_request(reader):
                seen.append(request)
                writer.write(ANSWER)

    with no_hanging() as deadline:
        async with deadline, raw_server(upstream) as url, standing_before(url, kind) as (host, port):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(raw)
            answer = await reader.read()
            writer.close()
    return answer, seen


def request(*fields: bytes, body: bytes = b"", close: bool = True) -> bytes:
    lines = [b"POST /v1/responses HTTP/1.1", b"Host: a", b"Content-Type: application/json", *fields]
    lines += [b"Connection: close"] if close else []
    return b"\r\n".join([*lines, b"", body])


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def tricks(body: bytes) -> dict[str, bytes]:
    size = b"Content-Length: %d" % len(body)
    both = chunked(body)
    return {
        "a length and chunks": request(
            b"Content-Length: 4", b"Transfer-Encoding: chunked", body=both + SMUGGLED
        ),
        "chunks and a length": request(
            b"Transfer-Encoding: chunked", b"Content-Length: 4", body=both + SMUGGLED
        ),
        "two lengths": request(size, b"Content-Length: 0", body=body + SMUGGLED),
        "two lengths, the shorter first": request(b"Content-Length: 0", size, body=body + SMUGGLED),
        "a list of lengths": request(b"Content-Length: 0, %d" % len(body), body=body + SMUGGLED),
        "a length with a sign": request(b"Content-Length: +%d" % len(body), body=body + SMUGGLED),
        "a folded length": request(b"Content-Length:\r\n %d" % len(body), body=body + SMUGGLED),
        "a folded header": request(size, b"X-Fold: a\r\n Content-Length: 0", body=body),
        "a space before the colon": request(b"Content-Length : %d" % len(body), body=body + SMUGGLED),
        "another coding": request(b"Transfer-Encoding: xchunked", size, body=body + SMUGGLED),
        "two codings": request(b"Transfer-Encoding: chunked, identity", body=both + SMUGGLED),
        "a coding in disguise": request(b"Transfer-Encoding: \x0bchunked", size, body=body + SMUGGLED),
        "a CR in a value": request(size, b"X-A: b\rContent-Length: 0", body=body),
        "a LF in a value": request(size, b"X-A: b\nX-Smuggled: 1", body=body),
        "a NUL in a value": request(size, b"X-A: b\0c", body=body),
        "a length beyond all": request(b"Content-Length: " + b"9" * 5000, body=body),
        "an odd case": request(b"cOnTeNt-LeNgTh: %d" % len(body), body=body),
        "a length that Connection names": request(
            size, b"Connection: content-length, close", body=body, close=False
        ),
        "a chunk's extension": request(
            b"Transfer-Encoding: chunked", body=b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        ),
        "a trailer": request(
            b"Transfer-Encoding: chunked",
            body=b"%x\r\n%b\r\n0\r\nContent-Length: 9\r\n\r\n" % (len(body), body),
        ),
    }


@pytest.mark.parametrize("kind", ["h11", "httptools"])
@pytest.mark.parametrize("ours", [True, False], ids=["rewritten", "passed on"])
@pytest.mark.parametrize("trick", tricks(b""))
async def test_no_trick_of_framing_gets_past_the_server_in_front(trick: str, ours: bool, kind: Any) -> None:
    """Either the server in front refuses it, or the model server gets one plain request, framed once."""
    body = DRAW if ours else PLAIN
    answer, seen = await sent_through(kind, tricks(body)[trick])
    status = int(answer.split(b" ", 2)[1])
    assert b"/smuggled" not in b"".join(seen)
    if not seen:
        assert 400 <= status < 500
        return
    [asked] = seen
    head, _, rest = asked.partition(b"\r\n\r\n")
    fields = [line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert fields.count(b"content-length") + fields.count(b"transfer-encoding") == 1
    assert len(fields) == len({*fields})
    assert not any(field in fields for field in (b"connection", b"trailer"))
    assert all(field.strip() == field and field for field in fields)
    assert json.loads(rest if b"content-length" in fields else rest.split(b"\r\n")[1])["model"]
    assert status == 418


@pytest.mark.parametrize("kind", ["h11", "httptools"])
async def test_two_requests_on_one_connection_stay_two(kind: Any) -> None:
    size = b"Content-Length: %d" % len(PLAIN)
    first, second = request(size, body=PLAIN, close=False), request(size, body=PLAIN)
    answer, seen = await sent_through(kind, first + second)
    assert answer.count(b"HTTP/1.1 418") == 2
    assert len(seen) == 2
    assert all(one.endswith(b"\r\n\r\n" + PLAIN) for one in seen)
