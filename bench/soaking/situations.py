"""What clients do: one conversation after the other, each of its own kind."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import aiohttp

from .pictures import BROKEN, HUGE, mark_of, paint, read_mark
from .talk import LEAVINGS, Client
from .tally import Tally
from .verdict import HOSTED, Heard, Wanted, events_of, response_of

__all__ = ["SITUATIONS", "Visitor", "fill_store"]

Json = dict[str, Any]

_LEAVE = 0.4
_SLOW = 0.1
"""The shares of streams that are left, and of those that are read slowly."""
_POLL = 0.2
_PER_REQUEST = 10
_RUNNING = ("queued", "in_progress")


class Visitor:
    """Somebody who holds one conversation after the other.

    Args:
        client: asks.
        tally: judges and counts.
        ids: responses that were made lately, with the credential of their owners; all visitors share it.
        restless: whether it leaves at times.
    """

    def __init__(
        self, client: Client, tally: Tally, ids: deque[tuple[str, str]], *, restless: bool = True
    ) -> None:
        self.client = client
        self.tally = tally
        self.ids = ids
        self.situation = ""
        self._restless = restless
        self._chance = client.chance

    async def visit(self, situation: str, tag: str, patience: float) -> None:
        """Hold one conversation; whatever goes wrong is noted."""
        self.situation = situation
        self.tally.situations[situation] += 1
        try:
            async with asyncio.timeout(patience):
                await SITUATIONS[situation][1](self, tag)
        except TimeoutError:
            self.tally.blame(situation, [f"Nothing came to {tag} for too long."])
        except (aiohttp.ClientError, OSError, LookupError, ValueError) as error:
            self.tally.blame(situation, [f"The connection or the answer broke: {error!r}"])

    def leaving(self) -> str:
        """Decide where to leave, if at all."""
        leaves = self._restless and self._chance.random() < _LEAVE
        return self._chance.choice([*LEAVINGS]) if leaves else ""

    def judged(self, heard: Heard, wanted: Wanted) -> Json | None:
        """Judge an answer; return its response if it was heard to its end and is right."""
        if not self.tally.add(heard, wanted, self.situation) or heard.left:
            return None
        response = response_of(heard)
        if wanted.tools and response.get("store") is not False:  # else nothing is known of it here
            self.ids.append((self.client.credential, response["id"]))
        return response

    async def ask(self, wanted: Wanted, asked: str, **fields: Any) -> Json | None:
        """Ask for a response; leave or dawdle as it happens."""
        body = request(wanted, asked, **fields)
        slow = self._chance.random() < _SLOW
        return self.judged(await self.client.post(body, self.leaving(), slow=slow), wanted)

    def wrong(self, sentence: str) -> None:
        """Note what no rule for streams can tell."""
        self.tally.blame(self.situation, [sentence])


def request(wanted: Wanted, asked: str, **fields: Any) -> Json:
    """Make a request's body."""
    body = {"model": "soak", "input": asked, "stream": True, "metadata": {"tag": wanted.tag}}
    return {**body, **({"tools": [*wanted.tools]} if wanted.tools else {}), **fields}


async def _words(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag), f"Tell me about {tag}")


async def _no_tool(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag, tools=()), f"Tell me about {tag}")


async def _picture(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag, 1), f"Draw a red kite {tag}")


async def _large_picture(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag, 1), f"Draw a {HUGE} mural {tag}", store=False)


async def _two_pictures(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag, 2), f"Draw a red cat {tag} and a blue dog {tag}")


async def _broken_picture(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag, 1, 1), f"Draw a {BROKEN} vase {tag} and a blue dog {tag}")


async def _previews(visitor: Visitor, tag: str) -> None:
    tools = ({**HOSTED, "partial_images": 2},)
    await visitor.ask(Wanted(tag, 1, tools=tools), f"Draw a green boat {tag}", store=False)


async def _json(visitor: Visitor, tag: str) -> None:
    await visitor.ask(Wanted(tag, 1), f"Draw a red kite {tag}", stream=False)


async def _two_turns(visitor: Visitor, tag: str) -> None:
    """Have a picture changed that only the store knows."""
    response = await visitor.ask(Wanted(tag, 1), f"Draw a red kite {tag}")
    if response is not None:
        change = Wanted(tag, 1, sources=(_mark(response),))
        await visitor.ask(change, f"Make it blue {tag}", previous_response_id=response["id"])


