"""Pages of other origins before `imagecall serve`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPMessage

import pytest
from imagecall.middleware.embedded.scripted import scripted_app
from imagecall.middleware.serving import upstream_app
from serving import serve
from starlette.middleware.cors import CORSMiddleware
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

PAGE = "https://page.example"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(scripted_app()) as upstream:
        app, _ = upstream_app(upstream, {"backend": "scene", "cors_origins": PAGE})
        with serve(app) as url:
            yield f"{url}/v1/responses"


def _ask(url: str, method: str, body: bytes | None = None, **headers: str) -> tuple[int, HTTPMessage, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, body, named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_a_page_of_a_named_origin_may_ask_with_its_own_headers(url: str) -> None:
    wishes = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization"}
    status, headers, _ = _ask(url, "OPTIONS", Origin=PAGE, **wishes)
    assert status == 200
    assert headers.get_all("access-control-allow-origin") == [PAGE]
    assert "authorization" in headers["access-control-allow-headers"]


def test_a_page_of_another_origin_may_not(url: str) -> None:
    status, headers, _ = _ask(url, "OPTIONS", Origin="https://evil", Access_Control_Request_Method="POST")
    assert status == 400
    assert headers["access-control-allow-origin"] is None


@pytest.mark.parametrize("stream", [True, False])
def test_what_the_page_is_answered_it_may_read(url: str, stream: bool) -> None:
    asked = {"model": "m", "input": "Draw a cat", "stream": stream, "tools": [{"type": "image_generation"}]}
    status, headers, body = _ask(
        url, "POST", json.dumps(asked).encode(), Origin=PAGE, Content_Type="application/json"
    )
    assert status == 200
    assert headers.get_all("access-control-allow-origin") == [PAGE]
    assert headers["access-control-expose-headers"] == "retry-after, x-request-id, x-should-retry"
    assert b'"image_generation_call"' in body


def test_an_error_of_our_own_names_the_origin_once(url: str) -> None:
    asked = {"model": "m", "input": "x", "tools": [{"type": "image_generation", "size": 7}]}
    status, headers, _ = _ask(
        url, "POST", json.dumps(asked).encode(), Origin=PAGE, Content_Type="application/json"
    )
    assert status == 400
    assert headers.get_all("access-control-allow-origin") == [PAGE]


def test_a_page_from_outside_may_reach_a_server_on_its_users_own_machine(url: str) -> None:
    wishes = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Private_Network": "true"}
    status, headers, _ = _ask(url, "OPTIONS", Origin=PAGE, **wishes)
    assert (status, headers["access-control-allow-private-network"]) == (200, "true")


@pytest.mark.parametrize(("origin", "named"), [(PAGE, [PAGE]), ("https://evil", None)])
def test_what_the_model_server_allows_by_itself_does_not_count(origin: str, named: list[str] | None) -> None:
    generous = CORSMiddleware(scripted_app(), allow_origins=["*"], allow_credentials=True)
    with serve(generous) as upstream:
        app, _ = upstream_app(upstream, {"backend": "scene", "cors_origins": PAGE})
        with serve(app) as url:
            status, headers, _ = _ask(f"{url}/v1/models", "GET", Origin=origin)
    assert status == 200
    assert headers.get_all("access-control-allow-origin") == named
    assert headers["access-control-allow-credentials"] is None


def test_a_websocket_is_for_pages_of_named_origins_too(url: str) -> None:
    address = url.replace("http", "ws")
    with connect(address, origin=Origin(PAGE)), connect(address):
        pass
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin=Origin("https://evil"))
    assert refused.value.response.status_code == 403


def test_without_named_origins_a_preflight_is_the_model_servers_own() -> None:
    with serve(scripted_app()) as upstream:
        app, _ = upstream_app(upstream, {"backend": "scene"})
        with serve(app) as url:
            status, headers, _ = _ask(f"{url}/v1/responses", "OPTIONS", Origin=PAGE)
    assert status == 405
    assert headers["access-control-allow-origin"] is None
