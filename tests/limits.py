"""Meeting the limits of the middleware: each play puts the same load on it, with room for just that, or less.

A play is told whether to go over the limit and whether the client wants a stream; it tells what that saw.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgi import Client, ask, conversation, draw, lifespan, middleware, post
from fetching import answer as file_answer
from fetching import hold, site
from image_servers import OpenAI
from imagecall.middleware import creation
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from imagecall.middleware.edits.fetcher import Fetcher
from imagecall.middleware.store import MemoryStore
from loopback import raw_server
from model_server import HOSTED, JSON, Answer, ModelServer, Step, calling, saying, whole
from painters import Painter, png
from rules import check_response, check_stream, read_events
from sockets import connected, create
from waiting import Clock, settle

__all__ = [
    "EDIT",
    "LONG",
    "LOOK",
    "MADE",
    "PROMPT",
    "Play",
    "asking",
    "at_a_time",
    "body_size",
    "depth",
    "event_size",
    "fetched_picture",
    "image_server_time",
    "kept",
    "packed_body",
    "painted_until",
    "pictures_of_an_edit",
    "pictures_per_response",
    "place_in_the_queue",
    "previews",
    "references",
    "silence",
    "sized",
    "socket_message",
    "turns",
    "turns_per_response",
]

PROMPT = "a red kite"
MADE = png(PROMPT)
SENT = f"data:image/png;base64,{base64.b64encode(png('sent')).decode()}"
LOOK = [{"role": "user", "content": [{"type": "input_image", "image_url": SENT}]}]
EDIT = json.dumps({"prompt": "make it blue", "num_last_images_to_include": 1})

Play = Callable[[bool, bool], Awaitable[list[str]]]
"""Meet a limit: over it or just not, for a stream or not; tell what the client saw."""


def seen(client: Client, *, stream: bool) -> list[str]:
    """Tell what a client was told: its items and how the response ended, or the error it got instead."""
    if not client.headers or client.status >= 400:
        return [f"{client.status} {client.json['error']['message']}"]
    if not stream:
        response = client.json
        assert check_response(response, tools=response["tools"], tool_choice="auto") == []
    else:
        assert check_stream(client.body, tools=[HOSTED], tool_choice="auto") == []
        response = read_events(client.body)[-1]["response"]
    items = [_told(item) for item in response["output"]]
    return [*items, response["status"] + (f": {response['error']['message']}" if response["error"] else "")]


def _told(item: dict[str, Any]) -> str:
    if item["type"] == "message":
        return "message"
    error = item.get("error")
    return f"picture {item['status']}" + (f" ({error['code']}): {error['message']}" if error else "")


def turns(stream: bool, *told: list[bytes]) -> ModelServer:
    """Make a model server that streams, or does not."""
    return ModelServer(*(told if stream else [Answer([whole(turn)], headers=[*JSON]) for turn in told]))


def asking(stream: bool, **fields: Any) -> dict[str, Any]:
    return draw(stream=stream, **fields)


def sized(
    setting: str,
    size: int | Callable[[bool], int],
    *told: list[bytes],
    **fields: Any,
) -> Play:
    """Make one request whose load is `size`, with the setting as large, or one smaller."""

    async def play(over: bool, stream: bool) -> list[str]:
        limit = (size if isinstance(size, int) else size(stream)) - over
        app = middleware(
            turns(stream, *(told or (calling(PROMPT), saying("Done.")))), Painter(), **{setting: limit}
        )
        return seen(await ask(app, asking(stream, **fields)), stream=stream)

    return play


LONG = "Draw a kite. " * 100


def body_size(stream: bool) -> int:
    return len(json.dumps(asking(stream, input=LONG)).encode())


async def packed_body(over: bool, stream: bool) -> list[str]:
    app = middleware(
        turns(stream, calling(PROMPT), saying("Done.")), Painter(), max_body=body_size(stream) - over
    )
    packed = gzip.compress(json.dumps(asking(stream, input=LONG)).encode())
    client = await ask(app, packed, post(headers=[(b"content-encoding", b"gzip")]))
    return seen(client, stream=stream)


async def socket_message(over: bool, stream: bool) -> list[str]:
    """Send a message over a WebSocket, whose responses are always streams."""
    server = ModelServer(calling(PROMPT), saying("Done."))
    message = json.dumps(create())
    async with connected(middleware(server, Painter(), max_body=len(message) - over)) as client:
        client.say(message)
        await client.heard_ends()
    last = client.events[-1]
    if last["type"] == "error":
        return [f"{last['status']} {last['error']['message']}"]
    return [*(_told(item) for item in last["response"]["output"]), last["response"]["status"]]


def event_size(stream: bool) -> int:
    """Measure the longest event: the line that holds it, or the answer that is none."""
    turn = saying("Hello, there.")
    return max(len(frame.splitlines()[1]) + 1 for frame in turn) if stream else len(whole(turn))


async def pictures_per_response(over: bool, stream: bool) -> list[str]:
    told = (calling(PROMPT, "a blue kite"), saying("Done."))
    server = turns(stream, *told)
    client = await ask(middleware(server, Painter(), max_images=2 - over), asking(stream))
    outputs = [item["output"] for item in server.asked[1].json["input"] if "output" in item]
    assert [json.loads(output)["status"] for output in outputs] == [
        "completed",
        "not run" if over else "completed",
    ]
    return seen(client, stream=stream)


async def turns_per_response(over: bool, stream: bool) -> list[str]:
    """Let the model call in two turns; beyond the limit the last one may call nothing, and does so anyway."""
    told = (calling(PROMPT), calling("a blue kite", response_id="resp_up2"), saying("Done."))
    server = turns(stream, *told)
    client = await ask(middleware(server, Painter(), max_turns=2 - over), asking(stream))
    choices = ["auto", "none"] if over else ["auto", "auto", "none"]
    assert [asked.json.get("tool_choice", "auto") for asked in server.asked] == choices
    return seen(client, stream=stream)


def painted_until(setting: str, *, limit: float = 50, **settings: Any) -> Play:
    """Let a picture take just less time than the limit, or just as much."""

    async def play(over: bool, stream: bool) -> list[str]:
        clock, painter = Clock(), Painter(waits=True)
        server = turns(stream, calling(PROMPT), saying("Done."))
        app = middleware(server, painter, **{setting: limit, **settings})
        async with conversation(app, asking(stream)) as client:
            await painter.was_asked()
            await settle()
            await clock.forward(limit - 1 + over)
            painter.may_finish.set()
        return seen(client, stream=stream)

    return play


async def silence(over: bool, stream: bool) -> list[str]:
    clock, more = Clock(), asyncio.Event()
    turn = saying("Hello, there.")
    steps: list[Step] = [*turn[:5], more, *turn[5:]] if stream else [more, whole(turn)]
    server = ModelServer(Answer(steps) if stream else Answer(steps, headers=[*JSON]))
    async with conversation(middleware(server, Painter(), upstream_idle=50), asking(stream)) as client:
        await server.was_asked(1)
        await settle()
        await clock.forward(49 + over)
        more.set()
    return seen(client, stream=stream)


async def place_in_the_queue(over: bool, stream: bool) -> list[str]:
    clock, painter = Clock(), Painter(waits=True)
    server = turns(stream, calling(PROMPT, "a blue kite"), saying("Done."))
    app = middleware(server, painter, backend_concurrency=1, backend_queue=50)
    async with conversation(app, asking(stream)) as client:
        await painter.was_asked()
        await settle()
        await clock.forward(49 + over)
        painter.may_finish.set()
    return seen(client, stream=stream)


def at_a_time(setting: str) -> Play:
    """Let three pictures be made at a time, or two, and then the third. Who waits is not told."""

    async def play(over: bool, stream: bool) -> list[str]:
        painter = Painter(waits=True)
        server = turns(stream, calling("one", "two", "three"), saying("Done."))
        async with conversation(middleware(server, painter, **{setting: 3 - over}), asking(stream)) as client:
            await painter.was_asked(3 - over)
            await settle()
            assert len(painter.asked) == 3 - over
            painter.may_finish.set()
        return seen(client, stream=stream)

    return play


async def image_server_time(over: bool, stream: bool) -> list[str]:
    """Ask a server that answers, or one that only listens."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hold(reader)

    server = OpenAI()
    async with raw_server(listen) as silent:
        with server.served() as url:
            given = {**server.config, "timeout": 0.1 if over else 60.0}
            app = middleware(
                turns(stream, calling(PROMPT), saying("Done.")),
                OpenAIImagesBackend(silent if over else url, **given),
            )
            async with lifespan(app):
                client = await ask(app, asking(stream), owners=1)
    return seen(client, stream=stream)


