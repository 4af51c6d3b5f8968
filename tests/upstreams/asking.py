"""Asks an endpoint in one situation, and judges each answer by the tests' rules and the official SDK."""

from __future__ import annotations

import json

import aiohttp
from accumulator import accumulate, check_types
from rules import check_response, check_stream, read_events

from .situations import Json, Situation, count

__all__ = ["Broken", "ask"]

_LIMIT = aiohttp.ClientTimeout(total=240)


class Broken(Exception):  # noqa: N818  it says that something is broken
    """An answer is not as it must be; the message says what is wrong."""


async def ask(url: str, model: str, situation: Situation) -> dict[str, int]:
    """Go through one situation; return what the last response's output was made of.

    Args:
        url: the endpoint's base, with `/v1`.
        model: the model to name.
        situation: what to ask.

    Raises:
        Broken: an answer breaks a rule, or a server refuses the request.
    """
    async with aiohttp.ClientSession(timeout=_LIMIT) as session:
        endpoint = _Endpoint(session, f"{url}/responses", model)
        if situation.background:
            response = await endpoint.in_background(situation.request)
        else:
            response = await endpoint.create(situation.request)
        if situation.then is not None:
            first = [item for item in response["output"] if item["type"] == "image_generation_call"]
            past = [*situation.request["input"], *map(_by_id, response["output"])]
            response = await endpoint.create({**situation.then, "input": past + situation.then["input"]})
            _check_edit(first, response)
    return count(response["output"])


def _by_id(item: Json) -> Json:
    """Write a picture as clients do that send its id alone; the store has the rest."""
    return {"type": item["type"], "id": item["id"]} if item["type"] == "image_generation_call" else item


def _check_edit(first: list[Json], response: Json) -> None:
    edited = [item for item in response["output"] if item["type"] == "image_generation_call"]
    if not first or not edited:
        raise Broken(f"there is no picture to compare: {count(response['output'])}")
    if edited[0].get("action") != "edit" or edited[0]["result"] == first[0]["result"]:
        raise Broken(f"the second picture is no edit of the first: {edited[0].get('action')}")


class _Endpoint:
    def __init__(self, session: aiohttp.ClientSession, url: str, model: str) -> None:
        self._session = session
        self._url = url
        self._model = model

    async def create(self, request: Json) -> Json:
        """Ask; return the response, checked."""
        request = {"model": self._model, **request}
        body = await self._call("POST", self._url, request)
        if request["stream"]:
            return _streamed(body, request)
        return _whole(body, request)

    async def in_background(self, request: Json) -> Json:
        """Ask for a response in the background; read it as a stream and whole, and delete it."""
        queued = json.loads(
            await self._call("POST", self._url, {"model": self._model, **request, "background": True})
        )
        if queued["status"] != "queued":
            raise Broken(f"a response in the background has the status {queued['status']!r}")
        kept = f"{self._url}/{queued['id']}"
        streamed = _streamed(await self._call("GET", f"{kept}?stream=true"), request)
        if _whole(await self._call("GET", kept), request)["output"] != streamed["output"]:
            raise Broken("the kept response differs from its stream")
        await self._call("DELETE", kept)
        return streamed

    async def _call(self, method: str, url: str, body: Json | None = None) -> bytes:
        async with self._session.request(method, url, json=body) as answer:
            read = await answer.read()
        if answer.status != 200:
            raise Broken(f"{method} was answered {answer.status}: {read[:300].decode(errors='replace')}")
        return read


def _streamed(body: bytes, request: Json) -> Json:
    # A server's own texts go to the client as they came, with whatever they lack.
    ours = [
        sentence for sentence in check_types(body) if sentence.startswith("response.image_generation_call.")
    ]
    if wrong := check_stream(body, **_told(request)) + ours:
        raise Broken(" ".join(wrong[:3]))
    response: Json = read_events(body)[-1]["response"]
    _check_end(response)
    if accumulate(body).id != response["id"]:
        raise Broken("the SDK's accumulator has another response")
    return response


def _whole(body: bytes, request: Json) -> Json:
    response: Json = json.loads(body)
    if wrong := check_response(response, **_told(request)):
        raise Broken(" ".join(wrong[:3]))
    _check_end(response)
    return response


def _check_end(response: Json) -> None:
    if response["status"] != "completed":
        raise Broken(f"the response is {response['status']}: {response.get('error')}")


def _told(request: Json) -> Json:
    own = [tool["name"] for tool in request["tools"] if tool["type"] == "function"]
    return {
        "tools": request["tools"],
        "tool_choice": request.get("tool_choice", "auto"),
        "client_functions": own,
    }
