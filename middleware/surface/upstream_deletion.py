"""Deletes the turns of a response at the model server, which may have stored each under its own id."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Scope

from ..body import with_body
from ..cancellation import from_outside
from ..turns import turn_scope

__all__ = ["delete_upstream"]

log = logging.getLogger("imagecall")

_PATIENCE = 10.0
"""Seconds for one turn; nothing else would end a deletion at a model server that does not answer."""

_NOT_THERE = (404, 405, 501)
"""Answers of servers that store nothing, and of those that have no such request."""


async def delete_upstream(app: ASGIApp, scope: Scope, identifiers: tuple[str, ...]) -> None:
    """Ask the inner application to delete responses. That it cannot is logged, and no more.

    Args:
        app: the inner application.
        scope: of the client's own DELETE.
        identifiers: the model server's ids.
    """
    for identifier in identifiers:
        try:
            status = await _delete(app, _scope(scope, identifier))
        except (Exception, asyncio.CancelledError) as error:  # to the client it is deleted all the same
            if isinstance(error, asyncio.CancelledError) and from_outside():
                raise
            log.warning("a turn was not deleted: the inner application raised %s", type(error).__name__)
            continue
        if not 200 <= status < 300 and status not in _NOT_THERE:
            log.warning("a turn was not deleted: the model server answered with status %d", status)


def _scope(scope: Scope, identifier: str) -> Scope:
    own = {**turn_scope(scope, 0, 1), "path": _above(scope["path"]) + identifier}
    own["raw_path"] = quote(own["path"], safe="/:@!$&'()*+,;=~").encode()
    return own


def _above(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0] + "/"


async def _delete(app: ASGIApp, scope: Scope) -> int:
    answered = asyncio.Event()
    status = 0

    async def gone() -> Message:
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif not message.get("more_body", False):
            answered.set()
            deadline.reschedule(None)  # what the application does afterwards may take its time

    async with asyncio.timeout(_PATIENCE) as deadline:
        await app(scope, with_body(b"", gone), send)
    return status
