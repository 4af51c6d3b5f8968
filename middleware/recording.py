"""A recorded exchange as a folder of small files that people can read and diff.

| file | what |
| --- | --- |
| `request.json` | the client's request |
| `upstream.1.sse`, `upstream.2.json`, … | what the model server answered, turn by turn, as received |
| `client.sse` or `client.json` | what the client got |
| `meta.toml` | where it comes from, each turn's status and content type, each file's SHA-256 |
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.types import Receive, Scope, Send

from ..events.sse import KEEPALIVE
from ..events.wire import dumps, loads
from .asgi import ImageGenerationMiddleware
from .headers import header
from .local import post
from .recorded import RecordedBackend, RecordedOrder, recorded_clock, recorded_ids
from .replay import Chunks, Meta, RecordedTurn, Recording, ReplayApp, frame_by_frame

__all__ = ["Recording", "RecordingError", "read_recording", "replay_recording", "write_recording"]

_META = "meta.toml"
_KEEPALIVE = re.compile(b"^" + re.escape(KEEPALIVE), re.MULTILINE)
_FILE = re.compile(r"request\.json|(?:upstream\.[1-9]\d*|client)\.(?:sse|json)")
_CONTENT_TYPES = {".sse": "text/event-stream", ".json": "application/json"}
_KEPT_HEADERS = ("content-type", "content-encoding", "retry-after")
"""What a replay needs of an answer's headers; the others may hold somebody's cookies or names."""


class RecordingError(ValueError):
    """A folder is no recording, or no longer the one that was made."""


def write_recording(
    folder: Path, request: Any, turns: Iterable[RecordedTurn], client: bytes, meta: Meta | None = None
) -> None:
    """Write a recording; one that is there already is replaced.

    Args:
        folder: where to; it is made if need be.
        request: the client's request, as parsed JSON.
        turns: what the model server answered.
        client: what the client got. Keep-alive comments are left out: they come by the clock.
        meta: where it comes from.
    """
    answers = {f"upstream.{number}{_suffix(turn)}": turn for number, turn in enumerate(turns, 1)}
    told = _KEEPALIVE.sub(b"", client)
    files = {
        "request.json": _pretty(request),
        **{name: turn.body for name, turn in answers.items()},
        "client.json" if told.lstrip().startswith(b"{") else "client.sse": told,
    }
    tables: dict[str, Meta] = {"": meta or {}}
    for number, turn in enumerate(answers.values(), 1):
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in turn.headers}
        kept = {name: headers[name] for name in _KEPT_HEADERS if name in headers}
        tables[f"turn.{number}"] = {"status": turn.status, **kept}
    tables["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for old in _files_in(folder):
        (folder / old).unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / _META).write_bytes(_toml(tables).encode())


def read_recording(folder: Path) -> Recording:
    """Read a recording and check that its files are those that were written.

    Raises:
        RecordingError: something is missing, was changed or was added.
    """
    meta = _read_meta(folder)
    digests, heads = meta.pop("sha256", {}), meta.pop("turn", {})
    files: dict[str, bytes] = {}
    for name in sorted(_files_in(folder) | {name for name in digests if _FILE.fullmatch(name)}):
        try:
            files[name] = (folder / name).read_bytes()
        except OSError as error:
            raise RecordingError(f"{folder / name} cannot be read: {error.strerror}") from error
        if name not in digests:
            raise RecordingError(f"{folder / name} is not listed under [sha256] in {_META}; record again")
        if hashlib.sha256(files[name]).hexdigest() != digests[name]:
            raise RecordingError(
                f"{folder / name} is not as it was recorded: its SHA-256 differs from {_META}"
            )
    turns: list[RecordedTurn] = []
    while found := _one_of(files, f"upstream.{len(turns) + 1}"):
        turns.append(_turn(files[found], Path(found).suffix, heads.get(str(len(turns) + 1), {})))
    client = _one_of(files, "client")
    if client is None or "request.json" not in files or len(turns) + 2 != len(files):
        raise RecordingError(
            f"{folder} is no whole recording: it needs request.json, upstream.1 and so on without a gap, "
            "and one client file"
        )
    return Recording(loads(files["request.json"]), tuple(turns), files[client], meta)


def replay_recording(
    recording: Recording,
    *,
    chunks: Chunks = frame_by_frame,
    on_turn: Callable[[int], None] | None = None,
) -> bytes:
    """Translate a recorded exchange again and return what the client gets now.

    `chunks` cuts the model server's bodies; pieces larger than a frame can change the order in which
    pictures and model server speak. `on_turn` is told, each time the model server is asked, how many
    bytes the client has got by then.

    The model server's turns, the pictures, the ids that were made up and the order of it all come
    from the recording; everything else is the middleware as it is today, with its default settings.
    """
    order = RecordedOrder(recording)
    server = order.pace(ReplayApp(recording.turns, chunks=chunks))
    got = 0

    def sent(status: int, piece: bytes) -> None:
        nonlocal got
        got += len(piece)
        order.sent(status, piece)

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        if on_turn is not None:
            on_turn(got)
        await server(scope, receive, send)

    app = ImageGenerationMiddleware(
        asked,
        RecordedBackend(recording, order),
        new_id=recorded_ids(recording),
        now=recorded_clock(recording),
        keepalive=0,
    )
    path = "/v1/responses"
    return asyncio.run(post(app, path, dumps(recording.request), on_bytes=sent)).body


def _files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if _FILE.fullmatch(path.name)}


def _one_of(files: Iterable[str], stem: str) -> str | None:
    return next((name for name in files if Path(name).stem == stem), None)


def _suffix(turn: RecordedTurn) -> str:
    kind = header(turn.headers, b"content-type")
    return ".sse" if kind.lower().startswith(b"text/event-stream") else ".json"


def _turn(body: bytes, suffix: str, head: Mapping[str, Any]) -> RecordedTurn:
    named = {"content-type": _CONTENT_TYPES[suffix], **head}
    status = named.pop("status", 200)
    return RecordedTurn(body, status, tuple((n.encode(), str(v).encode("latin-1")) for n, v in named.items()))


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / _META).read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordingError(f"{folder} is no recording: {_META} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordingError(f"{folder / _META} is not TOML: {error}") from error


def _pretty(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _toml(tables: Mapping[str, Meta]) -> str:
    """Write tables in the given order; the one without a name comes first."""
    blocks = []
    for title, table in tables.items():
        lines = [f"[{title}]"] if title else []
        lines += [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in table.items()]
        blocks.append("\n".join(lines))
    return "\n\n".join(filter(None, blocks)) + "\n"


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: str | float) -> str:
    # JSON's strings, numbers and booleans are TOML's as well, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
