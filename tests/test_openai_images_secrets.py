"""Keys reach the server and nobody else: no log, no error, no response."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

import pytest
from imagecall.middleware.backends.base import ImageError, ImageRequest
from images_api import Asked, Scripted
from loopback import raw_server, read_request
from painters import png
from painting import ignore, opened, respond
from starlette.responses import JSONResponse, Response

KEY = "canary-key-5f2e81"
HEADER = "canary-header-77a0"
PLAIN = "canary-plain-c3d4"
QUERY = "canary-query-19b6"
FIELD = "canary-field-a1b2"
SECRETS = (KEY, HEADER, PLAIN, QUERY, FIELD)

SETTINGS: dict[str, Any] = {
    "api_key": KEY,
    "headers": {"X-Api-Token": HEADER, "X-Project": PLAIN},
    "body": {"user_token": FIELD},
}


class Telltale(Scripted):
    """A server that says everything it was told."""

    @property
    def url(self) -> str:
        return f"{super().url}?sig={QUERY}"


def all_of(asked: Asked) -> str:
    return f"{asked.headers} {asked.query} {asked.fields}"


def shouting(asked: Asked) -> Response:
    error = {"message": all_of(asked), "code": KEY, "type": HEADER, "param": QUERY}
    return JSONResponse({"error": error}, 400)


def blocking(asked: Asked) -> Response:
    details = {"categories": [all_of(asked), KEY], HEADER: QUERY}
    error = {"message": f"no {KEY[:10]}…", "code": "moderation_blocked", "moderation_details": details}
    return JSONResponse({"error": error}, 400)


ANSWERS = {
    "an error": shouting,
    "a refusal": blocking,
    "a busy server": lambda asked: Response(all_of(asked), 503, {"retry-after": "0"}),
    "a used up limit": lambda asked: JSONResponse({"error": all_of(asked), "limit": KEY}, 429),
    "no picture": lambda asked: JSONResponse({"detail": all_of(asked)}),
    "an error event": lambda asked: Response(
        b"event: error\ndata: " + all_of(asked).encode() + b"\n\n", media_type="text/event-stream"
    ),
    "a URL": lambda asked: JSONResponse({"data": [{"url": f"http://127.0.0.1:1/{KEY}?{asked.query}"}]}),
    "a redirect": lambda asked: Response(status_code=302, headers={"location": f"/{KEY}"}),
    "a picture": lambda asked: Response(png("a kite"), media_type="image/png"),
    "nothing": lambda asked: Response(b""),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_no_secret_comes_out_anywhere_though_the_server_repeats_it(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = Telltale(answer)
    response, model = await respond(server, **SETTINGS)
    assert all(secret in all_of(server.asked[0]) for secret in SECRETS)
    told = f"{response} {[asked.json for asked in model.asked]}"
    own = [record for record in caplog.records if not record.name.startswith("uvicorn")]  # not the stub's
    logged = "".join(f"{record.getMessage()} {vars(record)}" for record in own)
    for secret in SECRETS:
        assert secret not in told
        assert secret not in logged
        assert secret[:12] not in told


async def test_a_server_that_speaks_no_http_gets_the_keys_into_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await read_request(reader))
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async with raw_server(serve) as url, opened(f"{url}/v1?sig={QUERY}", **SETTINGS) as backend:
        with pytest.raises(ImageError) as caught:
            await backend.generate(ImageRequest("a kite"), ignore)
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    for secret in SECRETS:
        assert secret.encode() in asked[0]
        assert secret not in told
