"""The least that a proxy on aiohttp can do: hand on what comes. `python -m bench.raw_proxy UPSTREAM FD`."""

from __future__ import annotations

import socket
import sys

import aiohttp
import uvicorn
from starlette.types import Receive, Scope, Send

_UPSTREAM = sys.argv[1] if len(sys.argv) > 1 else ""
_session: list[aiohttp.ClientSession] = []


async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
    """Forward a POST and its answer."""
    if not _session:
        _session.append(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
            )
        )
    message = await receive()
    kind = {"content-type": "application/json"}
    async with _session[0].post(_UPSTREAM + scope["path"], data=message["body"], headers=kind) as answer:
        headers = [(b"content-type", answer.headers["content-type"].encode())]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


if __name__ == "__main__":
    config = uvicorn.Config(proxy, lifespan="off", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[2]))])
