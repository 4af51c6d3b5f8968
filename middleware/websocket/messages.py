"""What travels over a WebSocket of the Responses API besides events: the client's messages, our errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from ...events.errors import RequestError
from ...events.wire import NestingError, dumps, loads
from ..headers import Headers, end_to_end

__all__ = ["Create", "error_payload", "http_scope", "read_create"]

_ENVELOPE = frozenset({"type", "stream_id", "generate"})
"""Fields of the message itself; the others are those of `POST /v1/responses`."""

_OF_THE_HANDSHAKE = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"content-length",
        b"content-type",
        # One key for all requests of a connection would have the second answered with the first's response.
        b"idempotency-key",
    }
)


@dataclass(frozen=True, slots=True)
class Create:
    """A `response.create`.

    Attributes:
        body: the request, as it would be POSTed; always of a stream.
        stream_id: the client's name for the lane, shown again in each event; None if it gave none.
        unsupported: the field that asks for what cannot be done here.
    """

    body: Mapping[str, Any]
    stream_id: str | None
    unsupported: str | None

    def check(self) -> None:
        """Refuse what cannot be done here.

        Raises:
            RequestError: naming the field.
        """
        if self.unsupported == "generate":
            raise RequestError(
                "Warm-ups (generate: false) are not supported here; leave generate out to get a response.",
                param="generate",
                code="unsupported_parameter",
            )
        if self.unsupported == "background":
            raise RequestError(
                "background is not supported over WebSocket; POST the request instead.",
                param="background",
                code="unsupported_parameter",
            )


def read_create(data: bytes) -> Create:
    """Read a client's message.

    Raises:
        NestingError: it is nested too deeply.
        RequestError: it is no `response.create`.
    """
    try:
        message = loads(data)
    except NestingError:
        raise
    except ValueError:
        raise RequestError("The message is not valid JSON.", code="invalid_json") from None
    if not isinstance(message, dict):
        raise RequestError("The message must be a JSON object.", code="invalid_json")
    kind = message.get("type")
    if kind == "response.steer":
        raise RequestError(
            "Steering is not supported here; wait for the response's end and send a response.create.",
            param="type",
            code="steering_not_supported",
        )
    if kind != "response.create":
        raise RequestError(
            "The message's type must be response.create; nothing else is supported here.",
            param="type",
            code="unknown_message_type",
        )
    lane = message.get("stream_id")
    if lane is not None and not isinstance(lane, str):
        raise RequestError("stream_id must be a string.", param="stream_id")
    unsupported = None
    if message.get("generate") is False:
        unsupported = "generate"
    elif message.get("background"):
        unsupported = "background"
    body = {name: value for name, value in message.items() if name not in _ENVELOPE}
    return Create({**body, "stream": True}, lane, unsupported)


def http_scope(scope: Scope) -> Scope:
    """Make the scope of a POST from that of the WebSocket which carried the request.

    Its headers are those of the handshake, credentials included; a state of its own, no extensions.
    """
    headers: Headers = [
        (name, value)
        for name, value in end_to_end(scope["headers"])
        if name not in _OF_THE_HANDSHAKE and not name.startswith(b"sec-websocket-")
    ]
    headers += [
        (b"accept", b"text/event-stream"),
        (b"accept-encoding", b"identity"),
        (b"content-type", b"application/json"),
    ]
    own = {name: value for name, value in scope.items() if name not in ("subprotocols", "extensions")}
    if "state" in scope:
        own["state"] = dict(scope["state"])
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "ws"), "http")
    return {**own, "type": "http", "method": "POST", "scheme": scheme, "headers": headers}


def error_payload(
    status: int, message: str, *, kind: str, param: str | None = None, code: str | None = None
) -> bytes:
    """Make the event that tells of an error: nested, as clients of a WebSocket expect it.

    Args:
        status: what it would be over HTTP.
        message: one sentence.
        kind: the error's type.
        param: the path of the wrong field.
        code: a machine-readable reason.
    """
    error = {"type": kind, "code": code, "message": message, "param": param}
    return dumps({"type": "error", "status": status, "error": error})
