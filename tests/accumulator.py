"""Streams run through openai-python's own decoder and accumulator, as its users run them."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, get_args

import httpx2
import openai
import pydantic
from openai.types.responses import ParsedResponse, ResponseStreamEvent
from rules import read_events

__all__ = ["accumulate", "accumulate_events", "check_types"]

_UNION, *_ = get_args(ResponseStreamEvent)
_MODELS: dict[str, type[pydantic.BaseModel]] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(_UNION)
}


def _client(body: bytes) -> openai.OpenAI:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://server/v1", http_client=http, max_retries=0)


def accumulate(body: bytes) -> ParsedResponse[None]:
    """Return the final response that `client.responses.stream()` gathers from a completed stream.

    Raises:
        RuntimeError: the accumulator refused the stream, or it did not end in `response.completed`.
        openai.APIError: the stream carried an error.
    """
    with warnings.catch_warnings(), _client(body) as client:
        # The SDK serialises items newer than its own types on its way, and grumbles about them.
        warnings.filterwarnings("ignore", "Pydantic serializer warnings")
        with client.responses.stream(model="any", input="any") as stream:
            return stream.get_final_response()


def accumulate_events(body: bytes) -> list[Any]:
    """Return every event that `client.responses.stream()` yields, for streams that do not complete.

    At an `error` frame the SDK raises and stops: the events before it are returned.

    Raises:
        RuntimeError: the accumulator refused the stream.
    """
    events: list[Any] = []
    with (
        contextlib.suppress(openai.APIError),
        _client(body) as client,
        client.responses.stream(model="any", input="any") as stream,
    ):
        events.extend(stream)
    return events


def check_types(body: bytes) -> list[str]:
    """Hold every event against the SDK's published types; its accumulator never does that itself."""
    wrong: list[str] = []
    for event in read_events(body):
        try:
            _MODELS[event["type"]].model_validate(event)
        except pydantic.ValidationError as error:
            wrong.append(f"{event['type']}: {[(e['loc'], e['msg']) for e in error.errors()][:5]}")
    return wrong
