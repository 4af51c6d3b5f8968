"""Trace context in headers: taken from a client's, put into those of model and image servers."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry import baggage, propagate, trace
from opentelemetry.context import Context, get_current
from opentelemetry.propagators.textmap import Getter
from starlette.types import Scope

from ..headers import Headers, RawHeader

__all__ = ["add_trace_headers", "parent_of", "trace_headers"]


class _ScopeHeaders(Getter[Headers]):
    def get(self, carrier: Headers, key: str) -> list[str] | None:
        name = key.lower().encode()
        return [value.decode("latin-1") for known, value in carrier if known.lower() == name] or None

    def keys(self, carrier: Headers) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier]


_GETTER = _ScopeHeaders()


def parent_of(scope: Scope) -> Context:
    """Return the context in which a request is answered.

    It is the current one if a span is active in it, such as that of an instrumented server; else what the
    client's own headers tell.
    """
    context = get_current()
    if trace.get_current_span(context).get_span_context().is_valid:
        return context
    return propagate.extract(scope["headers"], context, _GETTER)


def add_trace_headers(headers: Iterable[RawHeader], context: Context | None = None) -> Headers:
    """Return a request's headers with those of the current trace, or of `context`, in place of their own.

    Where there is no trace they stay as they are.
    """
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    own = {name.lower().encode(): value.encode() for name, value in carrier.items()}
    return [*(pair for pair in headers if pair[0].lower() not in own), *own.items()]


def trace_headers() -> dict[str, str]:
    """Return the headers that continue the current trace elsewhere.

    Baggage stays here: the client's side says it to the model's, and an image server may be anybody's.
    """
    carrier: dict[str, str] = {}
    propagate.inject(carrier, baggage.clear(get_current()))
    return carrier
