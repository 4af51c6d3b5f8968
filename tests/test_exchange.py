"""One request that goes well, from beginning to end: turns, pictures, order, liveness."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import random
from typing import Any

import PIL.Image
import pytest
from accumulator import accumulate
from asgi import Client, ask, conversation, draw, middleware, post
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from kite import KITE, kinds, kite_stream, pair, usage
from model_server import HOSTED, JSON, KITE_TURNS, Answer, ModelServer, calling, frames, saying, whole
from painters import Painter, png
from rules import check_response, check_stream, read_events
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from transcript import call, message
from waiting import Clock, settle

EXPECTED = kite_stream(spent=usage(200, 20))


async def test_two_turns_and_a_picture_become_one_stream() -> None:
    server, painter = ModelServer(*KITE_TURNS), Painter()
    client = await ask(middleware(server, painter), draw())
    assert (client.status, read_events(client.body)) == (200, EXPECTED)
    assert client.complete
    first, second = (asked.json for asked in server.asked)
    assert first["input"] == "Draw a kite."
    assert second["input"][0] == {"role": "user", "content": "Draw a kite."}
    made, output = pair(second)
    assert json.loads(made["arguments"]) == {"prompt": KITE}
    assert json.loads(output["output"])["image_id"] == "ig_1"
    assert painter.asked == [ImageRequest(prompt=KITE)]


async def test_a_client_that_wants_no_stream_gets_the_object_that_the_stream_ends_with() -> None:
    kind = [*JSON, (b"x-request-id", b"r1")]
    server = ModelServer(*(Answer([whole(turn)], headers=kind) for turn in KITE_TURNS))
    client = await ask(middleware(server, Painter()), draw(stream=False))
    assert client.json == EXPECTED[-1]["response"]
    assert client.status == 200
    assert client.headers == [
        (b"x-request-id", b"r1"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(client.body)).encode()),
    ]
    assert [asked.json["stream"] for asked in server.asked] == [False, False]


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
async def test_each_frame_goes_out_in_one_send_however_the_upstream_cuts_its_own(size: int) -> None:
    bodies = [b"".join(turn) for turn in KITE_TURNS]
    server = ModelServer(*([body[i : i + size] for i in range(0, len(body), size)] for body in bodies))
    client = await ask(middleware(server, Painter()), draw())
    *pieces, last = client.pieces
    assert last == b""
    for piece in pieces:
        assert piece.startswith(b"event: ")
        assert piece.endswith(b"\n\n")
    assert read_events(client.body) == EXPECTED


async def test_the_frames_of_one_chunk_leave_in_one_send() -> None:
    server = ModelServer([b"".join(turn) for turn in KITE_TURNS[:1]], [b"".join(KITE_TURNS[1])])
    client = await ask(middleware(server, Painter()), draw())
    assert [len(read_events(piece)) for piece in client.pieces[:-1]] == [5, 2, 8]


class Meeting:
    """A backend whose calls go on only when as many as `size` are there; counts them."""

    def __init__(self, size: int) -> None:
        self.most = self.now = self.all = 0
        self._barrier = asyncio.Barrier(size)

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        self.all += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await self._barrier.wait()
        self.now -= 1
        return png(request.prompt)


async def test_two_calls_of_one_turn_run_at_the_same_time() -> None:
    backend = Meeting(2)
    server = ModelServer(calling("one", "two"), saying("Both."))
    client = await ask(middleware(server, backend), draw())
    assert check_stream(client.body, tools=[HOSTED], tool_choice="auto") == []
    assert kinds(read_events(client.body)[-1]["response"]) == [*["image_generation_call"] * 2, "message"]
    assert [item.type for item in accumulate(client.body).output][:2] == ["image_generation_call"] * 2
    assert (backend.all, backend.most) == (2, 2)


@pytest.mark.parametrize("bound", ["concurrency", "concurrency_per_response", "backend_concurrency"])
async def test_of_ten_calls_as_many_run_at_a_time_as_the_limit_says(bound: str) -> None:
    backend = Meeting(5)
    server = ModelServer(calling(*"abcdefghij"), saying("All."))
    bounds = ("concurrency", "concurrency_per_response", "backend_concurrency")
    wide: dict[str, Any] = {**dict.fromkeys(bounds, 10), bound: 5}
    client = await ask(middleware(server, backend, **wide), draw())
    assert check_stream(client.body, tools=[HOSTED]) == []
    assert (backend.all, backend.most) == (10, 5)


async def test_the_process_limit_holds_for_all_responses_together() -> None:
    backend = Meeting(2)
    servers = ModelServer(calling("a", "b"), calling("c", "d"), saying("Done."), saying("Done."))
    app = middleware(servers, backend, concurrency=2)
    async with conversation(app, draw()) as one:
        other = Client(app, draw(), post())
        await other.run()
    for client in (one, other):
        assert check_stream(client.body, tools=[HOSTED]) == []
    assert (backend.all, backend.most) == (4, 2)


async def test_a_preview_reaches_the_client_while_the_picture_is_still_being_made() -> None:
    tools = [{**HOSTED, "partial_images": 2}]
    painter = Painter(waits=True)
    async with conversation(middleware(ModelServer(*KITE_TURNS), painter), draw(tools=tools)) as client:
        await client.heard(b'"partial_image_index":1')
        assert b"completed" not in client.body
        painter.may_finish.set()
    assert check_stream(client.body, tools=tools) == []


async def test_the_rest_of_a_turn_streams_on_while_its_picture_is_made() -> None:
    item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "image_generation"}
    item |= {"arguments": '{"prompt":"a kite"}', "status": "completed"}
    both = frames(call(0, item, item["arguments"]), message(1, "msg_1", "Just a ", "moment."))
    rest = asyncio.Event()
    painter = Painter(waits=True)
    server = ModelServer([*both[:9], rest, *both[9:]], saying("There.", response_id="resp_up2"))
    async with conversation(middleware(server, painter), draw()) as client:
        await painter.was_asked()
        await client.heard(b"Just a ")
        assert len(server.asked) == 1
        rest.set()
        await client.heard(b"moment.")
        painter.may_finish.set()
    assert check_stream(client.body, tools=[HOSTED]) == []
    output = read_events(client.body)[-1]["response"]["output"]
    assert [one["type"] for one in output] == ["image_generation_call", "message", "message"]


async def test_frames_of_several_producers_leave_in_the_order_of_their_numbers() -> None:
    tools = [{**HOSTED, "partial_images": 3}]
    calls = [
        {
            "id": f"fc_{index}",
            "type": "function_call",
            "call_id": f"call_{index}",
            "name": "image_generation",
            "arguments": json.dumps({"prompt": f"kite {index}"}),
            "status": "completed",
        }
        for index in range(3)
    ]
    words = [f"word {count} " for count in range(30)]
    turn = frames(
        *(call(n, item, item["arguments"]) for n, item in enumerate(calls)), message(3, "m", *words)
    )
    server = ModelServer(turn, saying("Done."))
    async with conversation(middleware(server, Painter()), draw(tools=tools)) as client:
        client.pauses = 5
    assert check_stream(client.body, tools=tools) == []
    assert client.body.count(b"event: response.image_generation_call.partial_image\n") == 9


# -- the turns -------------------------------------------------------------------------------------


async def test_the_next_turn_never_runs_inside_the_inner_applications_send() -> None:
    order: list[str] = []

    async def sent(receive: Receive, send: Send) -> None:
        order.append("first is sent")

    async def asked(receive: Receive, send: Send) -> None:
        order.append("second is asked")

    # Arguments that cannot run settle at once: the next turn is decided in the very send that ends the first.
    server = ModelServer(
        Answer(calling("", arguments='{"prompt":""}'), afterwards=[sent]), [asked, *saying("No.")]
    )
    client = await ask(middleware(server, Painter()), draw())
    assert order == ["first is sent", "second is asked"]
    first, second = server.asked
    assert first.task is not second.task
    assert check_stream(client.body, tools=[HOSTED]) == []


async def test_an_application_that_stops_when_the_client_seems_to_have_gone_loses_nothing() -> None:
    # Starlette's own response does: it waits for http.disconnect beside its stream, and cancels that.
    turns = iter([b"".join(turn).removesuffix(b"\n\n") for turn in KITE_TURNS])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def pieces() -> Any:
            yield next(turns)

        await StreamingResponse(pieces(), media_type="text/event-stream")(scope, receive, send)

    async with conversation(middleware(app, Painter()), draw()) as client:
        client.pauses = 3
    assert read_events(client.body) == EXPECTED


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("turns", [KITE_TURNS, KITE_TURNS[1:]], ids=["picture", "text"])
async def test_what_was_decided_is_done_even_if_the_application_cancels_its_own_send(
    turns: tuple[list[bytes], ...], last: bool
) -> None:
    async def hasty(receive: Receive, send: Send) -> None:
        message = {"type": "http.response.body", "body": b"".join(turns[0]), "more_body": not last}
        sending = asyncio.create_task(send(message))
        await settle()  # by now it hangs in the slow client
        sending.cancel()
        await asyncio.wait([sending])
        assert sending.cancelled()
        if not last:
            await send({"type": "http.response.body", "body": b"", "more_body": True})

    server = ModelServer(Answer([hasty], complete=False), *turns[1:])
    async with conversation(middleware(server, Painter()), draw()) as client:
        client.reads.clear()
        await client.sent_to.wait()
        await settle()
        await settle()
        assert client.messages == []
        client.reads.set()
    patient = await ask(middleware(ModelServer(*turns), Painter()), draw())
    assert read_events(client.body) == read_events(patient.body)


async def test_a_slow_client_holds_the_inner_application_up() -> None:
    clock, sent = Clock(), asyncio.Event()

    async def note(receive: Receive, send: Send) -> None:
        sent.set()

    server = ModelServer([*KITE_TURNS[1], note])
    async with conversation(middleware(server, Painter()), draw()) as client:
        client.reads.clear()
        await client.sent_to.wait()
        await clock.forward(700)  # the silence is the client's, not the model server's
        assert not sent.is_set()
        client.reads.set()
    assert read_events(client.body)[-1]["type"] == "response.completed"


# -- answers of another shape ----------------------------------------------------------------------


async def test_an_event_stream_with_the_wrong_content_type_is_read_all_the_same() -> None:
    server = ModelServer(*(Answer(turn, headers=JSON) for turn in KITE_TURNS))
    client = await ask(middleware(server, Painter()), draw())
    assert read_events(client.body) == EXPECTED
    assert (b"content-type", b"text/event-stream; charset=utf-8") in client.headers


async def test_a_response_object_in_answer_to_a_stream_request_becomes_a_valid_stream() -> None:
    halves = [(whole(turn)[:100], whole(turn)[100:]) for turn in KITE_TURNS]
    server = ModelServer(*(Answer(pieces, headers=JSON) for pieces in halves))
    client = await ask(middleware(server, Painter()), draw())
    assert check_stream(client.body, tools=[HOSTED], tool_choice="auto") == []
    assert read_events(client.body)[-1]["response"] == EXPECTED[-1]["response"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_picture_of_five_megabytes_passes(stream: bool) -> None:
    file = io.BytesIO()
    noise = PIL.Image.frombytes("RGB", (1400, 1200), random.Random(1).randbytes(1400 * 1200 * 3))
    noise.save(file, "png", compress_level=0)
    picture = file.getvalue()
    assert len(picture) > 5_000_000
    client = await ask(
        middleware(ModelServer(*KITE_TURNS), Painter(makes=lambda _: picture)), draw(stream=stream)
    )
    final = read_events(client.body)[-1]["response"] if stream else client.json
    assert base64.b64decode(final["output"][0]["result"], validate=True) == picture
    assert final["output"][0]["size"] == "1400x1200"
    if stream:
        assert check_stream(client.body, tools=[HOSTED]) == []
    else:
        assert check_response(client.json, tools=[HOSTED]) == []
