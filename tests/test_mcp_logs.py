"""What the SDK logs of a server that holds a secret, and of one that repeats it."""

from __future__ import annotations

import logging
import sys
import traceback

import pytest
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.mcp_client.logs import without_secrets
from imagecall.middleware.backends.secret_values import Secrets
from mcp_backends import Front, http_backend, paint, refusal
from mcp_servers import official
from mcp_servers.shapes import DOT
from mcp_servers.studio import Studio
from serving import serve

KEY = "canary-0123456789abcdef"

LOUD = f"""
import json, sys
print("*** my key is {KEY} ***", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    error = {{"code": -32601, "message": "{KEY} is no good"}}
    print(json.dumps({{"jsonrpc": "2.0", "id": request.get("id"), "error": error}}), flush=True)
"""


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Give all that was logged, as a handler of any kind would see it, but by the servers themselves."""
    others = [record for record in caplog.records if not record.name.startswith(("uvicorn", "mcp.server"))]
    assert others
    shown = logging.Formatter()
    return "\n".join(f"{shown.format(record)} {record.exc_info} {vars(record)}" for record in others)


async def test_a_key_in_the_url_reaches_the_server_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = Front(official.http_app(Studio()))
    with serve(server) as url:
        async with MCPBackend(url=f"{url}/mcp?profile={KEY}") as backend:
            assert (await paint(backend, "a kite")).data == DOT
    assert set(server.queries) == {f"profile={KEY}".encode()}
    assert "HTTP Request: POST http://127.0.0.1" in caplog.text
    assert KEY not in logged(caplog)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (b"application/json", f"{{{KEY}"),
        (b"text/event-stream", f"event: {KEY}\ndata: x\n\ndata: {{{KEY}\n\n"),
        (f"text/{KEY}".encode(), KEY),
    ],
)
async def test_what_breaks_the_protocol_is_logged_without_secrets(
    content_type: bytes, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = Front(official.http_app(Studio()))
    server.instead = ({b"content-type": content_type}, body.encode())
    async with http_backend(server, api_key=KEY) as backend:
        error = await refusal(backend, "a kite")
    assert KEY not in "".join(traceback.format_exception(error))
    assert "mcp.client.streamable_http" in {record.name for record in caplog.records}
    assert "[secret]" in caplog.text
    assert KEY not in logged(caplog)


async def test_what_a_command_says_of_its_key_is_logged_without_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with MCPBackend(command=[sys.executable, "-c", LOUD], env={"FAL_KEY": KEY}) as backend:
        error = await refusal(backend, "a kite")
    assert error.message == "The MCP server cannot be used: [secret] is no good"
    assert KEY not in "".join(traceback.format_exception(error))
    assert "Failed to parse JSONRPC message from server" in caplog.text
    assert KEY not in logged(caplog)


def test_only_these_packages_are_listened_to_and_only_for_a_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    theirs, ours = logging.getLogger("httpx2"), logging.getLogger("imagecall")
    with without_secrets(Secrets([KEY])):
        theirs.info("POST %s", f"http://x/?key={KEY}")
        theirs.info("x" * 100_000)
        ours.info("%s", KEY)
    theirs.info("%s", KEY)
    assert caplog.messages == ["POST http://x/?key=[secret]", "x" * (64 << 10), KEY, KEY]
