"""Server-sent events on bytes: the grammar, the cuts, the limit, the cost."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, SupportsIndex

import pytest
from driving import bytewise
from hypothesis import given
from hypothesis import strategies as st
from imagecall.events.errors import RemoteProtocolError
from imagecall.events.sse import DONE, KEEPALIVE, ServerSentEvent, SSEDecoder, encode, payload_of

BOM = b"\xef\xbb\xbf"
FRAME = b'event: ping\ndata: {"n":1}\n\n'


def event(data: bytes, name: bytes | None = None, raw: bytes | None = None) -> ServerSentEvent:
    return ServerSentEvent(name, data, raw)


def canonical(name: bytes, data: bytes) -> ServerSentEvent:
    return ServerSentEvent(name, data, b"event: " + name + b"\ndata: " + data + b"\n\n")


PING = canonical(b"ping", b'{"n":1}')

STREAMS: dict[str, tuple[bytes, list[ServerSentEvent]]] = {
    "canonical frames": (FRAME + FRAME, [PING, PING]),
    "CRLF": (b"event: a\r\ndata: b\r\n\r\n", [event(b"b", b"a")]),
    "lone CR": (b"event: a\rdata: b\r\rdata: c\r\r", [event(b"b", b"a"), event(b"c")]),
    "line ends of all kinds": (b"event: a\rdata: b\ndata: c\r\n\r\n\n", [event(b"b\nc", b"a")]),
    "an empty line with CRLF": (b"event: a\ndata: b\n\r\n" + FRAME, [event(b"b", b"a"), PING]),
    "LF between CR frames": (b"data: a\r\r" + FRAME + b"data: b\r\n\r\n", [event(b"a"), PING, event(b"b")]),
    "BOM": (BOM + FRAME, [PING]),
    "BOM only once": (BOM + BOM + b"data: a\n\n", []),
    "BOM inside": (FRAME + BOM + b"data: a\n\n", [PING]),
    "first bytes of a BOM": (BOM[:2] + b"\ndata: a\n\n", [event(b"a")]),
    "comments between data lines": (b"data: a\n: hush\ndata: b\n:\n\n", [event(b"a\nb")]),
    "a comment between name and data": (b"event: a\n: hush\ndata: b\n\n" + FRAME, [event(b"b", b"a"), PING]),
    "a comment before a frame": (b": hush\n" + FRAME, [event(b'{"n":1}', b"ping")]),
    "a comment of its own": (KEEPALIVE + FRAME, [PING]),
    "data of many lines": (b"data: {\ndata:\ndata: }\n\n", [event(b"{\n\n}")]),
    "a named frame of many lines": (b"event: a\ndata: {\ndata: }\n\n", [event(b"{\n}", b"a")]),
    "no name": (b"data: a\n\n" + FRAME, [event(b"a"), PING]),
    "no space behind the colon": (b"event:a\ndata:b\n\n", [event(b"b", b"a")]),
    "two spaces": (b"event:  a\ndata:  b\n\n", [canonical(b" a", b" b")]),
    "data without a colon": (b"data\n\ndata\ndata\n\n", [event(b""), event(b"\n")]),
    "an empty name": (b"event: \ndata: a\n\nevent\ndata: b\n\n", [canonical(b"", b"a"), event(b"b", b"")]),
    "the last name counts": (b"event: a\nevent: b\ndata: c\n\n", [event(b"c", b"b")]),
    "the name behind the data": (b"data: c\nevent: b\n\n", [event(b"c", b"b")]),
    "id and retry": (b"id: 7\nevent: a\ndata: b\nretry: 10\n\n" + FRAME, [event(b"b", b"a"), PING]),
    "unknown and odd fields": (b"Data: a\ndata : b\nnonsense\nevent: a\n\n", []),
    "a name without data": (b"event: a\n\ndata: b\n\n", [event(b"b")]),
    "UTF-8": ("data: \u00e9\u2603\U0001f600\n\n".encode(), [event("\u00e9\u2603\U0001f600".encode())]),
    "other line separators": (
        "event: a\ndata: 1\u20282\x853\x0b4\x0c5\x1c6\n\n".encode(),
        [canonical(b"a", "1\u20282\x853\x0b4\x0c5\x1c6".encode())],
    ),
    "no empty line at the end": (FRAME + b"event: a\ndata: b\n", [PING, canonical(b"a", b"b")]),
    "no line end at the end": (FRAME + b"event: a\ndata: b", [PING, canonical(b"a", b"b")]),
    "CR at the end": (b"data: b\r", [event(b"b")]),
    "only a name at the end": (FRAME + b"event: a\n", [PING]),
    "half a field at the end": (FRAME + b"eve", [PING]),
    "only half a BOM": (BOM[:2], []),
    "nothing": (b"", []),
    "empty lines": (b"\n\r\n\r\n\n" + FRAME + b"\n\n\n" + FRAME, [PING, PING]),
    "the sentinel": (DONE, [event(b"[DONE]")]),
}


def decode(chunks: Iterable[bytes], **limits: int) -> list[ServerSentEvent]:
    decoder = SSEDecoder(**limits)
    events = [one for chunk in chunks for one in decoder.feed(chunk)]
    return events + decoder.close()


def verdict(chunks: Iterable[bytes], max_event: int) -> tuple[list[ServerSentEvent], bool]:
    """Decode as far as it goes; tell the events, and whether the decoder gave up."""
    decoder = SSEDecoder(max_event=max_event)
    events: list[ServerSentEvent] = []
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        events += decoder.close()
    except RemoteProtocolError:
        return events, True
    return events, False


@st.composite
def cuts(draw: st.DrawFn, body: bytes) -> list[bytes]:
    """Cut a body anywhere; some pieces are empty."""
    places = sorted(draw(st.lists(st.integers(0, len(body)), max_size=8)))
    return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


# -- the grammar -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "expected"), STREAMS.values(), ids=STREAMS)
def test_a_whole_stream_is_read(body: bytes, expected: list[ServerSentEvent]) -> None:
    assert decode([body]) == expected


@pytest.mark.parametrize(("body", "expected"), STREAMS.values(), ids=STREAMS)
def test_a_stream_read_byte_by_byte_gives_the_same_events(
    body: bytes, expected: list[ServerSentEvent]
) -> None:
    assert decode(bytewise(body)) == expected


@pytest.mark.parametrize(("body", "expected"), STREAMS.values(), ids=STREAMS)
@given(data=st.data())
def test_a_stream_cut_anywhere_gives_the_same_events(
    body: bytes, expected: list[ServerSentEvent], data: st.DataObject
) -> None:
    assert decode(data.draw(cuts(body))) == expected


LINES = st.sampled_from(
    [b"data: x", b"data:y", b"data", b"event: a", b"event:b", b": c", b":", b"id: 1", b"", b"", b"retry: 1"]
)


@given(
    lines=st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=12), data=st.data()
)
def test_no_mixture_of_lines_depends_on_its_cuts(
    lines: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    body = b"".join(line + end for line, end in lines)
    assert decode(data.draw(cuts(body))) == decode([body]) == decode(bytewise(body))


@given(data=st.lists(st.binary(), min_size=1, max_size=5))
def test_an_event_without_line_ends_in_it_is_read_back_as_it_was_encoded(data: list[bytes]) -> None:
    payloads = [one.replace(b"\n", b"").replace(b"\r", b"") for one in data]
    frames = [encode(b"e%d" % number, payload) for number, payload in enumerate(payloads)]
    events = decode([b"".join(frames)])
    assert [one.data for one in events] == payloads
    assert [one.raw for one in events] == frames
    assert [payload_of(frame) for frame in frames] == payloads


# -- the server's own bytes ------------------------------------------------------------------------


def test_a_frame_that_is_a_whole_chunk_is_handed_on_as_the_same_object() -> None:
    decoder = SSEDecoder()
    assert [one.raw is FRAME for one in decoder.feed(FRAME)] == [True]
    assert [one.raw is FRAME for one in decoder.feed(FRAME)] == [True]


@pytest.mark.parametrize(("body", "expected"), STREAMS.values(), ids=STREAMS)
def test_raw_bytes_are_always_the_canonical_frame_of_their_event(
    body: bytes, expected: list[ServerSentEvent]
) -> None:
    for one in decode([body]):
        assert (
            one.raw is None or one.raw == b"event: " + (one.event or b"") + b"\ndata: " + one.data + b"\n\n"
        )


# -- the limit -------------------------------------------------------------------------------------

LIMITED = {
    "a line without an end": b"data: " + b"x" * 60,
    "a data line": b"data: " + b"x" * 60 + b"\n\n",
    "a canonical frame": b"event: a\ndata: " + b"x" * 60 + b"\n\n",
    "a name": b"event: " + b"x" * 60 + b"\ndata: y\n\n",
    "a comment": b": " + b"x" * 60 + b"\n",
    "many data lines": b"data: x\n" * 10 + b"\n",
    "many empty data lines": b"data\n" * 60 + b"\n",
    "a frame that ends in CR": b"data: " + b"x" * 60 + b"\r\r",
}


@pytest.mark.parametrize("body", LIMITED.values(), ids=LIMITED)
@given(data=st.data())
def test_an_event_beyond_the_limit_is_refused_wherever_it_is_cut(body: bytes, data: st.DataObject) -> None:
    for chunks in ([body], bytewise(body), data.draw(cuts(body))):
        assert verdict(chunks, 50) == ([], True)


def test_what_comes_before_an_event_beyond_the_limit_is_not_lost() -> None:
    body = FRAME + b"data: " + b"x" * 60 + b"\n\n" + FRAME
    for chunks in ([body], [body, b""], bytewise(body), [body[:40], body[40:]]):
        assert verdict(chunks, 50) == ([PING], True)
    decoder = SSEDecoder(max_event=50)
    assert decoder.feed(body) == [PING]
    with pytest.raises(RemoteProtocolError, match="larger than 50 bytes"):
        decoder.feed(FRAME)
    with pytest.raises(RemoteProtocolError, match="larger than 50 bytes"):
        decoder.close()


def test_the_limit_is_for_one_event_and_not_for_the_stream() -> None:
    pieces = [FRAME, b": " + b"x" * 40 + b"\n", b"id: " + b"x" * 40 + b"\n", b"event: " + b"x" * 40 + b"\n"]
    body = b"".join(pieces) * 20
    for chunks in ([body], pieces * 20, bytewise(body)):
        events, refused = verdict(chunks, 50)
        assert len(events) == 20
        assert not refused


@given(size=st.integers(20, 80), data=st.data())
def test_the_cuts_do_not_move_the_limit(size: int, data: st.DataObject) -> None:
    body = b"event: a\ndata: " + b"x" * 20 + b"\n: hush\ndata: " + b"y" * 20 + b"\n\n" + FRAME
    assert verdict(data.draw(cuts(body)), size) == verdict([body], size) == verdict(bytewise(body), size)


# -- the cost --------------------------------------------------------------------------------------


class Counted(bytes):
    """Bytes that count how many of them are looked at."""

    looked = 0

    def find(self, sub: Any, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /) -> int:
        place = super().find(sub, start, end)
        stop = len(self) if end is None else int(end)
        Counted.looked += (stop if place < 0 else place) - int(start or 0)
        return place

    def __getitem__(self, key: Any) -> Any:
        piece = super().__getitem__(key)
        Counted.looked += len(piece)
        return piece


@pytest.mark.parametrize(
    "unit",
    [
        FRAME,
        b"event: a\rdata: b\r\r",
        b"event: a\r\ndata: b\r\n\r\n",
        b"event: a\nid: 1\ndata: b\n\n",
        b"event: a\ndata: b\ndata: c\n\n",
        b"event: a\n",
        b": hush\n",
        b"data\n",
        b"\r",
    ],
)
def test_each_byte_is_looked_at_a_few_times_however_long_the_chunk_is(unit: bytes) -> None:
    chunk = Counted(unit * 2000 + b"event: last")
    decoder = SSEDecoder()
    decoder.feed(b"\n")
    Counted.looked = 0
    decoder.feed(chunk)
    assert Counted.looked <= 5 * len(chunk)


def test_a_line_in_many_pieces_is_joined_once() -> None:
    decoder = SSEDecoder()
    calls: Counter[str] = Counter()

    def count(frame: object, kind: str, function: Any) -> None:
        if kind == "c_call":
            calls[function.__name__] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for chunk in [b"event: a\ndata: ", *[b"x" * 100] * 500]:
            decoder.feed(chunk)
        events = decoder.feed(b"\n\n")
    finally:
        sys.setprofile(before)
    assert events == [canonical(b"a", b"x" * 50_000)]
    assert calls["join"] == 1
