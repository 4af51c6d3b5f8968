"""The name of a request: in every line of the log that belongs to it, towards the model server and back."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from starlette.types import Scope

from .headers import Headers, RawHeader

__all__ = ["HEADER", "RequestIdFilter", "forwarded", "identified", "returned"]

HEADER = b"x-request-id"

_SANE = re.compile(rb"[\w.:/+=@-]{1,128}", re.ASCII)
"""What a client's own id may look like: it stands in logs and in headers."""

_request_id: ContextVar[str] = ContextVar("imagecall_request_id", default="")
"""The name of the request that a task is about; "" for none."""


@contextmanager
def identified(scope: Scope, new_id: Callable[[str], str]) -> Iterator[None]:
    """Name a request as its client does, if it does so sanely, else anew; what surrounds us may have done so.

    Args:
        scope: of the request.
        new_id: makes an id that begins with the given prefix and an underscore.
    """
    given = [value for name, value in scope["headers"] if name == HEADER]
    sane = len(given) == 1 and _SANE.fullmatch(given[0])
    token = _request_id.set(given[0].decode() if sane else new_id("req"))
    try:
        yield
    finally:
        _request_id.reset(token)


def forwarded(headers: Iterable[RawHeader]) -> Headers:
    """Return the headers of a request to the model server, with the request's name in them."""
    kept = [*headers]
    name = _request_id.get().encode()
    if not name or (HEADER, name) in kept:
        return kept
    return [*(pair for pair in kept if pair[0].lower() != HEADER), (HEADER, name)]


def returned(headers: Iterable[RawHeader]) -> Headers:
    """Return the headers of an answer, with the request's name if they hold no other.

    A model server's own name for it stays: clients' SDKs show that one, and its operator knows it.
    """
    kept = [*headers]
    name = _request_id.get().encode()
    if not name or any(known.lower() == HEADER for known, _ in kept):
        return kept
    return [*kept, (HEADER, name)]


class RequestIdFilter(logging.Filter):
    """Gives each record a `request_id`, and drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Note the name of the request that the running task is about; "-" for none."""
        record.request_id = _request_id.get() or "-"
        return True


# Our own logger only: how records are shown is up to the application.
logging.getLogger("imagecall").addFilter(RequestIdFilter())