@contextmanager
def fetching_from_here() -> Iterator[None]:
    """Let this machine count as a public one."""
    with pytest.MonkeyPatch.context() as patch:

        def fetcher(hosts: Any, *, max_bytes: int) -> Fetcher:
            async def here(host: str, port: int) -> list[str]:
                return ["127.0.0.1"]

            return Fetcher(("*:*",), max_bytes=max_bytes, resolve=here, is_public=lambda _: True)

        patch.setattr(creation, "Fetcher", fetcher)
        yield


async def fetched_picture(over: bool, stream: bool) -> list[str]:
    data = png("sent") + bytes(10 * over)
    async with site(file_answer(data)) as (host, _):
        look = [{"role": "user", "content": [{"type": "input_image", "image_url": f"http://{host}/"}]}]
        with fetching_from_here():
            app = middleware(
                turns(stream, calling(PROMPT, arguments=EDIT), saying("Done.")),
                Painter(makes=lambda _: png("a")),
                fetch_hosts="pictures.example",
                max_image=max(len(png("sent")), len(png("a"))),
            )
        return seen(await ask(app, asking(stream, input=look)), stream=stream)


async def depth(over: bool, stream: bool) -> list[str]:
    deep: Any = []
    for _ in range(200 - 4 + over):  # the request, `metadata`, `deep` and the innermost list are levels, too
        deep = [deep]
    app = middleware(turns(stream, calling(PROMPT), saying("Done.")), Painter())
    return seen(await ask(app, asking(stream, metadata={"deep": {"er": deep}})), stream=stream)


