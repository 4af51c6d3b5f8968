"""A model server in trouble, on real sockets: whatever it does, the client gets one end it understands."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from dataclasses import dataclass

import pytest
from faulty import Front, faulty_world, mounted, served, tried
from faulty_server import CALL, TEXT, Deed, Link, answering_json, closes, cut_at, good, resets, says, stalls
from loopback import STREAM, piece
from model_server import KITE_TURNS, whole
from painters import Painter

NONE = "502 server_error"
UNREACHABLE = "502 upstream_unreachable"
MOMENT = 0.2
"""Seconds of silence after which a model server is given up in these tests."""


# -- deeds -----------------------------------------------------------------------------------------


def head(kind: bytes = b"text/event-stream", *fields: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, b"Content-Type: " + kind, *fields, b"", b""])


def sized(length: int, body: bytes, *fields: bytes) -> bytes:
    return head(b"text/event-stream", b"Content-Length: %d" % length, *fields) + body


def packed(body: bytes, name: bytes, kind: bytes = b"text/event-stream") -> Deed:
    return says(head(kind, b"Content-Encoding: " + name, b"Content-Length: %d" % len(body)) + body)


async def floods(link: Link) -> None:
    """Send a line of a hundred megabytes."""
    await link.say(STREAM, piece(cut_at(b"response.in_progress\n")))
    block = piece(b"x" * (1 << 20))
    await link.say(*[block] * 100)


CREATED = cut_at(b"\n\n")
AMID_FRAME = CREATED + b'event: response.in_progress\ndata: {"type":"resp'
AMID_ARGUMENTS = cut_at(b"response.function_call_arguments.delta\n") + b'data: {"type":"response.func'
AMID_TEXT = cut_at(b"response.output_text.delta\n", TEXT) + b"data: {"
WHOLE = piece(CALL) + b"0\r\n\r\n"
ANSWER = whole(KITE_TURNS[0])
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
OPEN = STREAM + piece(CREATED)
CALLING = b"image_generation_call.in_progress"
PICTURE = b"image_generation_call.completed"


@dataclass(frozen=True, slots=True)
class Fault:
    """What a model server does, and what the client gets.

    Attributes:
        name: of the fault.
        deeds: with the first requests.
        end: how the stream ends; see `RawClient.verdict`.
        refuses: whether nobody listens at first.
    """

    name: str
    deeds: tuple[Deed, ...]
    end: str
    refuses: bool = False


FAULTS = [
    Fault("nobody listens", (), UNREACHABLE, refuses=True),
    Fault("closes before the head", (closes(),), UNREACHABLE),
    Fault("resets before the head", (resets(),), UNREACHABLE),
    Fault("closes amid the head", (closes(STREAM[:30]),), UNREACHABLE),
    Fault("resets amid the head", (resets(STREAM[:30]),), UNREACHABLE),
    Fault("speaks no HTTP", (closes(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"),), UNREACHABLE),
    Fault("sends a head of a megabyte", (closes(STREAM[:-2] + b"X: " + b"x" * (1 << 20)),), UNREACHABLE),
    Fault("closes behind the head", (closes(STREAM),), NONE),
    Fault("resets behind the head", (resets(STREAM),), NONE),
    Fault("ends an empty stream", (says(STREAM + b"0\r\n\r\n"),), NONE),
    Fault("has no content", (says(b"HTTP/1.1 204 No Content\r\n\r\n"),), NONE),
    Fault("closes amid a frame", (closes(STREAM, piece(AMID_FRAME)),), "failed 0"),
    Fault("resets amid a frame", (resets(STREAM, piece(AMID_FRAME), heard=b"response.created"),), "failed 0"),
    Fault("ends amid a frame", (says(STREAM, piece(AMID_FRAME), b"0\r\n\r\n"),), "failed 0"),
    Fault("closes amid arguments", (closes(STREAM, piece(AMID_ARGUMENTS)),), "failed 0"),
    Fault("resets amid arguments", (resets(STREAM, piece(AMID_ARGUMENTS), heard=CALLING),), "failed 0"),
    Fault("resets before its terminal event", (resets(STREAM, piece(CALL[:-300]), heard=CALLING),), "failed"),
    Fault("resets before its body's end", (resets(STREAM, piece(CALL), heard=PICTURE),), "completed 1"),
    Fault("closes before its body's end", (closes(STREAM, piece(CALL)),), "completed 1"),
    Fault("stalls before the head", (stalls(),), NONE),
    Fault("stalls amid the head", (stalls(STREAM[:30]),), NONE),
    Fault("stalls behind the head", (stalls(STREAM),), NONE),
    Fault("stalls amid a frame", (stalls(STREAM, piece(AMID_FRAME)),), "failed 0"),
    Fault("stalls amid arguments", (stalls(STREAM, piece(AMID_ARGUMENTS)),), "failed 0"),
    Fault("stalls amid a chunk", (stalls(STREAM, b"ffff\r\n" + CREATED),), "failed 0"),
    Fault("never ends its body", (stalls(STREAM, piece(CALL)),), "completed 1"),
    Fault("breaks off turn two before its head", (good, resets(), good), "completed 1"),
    Fault("refuses turn two for good", (good, closes(), closes()), "failed 1"),
    Fault("breaks off turn two", (good, resets(STREAM, piece(AMID_TEXT), heard=PICTURE)), "failed 1"),
    Fault("stalls in turn two", (good, stalls(STREAM, piece(AMID_TEXT))), "failed 1"),
    Fault("stalls before turn two", (good, stalls()), "failed 1"),
    Fault("answers turn two with HTML", (good, answering_json(b"<html>no</html>")), "failed 1"),
    Fault("answers with a JSON error", (answering_json(b'{"error":{"message":"no"}}'),), NONE),
    Fault("answers with a response in JSON", (answering_json(ANSWER),), "completed 1"),
    Fault("answers with HTML", (says(head(b"text/html", b"Content-Length: 9") + b"<p>no</p>"),), NONE),
    Fault("calls HTML a stream", (says(sized(9, b"<p>no</p>")),), NONE),
    Fault("compresses a stream with gzip", (packed(gzip.compress(CALL), b"gzip"),), NONE),
    Fault("compresses a stream with deflate", (packed(zlib.compress(CALL), b"deflate"),), NONE),
    Fault("calls a stream br", (packed(b"\x8b\x02\x80" + bytes(range(256)), b"br"),), NONE),
    Fault("compresses JSON", (packed(gzip.compress(ANSWER), b"gzip", b"application/json"),), NONE),
    Fault("calls a chunk's size zz", (closes(OPEN, then=b"zz\r\n"),), "failed 0"),
    Fault("makes a chunk too long", (closes(OPEN, then=b"5\r\n" + CREATED + b"\r\n"),), "failed 0"),
    Fault("leaves a chunk's end out", (closes(OPEN, then=piece(CREATED)[:-2] + piece(CREATED)),), "failed 0"),
    Fault("counts a chunk beyond 64 bits", (closes(OPEN, then=b"f" * 17 + b"\r\n" + CREATED),), "failed 0"),
    Fault("begins with a chunk that is none", (closes(STREAM + b"zz\r\n"),), UNREACHABLE),
    Fault("sends more than its length", (closes(sized(len(CREATED), CREATED), then=CALL),), "failed 0"),
    Fault("sends less than its length", (closes(sized(len(CALL) + 9, CALL[:-9])),), "failed"),
    Fault("states a length of minus one", (closes(sized(-1, CALL)),), UNREACHABLE),
    Fault("states two lengths", (closes(sized(len(CALL), CALL, b"Content-Length: 5")),), UNREACHABLE),
    Fault("sends a second answer unasked", (says(STREAM, WHOLE, STREAM, piece(TEXT)),), "completed 1"),
    Fault("continues and then answers", (says(CONTINUE, STREAM, WHOLE),), "completed 1"),
    Fault("sends a hundred megabytes without a line", (floods,), "failed 0"),
]


@pytest.mark.parametrize("front", [served, mounted])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_fault_of_the_model_server_has_one_end(front: Front, fault: Fault) -> None:
    painter = Painter()
    quick = {"upstream_idle": MOMENT} if "stalls" in fault.name or "never" in fault.name else {}
    listening = not fault.refuses
    async with faulty_world(
        front, painter, *fault.deeds, listening=listening, max_event=1 << 20, **quick
    ) as world:
        client = await world.ask()
        verdict = client.verdict()
        assert verdict.startswith(fault.end), client.raw
        if fault.refuses:
            await world.upstream.listen()
        await world.is_well()
    tried("the model server")


async def test_an_endless_line_fills_no_memory() -> None:
    async with faulty_world(served, Painter(), floods, max_event=1 << 20) as world:
        tracemalloc.start()
        try:
            client = await world.ask()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert client.verdict() == "failed 0"
        assert most < 16 << 20


@pytest.mark.parametrize("front", [served, mounted])
async def test_a_refusal_that_breaks_off_reaches_the_client_as_it_is_and_unended(front: Front) -> None:
    refusal = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\n" + b"half a body"
    painter = Painter()
    async with faulty_world(front, painter, closes(refusal)) as world:
        client = await world.ask()
        assert (client.status, client.body) == (500, b"half a body")
        assert not client.whole
        assert painter.asked == []
        await world.is_well()
    tried("the model server")


async def test_whoever_runs_it_is_told_of_an_answer_that_is_compressed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with faulty_world(served, Painter(), packed(gzip.compress(CALL), b"gzip")) as world:
        await world.ask()
    assert "the model server's answer is compressed, though it was asked not to compress" in caplog.text
