"""Servers that are busy, at their limit, or not there: who is asked again, when, and how often."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from image_servers import OpenAI
from imagecall.middleware.backends.base import ImageError, ImageRequest
from images_api import Scripted, b64_json
from loopback import raw_server, read_request
from painters import png
from painting import NOW, Naps, failed_item, ignore, opened, painted, refused, respond
from starlette.responses import JSONResponse, Response
from waiting import Clock

PICTURE = b64_json(png("a kite"))
BUSY = Response(status_code=503)


def busy(status: int = 429, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error = {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    return JSONResponse({"error": error}, status, named)


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (busy(retry_after="0"), 0.0),
        (busy(retry_after="7"), 7.0),
        (busy(retry_after_ms="467"), 0.467),
        (busy(retry_after="Mon, 21 Sep 2026 14:14:20 GMT"), 60.0),
        (busy(x_ratelimit_reset_images="3s"), 3.0),
        (busy(503, retry_after="2"), 2.0),
    ],
)
async def test_a_busy_server_is_asked_again_when_it_says(answer: Response, wait: float) -> None:
    server, naps = Scripted(answer, PICTURE), Naps()
    assert (await painted(server, sleep=naps)).data == png("a kite")
    assert (len(server.asked), naps.seconds) == (2, [pytest.approx(wait)])


async def test_a_server_that_does_not_say_when_is_given_more_and_more_time() -> None:
    server, naps = Scripted(BUSY), Naps()
    error = await refused(server, sleep=naps, retries=5)
    assert (error.code, error.message) == (
        "image_backend_error",
        "The image server answered 503 (Service Unavailable).",
    )
    assert len(server.asked) == 6
    lowest = [0.5, 1.0, 2.0, 4.0, 8.0]
    assert all(low <= nap <= low + 0.5 for low, nap in zip(lowest, naps.seconds, strict=True))


@pytest.mark.parametrize(("retries", "asked"), [(0, 1), (1, 2), (3, 4)])
async def test_there_are_as_many_attempts_as_were_set(retries: int, asked: int) -> None:
    server = Scripted(busy(retry_after="0"))
    error = await refused(server, retries=retries)
    assert (error.code, len(server.asked)) == ("rate_limit_exceeded", asked)


async def test_a_wait_beyond_the_deadline_is_not_begun_and_the_reset_time_is_told() -> None:
    server, naps = Scripted(busy(retry_after="301")), Naps()
    error = await refused(server, sleep=naps)
    assert (len(server.asked), naps.seconds) == (1, [])
    assert error.message == "The image server answered 429 (Too Many Requests): slow down"
    reset = {"resets_at": NOW + 301, "resets_in_seconds": 301}
    assert error.details == {"limit": "rate_limit_exceeded", **reset}


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"error": {"code": "moderation_blocked", "message": "no"}}, 400),
        JSONResponse({"error": {"code": "usage_limit_reached", "message": "no"}}, 429, {"retry-after": "0"}),
        JSONResponse({"error": {"code": "insufficient_quota", "message": "no"}}, 429),
        JSONResponse({"error": {"code": "billing_hard_limit_reached", "message": "no"}}, 400),
        *(JSONResponse({"detail": "no"}, status) for status in (400, 401, 403, 404, 409, 413, 422, 500, 502)),
        Response(status_code=307, headers={"location": "/v1/images/elsewhere"}),
    ],
    ids=lambda answer: str(answer.status_code),
)
async def test_all_other_answers_are_final(answer: Response) -> None:
    server, naps = Scripted(answer), Naps()
    await refused(server, sleep=naps)
    assert (len(server.asked), naps.seconds) == (1, [])


async def test_no_redirect_is_followed() -> None:
    error = await refused(Scripted(Response(status_code=301, headers={"location": "http://h/v1"})))
    assert (error.code, error.message) == (
        "image_backend_redirect",
        "The image server answered 301, a redirect, and none is followed; its URL must be the final one.",
    )


async def test_a_connection_that_breaks_before_the_answer_is_made_again() -> None:
    requests: list[bytes] = []
    answer = PICTURE

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        requests.append(request)
        if len(requests) == 2:
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer.body)
            writer.write(head + bytes(answer.body))
            await reader.read()

    naps = Naps()
    async with raw_server(serve) as url, opened(url, sleep=naps) as backend:
        image = await backend.generate(ImageRequest("a kite"), ignore)
    assert (image.data, len(requests), len(naps.seconds)) == (png("a kite"), 2, 1)


async def test_a_server_that_is_not_there_is_tried_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    async with raw_server(_unused) as url:
        pass
    naps = Naps()
    async with opened(url, sleep=naps) as backend:
        with pytest.raises(ImageError) as caught:
            await backend.generate(ImageRequest("a kite"), ignore)
    assert (caught.value.code, caught.value.message) == (
        "image_backend_unreachable",
        "The image server cannot be reached.",
    )
    assert len(naps.seconds) == 2
    assert f"The image server at {url} cannot be reached: " in caplog.text


async def _unused(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Nobody comes here."""