async def _socket(visitor: Visitor, tag: str) -> None:
    """Do the same over a WebSocket."""
    client = visitor.client
    async with client.socket() as socket:
        first = Wanted(tag, 1)
        body = request(first, f"Draw a red kite {tag}")
        response = visitor.judged(await client.over_socket(socket, body, visitor.leaving()), first)
        if response is not None:
            change = Wanted(tag, 1, sources=(_mark(response),))
            body = request(change, f"Make it blue {tag}", previous_response_id=response["id"])
            visitor.judged(await client.over_socket(socket, body, visitor.leaving()), change)


async def _polled(visitor: Visitor, tag: str) -> None:
    """Let a response be made in the background, and look for it."""
    wanted = Wanted(tag, 1)
    response = await _begun(visitor, wanted, f"Draw a red kite {tag}")
    while response["status"] in _RUNNING:
        await asyncio.sleep(_POLL)
        heard = await visitor.client.get(f"/{response['id']}")
        response = response_of(replace(heard, stream=False))
    visitor.judged(Heard(200, json.dumps(response).encode(), stream=False), wanted)


async def _cancelled(visitor: Visitor, tag: str) -> None:
    response = await _begun(visitor, Wanted(tag, 1), f"Draw a red kite {tag}")
    await asyncio.sleep(visitor.client.chance.uniform(0, 2))
    heard = await visitor.client.get(f"/{response['id']}/cancel", method="POST")
    visitor.judged(replace(heard, stream=False), Wanted(tag, 1, statuses=("cancelled", "completed")))


async def _begun(visitor: Visitor, wanted: Wanted, asked: str) -> Json:
    heard = await visitor.client.post(request(wanted, asked, stream=False, background=True))
    if heard.status != 200:
        raise ValueError(f"the status is {heard.status}: {heard.body[:300]!r}")
    return response_of(heard)


async def _resumed(visitor: Visitor, tag: str) -> None:
    """Leave a stream in the background, and read the rest of it later."""
    wanted = Wanted(tag, 1)
    body = request(wanted, f"Draw a red kite {tag}", background=True)
    first = await visitor.client.post(body, visitor.leaving())
    events = events_of(first.body)
    if not first.left or not events:
        visitor.judged(first, wanted)
        return
    place = f"/{events[0]['response']['id']}?stream=true&starting_after={len(events) - 1}"
    rest = await visitor.client.get(place, stream=True)
    begun = first.body[: first.body.rfind(b"\n\n") + 2]
    visitor.judged(Heard(rest.status, begun + rest.body), wanted)


async def _stranger(visitor: Visitor, tag: str) -> None:
    """Ask for what is somebody else's: it must be as if it had never been."""
    others = [found for owner, found in visitor.ids if owner != visitor.client.credential]
    if not others:
        return
    found = visitor.client.chance.choice(others)
    heard = await visitor.client.get(f"/{found}")
    if heard.status != 404:
        visitor.wrong(f"Somebody else's response is answered with {heard.status}.")
    body = request(Wanted(tag), f"Make it blue {tag}", previous_response_id=found)
    heard = await visitor.client.post(body)
    if heard.status not in (400, 404) or b"previous_response_not_found" not in heard.body:
        visitor.wrong(f"Somebody else's response is continued with {heard.status}: {heard.body[:200]!r}")


async def fill_store(client: Client, size: int) -> None:
    """Put pictures of so many bytes into the store, as parts of conversations: ten in each request."""
    picture = base64.b64encode(paint(mark_of("filling"))).decode()
    for request_number in range(size // (_PER_REQUEST * len(picture)) + 1):
        names = (f"ig_{request_number}_{number}" for number in range(_PER_REQUEST))
        items = [
            {"type": "image_generation_call", "id": name, "status": "completed", "result": picture}
            for name in names
        ]
        question = {"role": "user", "content": "Tell me about all of them."}
        body = {"model": "soak", "input": [*items, question], "tools": [HOSTED]}
        heard = await client.post(body)
        if heard.status != 200:
            raise RuntimeError(f"the store could not be filled: {heard.status} {heard.body[:300]!r}")


def _mark(response: Json) -> bytes:
    pictures = (item for item in response["output"] if item["type"] == "image_generation_call")
    return read_mark(next(pictures)["result"])


SITUATIONS: dict[str, tuple[int, Callable[[Visitor, str], Awaitable[None]]]] = {
    "words": (10, _words),
    "no tool": (5, _no_tool),
    "a picture": (20, _picture),
    "a large picture": (3, _large_picture),
    "two pictures": (15, _two_pictures),
    "a picture that fails": (8, _broken_picture),
    "previews": (10, _previews),
    "JSON": (8, _json),
    "two turns": (10, _two_turns),
    "WebSocket": (8, _socket),
    "background, polled": (4, _polled),
    "background, cancelled": (3, _cancelled),
    "background, resumed": (4, _resumed),
    "a stranger": (2, _stranger),
}
"""How often each comes, and what happens in it."""
