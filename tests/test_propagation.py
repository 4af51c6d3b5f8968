"""The trace goes on at the servers that are asked: the upstream of a proxy, the image server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asgi import ask, draw, lifespan, middleware, post
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.telemetry.propagation import _GETTER, add_trace_headers
from images_api import Asked, Scripted, b64_json
from loopback import answering, http_scope, raw_server
from loopback import ask as request
from model_server import KITE_TURNS, ModelServer
from observing import TRACE, TRACEPARENT, Observatory
from painters import Painter, png
from starlette.responses import JSONResponse, Response

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
BAGGAGE = (b"baggage", b"user=anna")


@pytest.fixture
def painting() -> Iterator[Scripted]:
    server = Scripted(b64_json(png("a kite")))
    with server.served():
        yield server


async def drawn(server: Scripted, observatory: Observatory) -> None:
    inner = ModelServer(*KITE_TURNS)
    app = middleware(inner, OpenAIImagesBackend(url=server.url), telemetry=observatory.telemetry)
    async with lifespan(app):
        await ask(app, draw(), post(headers=[TRACEPARENT, BAGGAGE]), owners=1)
    assert [asked.headers[b"baggage"] for asked in inner.asked] == [b"user=anna"] * 2


async def test_the_image_server_is_asked_in_the_context_of_the_pictures_span(painting: Scripted) -> None:
    observatory = Observatory()
    await drawn(painting, observatory)
    [asked] = painting.asked
    span = observatory.span("execute_tool image_generation")
    assert span.context is not None
    assert asked.headers["traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01"


async def test_baggage_stays_between_the_client_and_the_model_server(painting: Scripted) -> None:
    await drawn(painting, Observatory())
    [asked] = painting.asked
    assert "baggage" not in asked.headers


async def test_a_picture_is_fetched_from_elsewhere_without_any_trace() -> None:
    def answer(asked: Asked) -> Response:
        if asked.method == "GET":
            return Response(png("a kite"), media_type="image/png")
        return JSONResponse({"data": [{"url": f"{server.url}/kite.png"}]})

    server = Scripted(answer)
    with server.served():
        await drawn(server, Observatory())
    made, fetched = server.asked
    assert "traceparent" in made.headers
    assert "traceparent" not in fetched.headers


async def test_a_request_that_only_passes_is_asked_in_the_context_of_the_servers_span() -> None:
    seen: list[bytes] = []
    observatory = Observatory()
    async with raw_server(answering(PLAIN, PLAIN, seen=seen)) as url:
        proxy = ProxyApp(url)
        scope = http_scope("/v1/models", method="GET", headers=[TRACEPARENT])
        with observatory.tracer.start_as_current_span("GET /v1/models") as span:
            await request(middleware(proxy, Painter()), scope)
        await request(middleware(proxy, Painter()), scope)
        await proxy.aclose()
    own = span.get_span_context()
    inside = f"00-{own.trace_id:032x}-{own.span_id:016x}-".encode()
    for one, expected in zip(seen, (inside, TRACEPARENT[1]), strict=True):
        assert one.lower().count(b"traceparent:") == 1
        assert b"traceparent: " + expected in one


def test_without_a_trace_headers_stay_as_they_are() -> None:
    headers = [(b"accept", b"*/*"), (b"TraceParent", b"x")]
    assert add_trace_headers(headers) == headers


def test_a_propagator_reads_a_requests_headers_by_any_spelling() -> None:
    headers = [(b"TraceState", b"a=1"), (b"tracestate", b"b=2")]
    assert _GETTER.get(headers, "TRACESTATE") == ["a=1", "b=2"]
    assert _GETTER.get(headers, "traceparent") is None
    assert _GETTER.keys(headers) == ["TraceState", "tracestate"]
