"""Reading the log of a response while others write it."""

from __future__ import annotations

from imagecall.events.sse import encode
from imagecall.middleware.store import MemoryStore
from imagecall.middleware.stored.owned_store import LOG_END, OwnedStore
from imagecall.middleware.stored.stored_response import StoredResponse
from imagecall.middleware.surface.event_log import EventLog
from rules import read_events


def frame(number: int, kind: str = "response.output_text.delta") -> bytes:
    return encode(kind.encode(), b'{"type":"%b","sequence_number":%d}' % (kind.encode(), number))


LAST = frame(1, "response.completed")


class Store(OwnedStore):
    """A store whose log says what it is told to, one answer after another."""

    def __init__(self, *answers: list[bytes]) -> None:
        super().__init__(MemoryStore(entries=9, max_bytes=999), "", ttl=60)
        self._answers = [*answers]

    async def read_log(self, name: str, start: int, wait: float = 0.0) -> list[bytes]:
        return self._answers.pop(0)


def response(status: str) -> StoredResponse:
    return StoredResponse("resp_1", status, (), {"id": "resp_1", "status": status}, [])


async def told(store: OwnedStore, status: str = "completed", after: int = -1) -> bytes:
    async def current() -> StoredResponse:
        return response(status)

    log = EventLog(store, "resp_1", after, current, 0)
    await log.begin()
    return b"".join([frames async for frames in log.events()])


async def test_what_was_written_just_before_the_end_is_read() -> None:
    store = Store([frame(0)], [], [LAST, LOG_END], [])
    assert await told(store) == frame(0) + LAST


async def test_a_log_may_lack_its_last_piece() -> None:
    store = Store([frame(0), LAST], [], [])
    assert await told(store) == frame(0) + LAST


async def test_a_log_that_lacks_its_end_gets_one() -> None:
    for status, name in (
        ("completed", b"completed"),
        ("incomplete", b"incomplete"),
        ("cancelled", b"failed"),
    ):
        body = await told(Store([frame(0)], [], []), status)
        data = (
            b'{"type":"response.%b","sequence_number":1,"response":{"id":"resp_1","status":"%b","output":[]}}'
        )
        assert body == frame(0) + encode(b"response." + name, data % (name, status.encode()))


async def test_a_response_that_ended_without_a_word_begins_as_every_stream() -> None:
    assert read_events(await told(Store([], [], []), "failed")) == [
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": {"id": "resp_1", "status": "queued", "error": None, "output": []},
        },
        {
            "type": "response.failed",
            "sequence_number": 1,
            "response": {"id": "resp_1", "status": "failed", "output": []},
        },
    ]


async def test_the_end_of_a_log_that_is_lost_comes_after_what_the_client_has() -> None:
    (last,) = read_events(await told(Store([], [], []), after=7))
    assert (last["type"], last["sequence_number"]) == ("response.completed", 8)


async def test_pieces_that_stand_in_the_log_twice_are_told_once() -> None:
    store = Store([frame(0), frame(0) + LAST + b"data: [DONE]\n\n", LOG_END], [])
    assert await told(store) == frame(0) + LAST + b"data: [DONE]\n\n"


async def test_nothing_is_told_of_what_the_client_has_already() -> None:
    assert await told(Store([frame(0)], [LAST + LOG_END], []), after=1) == b""
