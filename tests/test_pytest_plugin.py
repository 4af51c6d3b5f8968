"""The fixture `replay_upstream`: users' own apps in front of a recorded model server."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
from pathlib import Path

import imagecall.middleware as package
import pytest
from imagecall.events.wire import dumps, loads
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.local import lifespan, post
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.replay import RecordedTurn, Recording, split_at
from imagecall.middleware.testing import plugin
from imagecall.middleware.testing.upstream import ReplayedUpstream, ReplayUpstream

pytest_plugins = ["pytester"]

ONE_PICTURE = "samples/llama.cpp-one-picture"
PATH = "/v1/responses"


@pytest.mark.parametrize("chunks", ["whole", "frames", "bytes", split_at(1, 700, -1)])
async def test_an_app_in_front_of_the_recording_gives_the_recorded_answer(
    replay_upstream: ReplayUpstream, chunks: str
) -> None:
    upstream = replay_upstream(ONE_PICTURE, chunks=chunks)
    app = ImageGenerationMiddleware(upstream, **upstream.options)
    answer = await post(app, PATH, dumps(upstream.recording.request))
    assert answer.body == upstream.recording.client
    assert [request["stream"] for request in upstream.requests] == [True, True]


async def test_the_recording_is_served_at_a_real_address(replay_upstream: ReplayUpstream) -> None:
    upstream = replay_upstream(ONE_PICTURE)
    assert upstream.url == upstream.url
    app = ImageGenerationMiddleware(ProxyApp(upstream.url), **upstream.options)
    async with lifespan(app):
        answer = await post(app, PATH, dumps(upstream.recording.request))
    assert answer.body == upstream.recording.client


async def test_an_answer_that_was_not_streamed_is_replayed_as_well(replay_upstream: ReplayUpstream) -> None:
    upstream = replay_upstream("samples/llama.cpp-not-streamed")
    app = ImageGenerationMiddleware(upstream, **upstream.options)
    answer = await post(app, PATH, dumps(upstream.recording.request))
    assert loads(answer.body) == loads(upstream.recording.client)


async def test_a_test_can_hold_the_stream_at_any_piece(replay_upstream: ReplayUpstream) -> None:
    gate, at_the_gate = asyncio.Event(), asyncio.Event()

    async def pass_the_gate() -> None:
        at_the_gate.set()
        await gate.wait()

    upstream = replay_upstream(ONE_PICTURE, chunks="whole", pace=pass_the_gate)
    app = ImageGenerationMiddleware(upstream, **upstream.options)
    got: list[bytes] = []
    asking = asyncio.ensure_future(
        post(
            app,
            PATH,
            dumps(upstream.recording.request),
            on_bytes=lambda _status, piece: got.append(piece),
        )
    )
    await at_the_gate.wait()
    assert b"".join(got) == b""
    gate.set()
    assert (await asking).body == upstream.recording.client


def test_a_way_of_cutting_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="chunks='bits' is none of whole, frames, bytes"):
        ReplayedUpstream(Recording({}, (), b""), chunks="bits")


CALL = b'data: {"item": {"type": "function_call", "call_id": "call_1"}}\n\ndata: [DONE]\n\n'
FUNCTION = {"type": "function", "name": "image_generation"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
STREAMED = RecordedTurn(CALL)
NOT_STREAMED = RecordedTurn(
    b'{"output": [{"type": "function_call", "call_id": "call_1"}]}',
    headers=((b"content-type", b"application/json"),),
)
FIRST = {"stream": True, "tools": [FUNCTION], "input": "Draw"}
LAST = {**FIRST, "input": [{"role": "user"}, "?", OUTPUT]}

GOOD = [
    ([STREAMED, STREAMED], [FIRST, LAST]),
    ([NOT_STREAMED, STREAMED], [{**FIRST, "stream": False}, LAST]),
    ([RecordedTurn(b"", 503, ())], [{}]),
]
BAD = [
    ([STREAMED], [FIRST, FIRST], "request 2 is one too many: the recording has 1 turns"),
    ([STREAMED], [[]], "request 1 is no JSON object"),
    ([STREAMED], [{**FIRST, "tools": None}], "request 1 offers no function, but the model called one"),
    (
        [STREAMED],
        [{**FIRST, "tools": [FUNCTION, {"type": "image_generation"}]}],
        "request 1 declares the hosted tool image_generation, which the model server does not know",
    ),
    ([STREAMED], [{**FIRST, "stream": False}], "request 1 asks for no stream, but the answer is one"),
    ([NOT_STREAMED, STREAMED], [FIRST, FIRST], "request 2 has no output for call call_1"),
    ([STREAMED, STREAMED], [FIRST], "1 of 2 turns were asked for"),
]


async def ask(upstream: ReplayedUpstream, *bodies: bytes, path: str = PATH) -> list[str]:
    for body in bodies:
        await post(upstream, path, body)
    upstream.close()
    return upstream.problems


@pytest.mark.parametrize(("turns", "requests"), GOOD)
async def test_requests_as_a_model_server_wants_them_are_no_problem(
    turns: list[RecordedTurn], requests: list[object]
) -> None:
    upstream = ReplayedUpstream(Recording({}, tuple(turns), b""))
    assert await ask(upstream, *map(dumps, requests)) == []


@pytest.mark.parametrize(("turns", "requests", "problem"), BAD)
async def test_a_wrong_request_is_told(
    turns: list[RecordedTurn], requests: list[object], problem: str
) -> None:
    upstream = ReplayedUpstream(Recording({}, tuple(turns), b""))
    assert await ask(upstream, *map(dumps, requests)) == [f"recording: {problem}."]


async def test_a_wrong_path_and_a_body_that_is_no_json_are_told() -> None:
    upstream = ReplayedUpstream(Recording({}, (STREAMED,), b""))
    assert await ask(upstream, b"?", dumps(FIRST), path="/v1/chat/completions") == [
        "recording: a request to /v1/chat/completions was no JSON.",
        "recording: request 1 went to /v1/chat/completions, not to /v1/responses.",
    ]


async def test_without_the_check_anything_may_be_asked() -> None:
    upstream = ReplayedUpstream(Recording({}, (STREAMED, STREAMED), b""), check=False)
    assert await ask(upstream, b"{}") == []


def test_the_fixture_fails_a_test_whose_app_asked_wrongly(pytester: pytest.Pytester) -> None:
    folder = Path(__file__).parent.parent / ONE_PICTURE
    (pytester.path / "recordings").mkdir()
    (pytester.path / "recordings" / "cat").symlink_to(folder)
    pytester.makepyfile("""
        import urllib.request

        def test_nothing_is_asked(replay_upstream):
            replay_upstream("recordings/cat")

        def test_the_model_server_itself_is_asked_for_the_hosted_tool(replay_upstream):
            upstream = replay_upstream("recordings/cat", pace=0.0)
            body = b'{"stream": true, "tools": [{"type": "image_generation"}]}'
            urllib.request.urlopen(upstream.url + "/v1/responses", body).read()

        def test_nobody_checks(replay_upstream):
            replay_upstream("recordings/cat", check=False)
    """)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "recordings/cat: 0 of 2 turns were asked for.",
            "recordings/cat: request 1 declares the hosted tool image_generation, *",
            "recordings/cat: request 1 offers no function, but the model called one.",
            "recordings/cat: 1 of 2 turns were asked for.",
        ]
    )


def test_the_fixture_fails_the_test_in_this_process_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_a_folder_that_is_no_recording(replay_upstream):
            replay_upstream("nowhere")
    """)
    (pytester.path / "cat").symlink_to(Path(__file__).parent.parent / ONE_PICTURE)
    pytester.makepyfile(
        test_unasked="""
        def test_nothing_is_asked(replay_upstream):
            replay_upstream("cat")
    """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(failed=1, passed=1, errors=1)
    result.stdout.fnmatch_lines(["*nowhere is no recording: meta.toml cannot be read*"])


def test_loading_the_plugin_imports_nothing_of_weight() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); import imagecall.middleware.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert told.stdout.split() == [
        "imagecall",
        "imagecall.middleware",
        "imagecall.middleware.testing",
        "imagecall.middleware.testing.plugin",
    ]


def test_the_public_names_are_found_and_others_are_not() -> None:
    # pytest has loaded these files before coverage could begin: they are run once more.
    again = runpy.run_path(str(Path(package.__file__ or "")), run_name="imagecall.middleware")
    assert runpy.run_path(plugin.__file__)["__all__"] == ["replay_upstream"]
    runpy.run_path(str(Path(plugin.__file__).with_name("__init__.py")))
    for name in package.__all__:
        assert again["__getattr__"](name) is getattr(package, name)
    with pytest.raises(AttributeError, match=r"module .* has no attribute 'Picture'"):
        again["__getattr__"]("Picture")
