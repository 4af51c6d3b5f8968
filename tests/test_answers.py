"""What is answered before anybody else is asked."""

from __future__ import annotations

from typing import Any

import pytest
from asgi import ask, draw, middleware, post
from model_server import HOSTED, JSON, ModelServer
from painters import Painter

BAD = draw(tools=[{"type": "function", "name": "f"}, {**HOSTED, "partial_images": 9}])


def envelope(message: str, param: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


@pytest.mark.parametrize(
    ("request_body", "message", "param"),
    [
        (
            BAD,
            "Invalid value for 'tools[1].partial_images': input should be less than or equal to 3.",
            "tools[1].partial_images",
        ),
        (
            draw(background=True, store=False),
            "A response in the background must be stored; leave out 'store' or 'background'.",
            "store",
        ),
    ],
    ids=["declaration", "background"],
)
async def test_a_wrong_request_is_answered_before_anybody_is_asked(
    request_body: dict[str, Any], message: str, param: str
) -> None:
    server = ModelServer()
    client = await ask(middleware(server, Painter()), request_body)
    assert server.asked == []
    assert client.status == 400
    assert client.json == envelope(message, param)
    assert client.headers == [
        (b"x-request-id", b"req_1"),
        (b"x-should-retry", b"false"),
        *JSON,
        (b"content-length", str(len(client.body)).encode()),
    ]
    assert len(client.messages) == 2


@pytest.mark.parametrize(
    ("origins", "origin", "allowed"),
    [
        ("https://a.example, https://b.example", b"https://b.example", True),
        ("*", b"null", True),
        ("https://a.example", b"https://evil.example", False),
        ("", b"https://a.example", False),
        ("*", None, False),
    ],
)
async def test_pages_of_allowed_origins_may_read_our_own_errors(
    origins: str, origin: bytes | None, allowed: bool
) -> None:
    scope = post(headers=[] if origin is None else [(b"origin", origin)])
    client = await ask(middleware(ModelServer(), Painter(), cors_origins=origins), BAD, scope)
    assert client.status == 400
    told = [pair for pair in client.headers if pair[0] in (b"access-control-allow-origin", b"vary")]
    assert told == ([(b"access-control-allow-origin", origin), (b"vary", b"Origin")] if allowed else [])
