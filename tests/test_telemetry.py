"""What operators see: the spans of each kind of response, their attributes, and what is measured."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from asgi import Client, ask, conversation, draw, middleware, post
from imagecall.middleware.backends.base import ImageError
from jobs import begun, ended, running
from model_server import JSON, KITE_TURNS, Answer, ModelServer, calling, frames, saying
from observing import TRACE, TRACEPARENT, Observatory
from opentelemetry.trace import SpanKind
from painters import Painter, png, raising
from sockets import connected, create, handshake
from starlette.types import Message, Receive, Scope, Send
from waiting import settle

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "imagecall"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "image_generation",
    "gen_ai.tool.type": "extension",
}
REFUSED = Answer([b'{"error":{"message":"Slow down."}}'], status=429, headers=[*JSON])


def observed(server: Any, painter: Any, **settings: Any) -> tuple[Any, Observatory]:
    observatory = Observatory()
    return middleware(server, painter, telemetry=observatory.telemetry, **settings), observatory


async def test_a_picture_has_a_span_between_those_of_two_turns_all_below_the_responses() -> None:
    server = ModelServer(*KITE_TURNS)
    app, observatory = observed(server, Painter())
    await ask(app, draw(), post(headers=[TRACEPARENT, (b"tracestate", b"congo=t61rcWkgMzE")]))
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER completed",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL completed",
        "  chat local-model CLIENT",
    ]
    root, first, picture, second = observatory.spans
    assert root.parent is not None
    assert root.parent.span_id == 0xB7AD6B7169203331
    assert {f"{span.context.trace_id:032x}" for span in observatory.spans if span.context} == {TRACE}
    assert root.attributes == {
        **AGENT,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "local-model",
        "gen_ai.response.id": "resp_up1",
        "imagecall.outcome": "completed",
        "imagecall.turns": 2,
        "imagecall.pictures.completed": 1,
        "imagecall.pictures.failed": 0,
        "imagecall.pictures.cancelled": 0,
        "imagecall.pictures.size": len(png("a red kite over a harbour")),
    }
    for number, span in ((1, first), (2, second)):
        assert span.attributes == {
            **CHAT,
            "gen_ai.request.model": "local-model",
            "imagecall.turn": number,
            "http.response.status_code": 200,
            "gen_ai.response.id": f"resp_up{number}",
            "gen_ai.response.model": "local-model",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 10,
        }
    told = dict(picture.attributes or {})
    assert told.pop("imagecall.picture.queue.duration") >= 0
    assert told == {
        **TOOL,
        "gen_ai.tool.call.id": "ig_1",
        "imagecall.action": "generate",
        "imagecall.outcome": "completed",
        "imagecall.picture.size": len(png("a red kite over a harbour")),
        "imagecall.picture.dimensions": "48x32",
        "imagecall.picture.format": "png",
    }


async def test_each_turn_is_asked_in_the_context_of_its_own_span() -> None:
    server = ModelServer(*KITE_TURNS)
    app, observatory = observed(server, Painter())
    await ask(app, draw(), post(headers=[TRACEPARENT, (b"tracestate", b"congo=t61rcWkgMzE")]))
    spans = [span for span in observatory.spans if span.name.startswith("chat")]
    for asked, span in zip(server.asked, spans, strict=True):
        assert span.context is not None
        assert asked.headers[b"traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01".encode()
        assert asked.headers[b"tracestate"] == b"congo=t61rcWkgMzE"
        assert [name for name, _ in asked.scope["headers"]].count(b"traceparent") == 1


async def test_without_an_sdk_the_clients_trace_goes_on_as_it_came() -> None:
    server = ModelServer(*KITE_TURNS)
    await ask(middleware(server, Painter()), draw(), post(headers=[TRACEPARENT]))
    assert [asked.headers[b"traceparent"] for asked in server.asked] == [TRACEPARENT[1]] * 2


async def test_without_any_trace_none_is_made_up() -> None:
    server = ModelServer(*KITE_TURNS)
    await ask(middleware(server, Painter()), draw())
    assert all(b"traceparent" not in asked.headers for asked in server.asked)


async def test_below_a_servers_own_span_the_clients_header_counts_no_more() -> None:
    app, observatory = observed(ModelServer(*KITE_TURNS), Painter())

    async def instrumented(scope: Scope, receive: Receive, send: Send) -> None:
        with observatory.tracer.start_as_current_span("POST /v1/responses", kind=SpanKind.SERVER):
            await app(scope, receive, send)

    await ask(instrumented, draw(), post(headers=[TRACEPARENT]))
    assert observatory.tree()[:2] == [
        "POST /v1/responses SERVER",
        "  invoke_agent imagecall INTERNAL completed",
    ]
    assert observatory.span("POST /v1/responses").parent is None


async def test_two_pictures_side_by_side_are_two_spans_below_the_response() -> None:
    painter = Painter(waits=True)
    app, observatory = observed(ModelServer(calling("a kite", "a ship"), saying("Done.")), painter)
    async with conversation(app, draw()):
        await painter.was_asked(2)
        painter.may_finish.set()
    assert sorted(observatory.tree()[1:]) == [
        "  chat local-model CLIENT",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL completed",
        "  execute_tool image_generation INTERNAL completed",
    ]
    pictures = [span for span in observatory.spans if span.name.startswith("execute_tool")]
    assert {(span.attributes or {})["gen_ai.tool.call.id"] for span in pictures} == {"ig_1", "ig_2"}
    assert observatory.measured()["imagecall.responses.active {response}"] == [({}, 0)]


@pytest.mark.parametrize(
    ("code", "shown"), [("moderation_blocked", "moderation_blocked"), ("draw a red kite", "_OTHER")]
)
async def test_a_failed_picture_is_an_error_of_its_span_alone(code: str, shown: str) -> None:
    painter = raising(ImageError("It shows a red kite.", code=code))
    app, observatory = observed(ModelServer(*KITE_TURNS), painter)
    await ask(app, draw(tools=[{"type": "image_generation", "model": "gpt-image-2"}]))
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER completed",
        "  chat local-model CLIENT",
        f"  execute_tool image_generation INTERNAL failed ! {shown}",
        "  chat local-model CLIENT",
    ]
    picture = observatory.span("execute_tool image_generation")
    assert (picture.attributes or {})["gen_ai.request.model"] == "gpt-image-2"
    assert (observatory.span("invoke_agent imagecall").attributes or {})["imagecall.pictures.failed"] == 1


async def test_when_the_client_leaves_the_turn_and_its_picture_are_cut_short() -> None:
    painter = Painter(waits=True)
    hold = asyncio.Event()
    turn = calling("a kite")
    app, observatory = observed(ModelServer(Answer([*turn[:-1], hold])), painter, disconnect_grace=0)
    async with conversation(app, draw()) as client:
        await painter.was_asked()
        client.leave()
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER client_left",
        "  chat local-model CLIENT ! abandoned",
        "  execute_tool image_generation INTERNAL cancelled",
    ]


async def test_a_refused_request_shows_the_status_of_the_model_server() -> None:
    app, observatory = observed(ModelServer(REFUSED), Painter())
    await ask(app, draw())
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER refused ! 429",
        "  chat local-model CLIENT ! 429",
    ]
    assert "gen_ai.response.id" not in (observatory.spans[0].attributes or {})


async def test_a_refused_second_turn_is_an_error_of_the_response() -> None:
    app, observatory = observed(ModelServer(KITE_TURNS[0], REFUSED, REFUSED), Painter())
    await ask(app, draw())
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER failed ! response_failed",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL completed",
        "  chat local-model CLIENT ! 429",
        *["  chat local-model CLIENT ! 429"] * (len(observatory.spans) - 4),
    ]


async def test_a_response_that_the_model_server_fails_is_an_error_of_the_turn_too() -> None:
    app, observatory = observed(ModelServer(frames(status="failed")), Painter())
    await ask(app, draw())
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER failed ! response_failed",
        "  chat local-model CLIENT ! response_failed",
    ]


async def test_what_the_application_raises_is_named_by_its_class() -> None:
    error = ValueError("a red kite")
    app, observatory = observed(ModelServer(Answer([error], status=0)), Painter())
    await ask(app, draw(), raises=error)
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER failed ! ValueError",
        "  chat local-model CLIENT ! ValueError",
    ]


async def test_an_application_that_gives_no_answer_at_all_has_failed() -> None:
    app, observatory = observed(ModelServer(Answer(status=0, complete=False)), Painter())
    await ask(app, draw())
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER failed ! abandoned",
        "  chat local-model CLIENT ! abandoned",
    ]


async def test_a_server_that_cancels_the_request_is_named_by_that() -> None:
    painter = Painter(waits=True)
    app, observatory = observed(ModelServer(KITE_TURNS[0]), painter)
    client = Client(app, draw(), post())
    task = asyncio.create_task(client.run())
    await painter.was_asked()
    task.cancel()
    await task
    assert isinstance(client.raised, asyncio.CancelledError)
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER failed ! CancelledError",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL cancelled",
    ]


async def test_a_turn_that_is_cancelled_before_its_first_step_is_no_span_and_no_request() -> None:
    server, painter = ModelServer(*KITE_TURNS), Painter(waits=True)
    app, observatory = observed(server, painter)
    client = Client(app, draw(), post())
    told = client.send

    async def breaks(message: Message) -> None:
        if painter.may_finish.is_set():
            raise RuntimeError("what stands before the middleware is broken")
        await told(message)

    client.send = breaks
    task = asyncio.create_task(client.run())
    await painter.was_asked()
    await settle()

    painter.may_finish.set()
    await task
    assert isinstance(client.raised, ExceptionGroup)
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER failed ! CancelledError",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL completed",
    ]
    assert len(server.asked) == 1


async def test_the_model_servers_id_of_a_response_forges_no_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "imagecall")
    server = ModelServer(saying("Hi", response_id="resp_a\n\x1b[31mERROR " + "b" * 1000))
    await ask(middleware(server, Painter()), draw())
    assert caplog.messages[-1].startswith(f"response resp_a [31mERROR {'b' * 82} of 'local-model': completed")


async def test_a_response_in_the_background_belongs_to_the_request_that_began_it() -> None:
    observatory = Observatory()
    async with running(ModelServer(*KITE_TURNS), Painter(), telemetry=observatory.telemetry) as app:
        queued = await begun(app, headers=[TRACEPARENT])
        assert (await ended(app, queued["id"]))["status"] == "completed"
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER completed",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL completed",
        "  chat local-model CLIENT",
    ]
    root = observatory.spans[0]
    assert root.parent is not None
    assert f"{root.parent.trace_id:032x}" == TRACE
    assert (root.attributes or {})["gen_ai.response.id"] == queued["id"]


async def test_a_response_in_the_background_that_is_cancelled_is_no_error() -> None:
    observatory = Observatory()
    painter = Painter(waits=True)
    async with running(ModelServer(KITE_TURNS[0]), painter, telemetry=observatory.telemetry) as app:
        queued = await begun(app)
        await painter.was_asked()
        await ask(app, b"", post(f"/v1/responses/{queued['id']}/cancel"))
        await ended(app, queued["id"])
    assert observatory.tree() == [
        "invoke_agent imagecall SERVER cancelled",
        "  chat local-model CLIENT",
        "  execute_tool image_generation INTERNAL cancelled",
    ]


async def test_each_response_on_a_websocket_has_the_trace_of_the_handshake() -> None:
    app, observatory = observed(ModelServer(*KITE_TURNS, *KITE_TURNS), Painter())
    async with connected(app, handshake(headers=[TRACEPARENT])) as socket:
        for count in (1, 2):
            socket.say(create())
            await socket.heard_ends(count)
    assert (
        observatory.tree()
        == [
            "invoke_agent imagecall SERVER completed",
            "  chat local-model CLIENT",
            "  execute_tool image_generation INTERNAL completed",
            "  chat local-model CLIENT",
        ]
        * 2
    )
    assert {f"{span.context.trace_id:032x}" for span in observatory.spans if span.context} == {TRACE}


async def test_a_response_without_the_tool_is_not_observed_and_not_traced() -> None:
    app, observatory = observed(ModelServer(saying("Hello.")), Painter())
    await ask(app, draw(tools=[]))
    assert observatory.tree() == []
    assert observatory.measured() == {}


async def test_no_prompt_and_no_picture_is_in_any_span() -> None:
    app, observatory = observed(ModelServer(*KITE_TURNS), Painter())
    await ask(app, draw())
    told = json.dumps([json.loads(span.to_json()) for span in observatory.spans])
    assert "kite" not in told.lower()
    assert not re.search(r"[A-Za-z0-9+/]{80}", told)


async def test_the_time_after_an_answer_is_none_of_the_turns_and_the_turn_none_of_the_response() -> None:
    later = asyncio.Event()
    server = ModelServer(Answer(frames(), afterwards=[later]))
    app, observatory = observed(server, Painter())
    async with conversation(app, draw()) as client:
        await client.heard_all()
        await settle()
        assert observatory.tree() == ["invoke_agent imagecall SERVER completed"]
        later.set()
    response, turn = observatory.spans
    assert (response.end_time or 0) >= (turn.end_time or 1)


async def test_measurements_count_by_outcome_and_never_by_what_a_client_wrote() -> None:
    painter = Painter(makes=lambda prompt: png(prompt) if "kite" in prompt else b"<html>")
    app, observatory = observed(ModelServer(calling("a kite", "a ship"), saying("Done."), REFUSED), painter)
    await ask(app, draw())
    await ask(app, draw(model="a" * 500))
    measured = observatory.measured()
    measured["gen_ai.execute_tool.duration s"].sort(key=str)
    assert measured == {
        "imagecall.responses.active {response}": [({}, 0)],
        "imagecall.picture.queue.duration s": [({}, 2)],
        "imagecall.picture.size By": [({}, 1)],
        "gen_ai.execute_tool.duration s": [
            ({**TOOL, "imagecall.outcome": "completed"}, 1),
            ({**TOOL, "imagecall.outcome": "failed", "error.type": "not_an_image"}, 1),
        ],
        "gen_ai.client.operation.duration s": [(CHAT, 2), ({**CHAT, "error.type": "429"}, 1)],
        "gen_ai.invoke_agent.duration s": [
            ({**AGENT, "imagecall.outcome": "completed"}, 1),
            ({**AGENT, "imagecall.outcome": "refused", "error.type": "429"}, 1),
        ],
    }
    assert len((observatory.spans[-1].attributes or {})["gen_ai.request.model"]) == 100