async def test_a_server_that_takes_no_connection_in_time_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("imagecall.middleware.backends.images_api.server._CONNECT", 1e-9)
    naps = Naps()
    async with raw_server(_unused) as url, opened(url, sleep=naps) as backend:
        with pytest.raises(ImageError, match="cannot be reached"):
            await backend.generate(ImageRequest("a kite"), ignore)
    assert "no connection within 1e-09 seconds" in caplog.text
    assert len(naps.seconds) == 2


async def test_an_answer_that_is_no_http_is_final() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await reader.read()

    naps = Naps()
    async with raw_server(serve) as url, opened(url, sleep=naps) as backend:
        with pytest.raises(ImageError) as caught:
            await backend.generate(ImageRequest("a kite"), ignore)
    assert caught.value.message == "The image server's answer is no valid HTTP."
    assert naps.seconds == []


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "image_backend_cut"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\noops", "image_backend_error"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "image_too_large"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b" " * 1_300_000, "image_too_large"),
        (b"HTTP/1.1 400 No\r\nConnection: close\r\n\r\n" + b"x" * 300_000, "image_backend_refused"),
    ],
    ids=["cut", "cut error", "announced", "endless", "endless error"],
)
async def test_bodies_that_end_too_early_or_not_at_all_are_given_up(head: bytes, code: str) -> None:
    requests = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(head)

    async with raw_server(serve) as url, opened(url, max_bytes=100_000) as backend:
        with pytest.raises(ImageError) as caught:
            await backend.generate(ImageRequest("a kite"), ignore)
    assert (caught.value.code, len(requests)) == (code, 1)


async def test_an_error_whose_words_never_come_is_told_by_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imagecall.middleware.backends.images_api.server._ERROR_TIME", 0.01)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 100\r\n\r\n")
        await reader.read()

    async with raw_server(serve) as url, opened(url) as backend:
        with pytest.raises(ImageError) as caught:
            await backend.generate(ImageRequest("a kite"), ignore)
    assert (caught.value.code, caught.value.message) == (
        "image_backend_unauthorized",
        "The image server answered 401 (Unauthorized).",
    )


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    clock, asked = Clock(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        await reader.read()

    async def generate(backend: Any) -> ImageError:
        with pytest.raises(ImageError) as caught:
            await backend.generate(ImageRequest("a kite"), ignore)
        return caught.value

    async with raw_server(serve) as url, opened(url, timeout=60) as backend, asyncio.TaskGroup() as group:
        task = group.create_task(generate(backend))
        await asked.wait()
        await clock.forward(61)
        error = await task
    assert (error.code, error.message) == (
        "timeout",
        "The image server made no picture within the 60 seconds that backend_timeout allows.",
    )


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (JSONResponse({"error": "no paint"}, 400), "image_backend_refused"),
        (BUSY, "image_backend_error"),
        (busy(), "rate_limit_exceeded"),
        (Response(b"<html>", 502, media_type="text/html"), "image_backend_error"),
    ],
    ids=["400", "503", "429", "502"],
)
async def test_each_failure_fails_its_item_and_the_response_goes_on(
    answer: Response, code: str, stream: bool
) -> None:
    item = await failed_item(Scripted(answer), stream=stream)
    assert item["error"]["code"] == code


async def test_a_server_that_is_too_slow_fails_its_item() -> None:
    server = OpenAI()
    server.hold()
    item = await failed_item(server, timeout=0.1, hosted={"partial_images": 1})
    assert item["error"]["code"] == "timeout"
    allowed = "the 0.1 seconds that backend_timeout allows"
    assert item["error"]["message"] == f"The image server made no picture within {allowed}."


async def test_a_server_that_is_not_there_fails_its_item() -> None:
    item = await failed_item(Scripted(BUSY), url="http://127.0.0.1:1/v1")
    assert item["error"]["code"] == "image_backend_unreachable"


async def test_a_refusal_of_the_safety_system_keeps_its_details_in_the_item() -> None:
    details = {"categories": ["violence"], "moderation_stage": "input"}
    error = {
        "code": "moderation_blocked",
        "message": "prompt refused by the safety check",
        "param": None,
        "type": "image_generation_user_error",
        "moderation_details": details,
    }
    server = Scripted(JSONResponse({"error": error}, 400))
    item = await failed_item(server, hosted={"moderation": "low"})
    assert item["error"] == error
    assert [asked.fields["moderation"] for asked in server.asked] == ["low"]


async def test_a_limit_that_is_used_up_is_told_with_its_reset_time_in_the_item() -> None:
    error = {
        "type": "usage_limit_reached",
        "message": "No more",
        "resets_at": NOW + 60,
        "resets_in_seconds": 60,
    }
    server = Scripted(JSONResponse({"error": error}, 429))
    item = await failed_item(server)
    assert item["error"]["message"] == (
        "The image server's limit is used up (usage_limit_reached); "
        "it resets at 2026-09-21 14:14:20 UTC, in 1 min: No more"
    )
    assert len(server.asked) == 1


async def test_a_picture_that_comes_at_the_second_attempt_is_a_picture_like_any_other() -> None:
    response, _ = await respond(Scripted(busy(retry_after="0"), PICTURE))
    assert response["output"][0]["status"] == "completed"
