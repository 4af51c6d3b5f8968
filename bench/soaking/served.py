"""The `imagecall` command with one path more, which tells what runs inside.

`python -m bench.soaking.served serve …`: everything else is the command as it is installed. Descriptors,
sockets and memory are read from outside.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from imagecall.events.translator import Translator
from imagecall.middleware import cli
from imagecall.middleware.background.job import Job
from imagecall.middleware.exchange import Exchange
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.websocket.connection import ResponsesSocket
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

__all__ = ["CENSUS", "main"]

CENSUS = "/census"

_KINDS = (Exchange, Translator, Job, ResponsesSocket)


_forward = ProxyApp.__call__


async def _watched(proxy: ProxyApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer the path of the census; forward all others to the model server."""
    if scope["type"] == "http" and scope["path"] == CENSUS:
        await JSONResponse({"tasks": _tasks(), "objects": _objects()})(scope, receive, send)
    else:
        await _forward(proxy, scope, receive, send)


def _tasks() -> dict[str, int]:
    """Count the tasks by what they run, but for the one that asks."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return dict(Counter(getattr(task.get_coro(), "__qualname__", "?") for task in others))


def _objects() -> dict[str, int]:
    """Count what holds all parts of a request, and should be gone with it."""
    gc.collect()
    counts = Counter(dict.fromkeys(_KINDS, 0))
    for one in gc.get_objects():
        if type(one) in _KINDS:
            counts[type(one)] += 1
    return {kind.__name__: count for kind, count in counts.items()}


def main() -> None:
    """Run the command."""
    ProxyApp.__call__ = _watched  # type: ignore[method-assign,assignment]  # the bench's own
    cli.main()


if __name__ == "__main__":
    main()
