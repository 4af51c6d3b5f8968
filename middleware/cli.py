"""The `imagecall` command: demo, serve, ask, record, replay."""

from __future__ import annotations

import asyncio
import logging
import logging.config
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..events.wire import loads
from .command_options import with_settings
from .demo import ModelName, demo_app
from .logs import LogFormat, LogLevel, log_config
from .recording import read_recording, replay_recording
from .serving import listening, serve_one, serve_several, upstream_app, uvicorn_options
from .settings import load_settings
from .terminal.asking import Asking
from .terminal.printable import one_line
from .terminal.terminal import record_exchange
from .terminal.timeline import timeline as draw_timeline

__all__ = ["app", "main"]

app = typer.Typer(
    help="The hosted image_generation tool in front of any /v1/responses endpoint.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

errors = Console(stderr=True, highlight=False, soft_wrap=True)

_INTERRUPTED = 130
"""The exit code after Ctrl+C, as shells have it."""

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""Of the demo's log: it has one user."""

Host = Annotated[str, typer.Option(help="The address to listen on.", envvar="IMAGECALL_HOST")]
Port = Annotated[int, typer.Option(help="The port to listen on.", envvar="IMAGECALL_PORT", min=1, max=65535)]
Workers = Annotated[
    int,
    typer.Option(
        help="Processes. Limits such as concurrency are each process's own.",
        envvar="IMAGECALL_WORKERS",
        min=1,
    ),
]

Upstream = Annotated[
    str,
    typer.Option(
        help="The model server, such as http://127.0.0.1:8000 (with or without /v1).",
        envvar="IMAGECALL_UPSTREAM",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"imagecall {version('imagecall')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """What can be said before a command."""


@app.command()
def demo(
    model: Annotated[ModelName, typer.Option(help="Which embedded model talks.")] = "auto",
    host: Host = "127.0.0.1",
    port: Port = 8765,
) -> None:
    """Run everything on this machine: a language model, the middleware, a picture maker and a page."""
    logging.basicConfig(format=_LOG_FORMAT, level=logging.WARNING)
    settings, served = load_settings({}), demo_app(model)
    listener, url = listening(host, port, settings)
    typer.echo(f"Open {url}/ in a browser. Stop with Ctrl+C.")
    serve_one(served, listener, settings.shutdown_grace, log_level="warning")


@app.command()
@with_settings
def serve(
    upstream: Upstream,
    host: Host = "127.0.0.1",
    port: Port = 8766,
    workers: Workers = 1,
    log_format: Annotated[
        LogFormat, typer.Option(help="How the log is written.", envvar="IMAGECALL_LOG_FORMAT")
    ] = "text",
    log_level: Annotated[
        LogLevel, typer.Option(help="What is logged, and all above it.", envvar="IMAGECALL_LOG_LEVEL")
    ] = "info",
    **settings: Any,
) -> None:
    """Stand in front of a model server at a URL."""
    log = log_config(log_format, log_level)
    logging.config.dictConfig(log)
    served, read = upstream_app(upstream, settings)
    if workers > 1 and read.store == "memory":
        raise ValueError(
            f"--workers {workers} needs a store that all of them share: choose --store redis://…, "
            "or --store none to keep nothing"
        )
    listener, url = listening(host, port, read)
    typer.echo(f"Listening on {url}, in front of {upstream}")
    if workers > 1:
        serve_several(workers, listener, upstream, settings, read, log)
    else:
        serve_one(served, listener, read.shutdown_grace, log_config=None, **uvicorn_options(read))


@app.command()
def ask(
    prompt: Annotated[str, typer.Argument(help="What the picture shows, or what to change in it.")],
    *,
    url: Annotated[
        str | None,
        typer.Option(
            help="An endpoint with the tool; left out, the embedded model is asked. IMAGECALL_API_KEY in the "
            "environment is sent to it as a bearer token."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
    edit: Annotated[Path | None, typer.Option(metavar="FILE", help="A picture to change.")] = None,
    model: Annotated[str, typer.Option(help="The model to ask for.")] = "local",
    size: Annotated[str | None, typer.Option(help="WIDTHxHEIGHT in pixels.")] = None,
    quality: Annotated[str | None, typer.Option(help="low, medium, high or auto.")] = None,
    background: Annotated[str | None, typer.Option(help="transparent, opaque or auto.")] = None,
    output_format: Annotated[
        str | None, typer.Option("--format", help="png, jpeg or webp; left out, as the file's name ends.")
    ] = None,
    partials: Annotated[int | None, typer.Option(help="Partial pictures wanted.", min=0, max=3)] = None,
    inline: Annotated[bool, typer.Option(help="Show the picture where the terminal can.")] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for scripts, and nothing else.")
    ] = False,
) -> None:
    """Ask a model for a picture and write it to a file."""
    tool = {
        "size": size,
        "quality": quality,
        "background": background,
        "output_format": output_format,
        "partial_images": partials,
    }
    try:
        Asking(prompt, url, model, tool, edit, output, inline, as_json).run()
    except KeyboardInterrupt:
        errors.print("imagecall: stopped", style="red")
        raise typer.Exit(_INTERRUPTED) from None


@app.command()
@with_settings
def record(
    upstream: Upstream,
    request: Annotated[Path, typer.Option(help="The client's request, a JSON file.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    **settings: Any,
) -> None:
    """Send a request through the middleware to a model server and keep what everybody said."""
    if settings.get("backend") is None and load_settings(settings).backend is None:
        settings["backend"] = "scene"
    try:
        body = loads(request.read_bytes())
    except OSError as error:
        raise ValueError(f"the request {request} cannot be read: {error.strerror}") from error
    except ValueError:
        raise ValueError(f"the request {request} is not JSON") from None
    typer.echo(f"Recorded in {out}: {asyncio.run(_recorded(upstream, body, out, settings))} turn(s)")


async def _recorded(upstream: str, body: Any, out: Path, settings: dict[str, Any]) -> int:
    try:
        return await record_exchange(upstream, body, out, settings)
    except OSError as error:
        raise ValueError(f"the recording {out} cannot be written: {error.strerror}") from error


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(help="A recorded exchange.")],
    check: Annotated[bool, typer.Option("--check", help="Compare with the recorded stream instead.")] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Draw the events instead: turns, items, sizes.")
    ] = False,
) -> None:
    """Translate a recorded exchange again and print what the client gets."""
    if check and timeline:
        raise ValueError("choose one of --check and --timeline")
    recording = read_recording(folder)
    if timeline:
        drawing = Console(highlight=False, soft_wrap=True)
        for line in draw_timeline(recording):
            drawing.print(line)
        return
    client = replay_recording(recording)
    if not check:
        sys.stdout.buffer.write(client)
        sys.stdout.buffer.flush()
    elif client == recording.client:
        typer.echo(f"{folder}: the same {len(client)} bytes")
    else:
        raise ValueError(f"{folder}: the client's stream differs from the recorded one")


def main() -> None:
    """Run the command. What goes wrong is one line and a non-zero exit."""
    try:
        logging.getLogger("imagecall").addHandler(logging.NullHandler())
        app(standalone_mode=True)
    except Exception as error:
        if os.environ.get("IMAGECALL_DEBUG"):
            raise
        message = one_line(str(error)) or type(error).__name__
        errors.print(f"imagecall: {message}", style="red", markup=False)
        raise SystemExit(1) from None