async def references(over: bool, stream: bool) -> list[str]:
    named = [{"type": "item_reference", "id": f"msg_{count}"} for count in range(2_000 + over)]
    app = middleware(turns(stream, calling(PROMPT), saying("Done.")), Painter())
    return seen(await ask(app, asking(stream, input=named)), stream=stream)


async def pictures_of_an_edit(over: bool, stream: bool) -> list[str]:
    look = [{"role": "user", "content": LOOK[0]["content"] * 6}]
    wish = json.dumps({"prompt": "join them", "num_last_images_to_include": 5 + over})
    app = middleware(turns(stream, calling(PROMPT, arguments=wish), saying("Done.")), Painter())
    return seen(await ask(app, asking(stream, input=look)), stream=stream)


async def previews(over: bool, stream: bool) -> list[str]:
    app = middleware(turns(stream, calling(PROMPT), saying("Done.")), Painter())
    tools = [{**HOSTED, "partial_images": 3 + over}]
    client = await ask(app, asking(stream, tools=tools))
    if client.status == 200 and stream:
        assert client.body.count(b"event: response.image_generation_call.partial_image\n") == 3
        response = read_events(client.body)[-1]["response"]
        return [*(_told(item) for item in response["output"]), response["status"]]
    if client.status == 200:
        return [*(_told(item) for item in client.json["output"]), client.json["status"]]
    return seen(client, stream=stream)


def kept(**limits: Any) -> Play:
    """Go on from a response that was to be kept; `limits` are the store's, with room for it or without."""

    async def play(over: bool, stream: bool) -> list[str]:
        time = [0.0]
        room = {"entries": 100, "max_bytes": 1 << 20, "ttl": 50, **{k: v[over] for k, v in limits.items()}}
        store = MemoryStore(entries=room["entries"], max_bytes=room["max_bytes"], now=lambda: time[0])
        told = (saying("Hello."), saying("Again.", response_id="resp_up3"))
        app = middleware(turns(stream, *told), Painter(), store=store, store_ttl=room["ttl"])
        first = await ask(app, asking(stream))
        name = (read_events(first.body)[-1]["response"] if stream else first.json)["id"]
        time[0] = 49
        return seen(await ask(app, asking(stream, previous_response_id=name)), stream=stream)

    return play
