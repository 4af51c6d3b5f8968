"""All settings, under one name each: keyword argument, `IMAGECALL_*` variable and command-line option."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ..events.calls import Limits
from ..events.lowering import LoweringOptions
from ..events.sse import MAX_EVENT
from ..events.turn import MAX_ARGUMENTS
from .backends.images_api.request import PAINTING
from .setting_values import Folder, Hosts, Names, NewFolder, Object, Origins, Paths, Strings, json_object

__all__ = ["Settings", "SettingsError", "load_settings"]


class SettingsError(ValueError):
    """A setting is wrong; the message is one line that names it."""


class Settings(BaseSettings):
    """How the middleware behaves. Keyword arguments win over `IMAGECALL_*` variables.

    Settings in which a secret may stand are not shown by `repr`.
    """

    model_config = SettingsConfigDict(env_prefix="IMAGECALL_", frozen=True, extra="forbid")

    backend: Annotated[Literal["scene", "openai", "mcp"] | dict[str, Any] | None, NoDecode] = Field(
        default=None,
        repr=False,
        description="Who makes the pictures: openai (a server with an Images API), mcp (an MCP server), "
        "scene (an offline placeholder), or in Python any object; or a JSON object that maps globs of the "
        "declared image model to several. "
        "Without one the model's calls reach the client as ordinary function calls.",
    )
    backend_url: str | None = Field(
        repr=False, default=None, description="The Images API's base with its /v1, or the MCP server's URL."
    )
    backend_command: str | None = Field(
        repr=False, default=None, description="The command that starts an MCP server which speaks over stdio."
    )
    backend_api_key: SecretStr | None = Field(
        default=None, description="Sent to the image server as a bearer token, and to nobody else."
    )
    backend_headers: Strings = Field(
        default={}, repr=False, description="More headers for the image server, a JSON object."
    )
    backend_model: str | None = Field(
        default=None, description="The model to name to the image server; left out, none is named."
    )
    backend_models: Strings = Field(
        default={},
        description="Globs of the declared model to the image server's own names, a JSON object.",
    )
    backend_body: Object = Field(
        default={},
        repr=False,
        description="More fields for each request to the Images API, a JSON object.",
    )
    backend_drop: Names = Field(
        default=(), description="Options never sent to the Images API, such as quality,background."
    )
    backend_pass_on: Names = Field(
        default=PAINTING,
        description="Globs of the fields that a client's declaration may set for the Images API beside those "
        "of the Responses API. With * a client can set whatever the server obeys.",
    )
    backend_edits: Literal["multipart", "json"] = Field(
        default="multipart", description="How pictures to edit travel to the Images API."
    )
    backend_response_format: Literal["auto", "b64_json", "none"] = Field(
        default="auto", description="Whether response_format is sent; auto: not for gpt-image models."
    )
    backend_stream: bool = Field(
        default=True, description="Whether the Images API is asked for a stream when previews are wanted."
    )
    backend_origins: Names = Field(
        default=(), description="Further origins that picture URLs of the image server may point to."
    )
    backend_tool: str | None = Field(
        default=None, description="The MCP server's tool; left out, the one that makes pictures is found."
    )
    backend_edit_tool: str | None = Field(
        default=None, description="The MCP server's tool that changes pictures, where it is another one."
    )
    backend_env: Strings = Field(
        default={},
        repr=False,
        description="Variables for the MCP server's command, such as its key, a JSON object.",
    )
    backend_files_dir: Path | None = Field(
        default=None, description="The folder from which pictures that the MCP server names by path are read."
    )
    backend_arguments: Object | None = Field(
        default=None, description="A template of the MCP tool's arguments, a JSON object."
    )
    backend_timeout: PositiveFloat = Field(
        default=300.0,
        description="Seconds for one picture at the image server, all retries included; at an MCP server, "
        "seconds of silence. A large model on one card takes minutes.",
    )
    backend_retries: NonNegativeInt = Field(
        default=2,
        description="Further attempts when the image server is busy or is out of reach; more fill its queue.",
    )
    backend_concurrency: PositiveInt = Field(
        default=4,
        description="Pictures that one image server makes at a time; others wait. One card paints one "
        "after the other anyway.",
    )
    backend_queue: NonNegativeFloat = Field(
        default=120.0,
        description="Seconds a picture may wait for the image server; then it fails, with time left for the "
        "model to say so.",
    )
    keep_metadata: bool = Field(
        default=False,
        description="Whether a picture keeps the prompt and workflow that its maker wrote into the file.",
    )
    store: str = Field(
        repr=False,
        default="memory",
        description="Where pictures and responses are kept for later turns: memory, none, or redis://….",
    )
    store_ttl: PositiveFloat = Field(
        default=86_400.0,
        description="Seconds something stays in the store: a day, since most conversations end within one.",
    )
    store_entries: PositiveInt = Field(
        default=10_000,
        description="Entries of the store in memory, however small; the least recently used give way.",
    )
    store_bytes: PositiveInt = Field(
        default=256 << 20,
        description="Bytes of the store in memory: room for some seventy pictures of 2 MB, a quarter being "
        "for the logs of streams. The least recently used give way.",
    )
    workspace_dir: Folder | None = Field(
        default=None, description="The folder whose pictures the model may name by path to have them edited."
    )
    artifact_dir: NewFolder | None = Field(
        default=None, description="The folder into which each finished picture is also written."
    )
    artifact_hint: bool = Field(
        default=False, description="Whether the model is told where the picture was written."
    )
    fetch_hosts: Hosts = Field(
        default=(),
        description="Hosts (globs) from which pictures to edit may be fetched by URL; none by default.",
    )
    models: Names = Field(
        default=("*",), description="Globs of the models to act for; others are left alone."
    )
    paths: Paths = Field(
        default=("/v1/responses", "/responses", "/openai/responses", "/openai/v1/responses"),
        description="The paths of the Responses endpoint.",
    )
    forced_choice: Literal["required", "function", "auto"] = Field(
        default="required",
        description='What a forced choice of the tool becomes: "required" with our function alone, the '
        "function named in an object, or an instruction for servers that refuse any force.",
    )
    feedback: Literal["text", "image", "image_output"] = Field(
        default="text",
        description="What the model gets of a picture: text; for vision models also the picture, in a "
        "user message or in the function's output.",
    )
    strict_arguments: bool = Field(
        default=False, description="Unknown arguments of the model are an error told to it, not dropped."
    )
    cors_origins: Origins = Field(
        default=(),
        description="Origins (or *) whose pages may read this middleware's own error answers; in "
        "`imagecall serve`, that may ask at all; and that may open a WebSocket.",
    )
    keepalive: NonNegativeFloat = Field(
        default=15.0,
        description="Seconds of silence before a keep-alive comment is sent; 0 for never. Proxies give up "
        "after 30 to 60.",
    )
    max_turns: PositiveInt = Field(
        default=8,
        description="Requests to the model server per response, before a last one that may call nothing: a "
        "picture and its corrections take three or four, more is a loop.",
    )
    max_images: PositiveInt = Field(
        default=10,
        description="Pictures per response: a model that runs wild must not fill a disk or empty a purse. "
        "Calls beyond are not run, and the model is told so.",
    )
    max_prompt: PositiveInt = Field(
        default=32_000, description="Characters of one prompt: OpenAI's own limit."
    )
    max_arguments: PositiveInt = Field(
        default=MAX_ARGUMENTS,
        description="Characters of one call's arguments: eight times the longest prompt, as it may be "
        "escaped, and far from filling the memory.",
    )
    max_body: PositiveInt = Field(
        default=128 << 20,
        description="Bytes of a request body or a WebSocket message, unpacked: a history with ten pictures "
        "of 9 MB in base64. Each is held in memory, and before the model server has seen who is asking.",
    )
    max_event: PositiveInt = Field(
        default=MAX_EVENT,
        description="Bytes of one upstream event, or of an answer that is no stream: the last event repeats "
        "the whole output. Without a bound a line without an end would fill the memory.",
    )
    max_image: PositiveInt = Field(
        default=32 << 20,
        description="Bytes of one picture, made, edited or fetched: a 4K picture has 25 MB where nothing "
        "shrinks it.",
    )
    max_pixels: PositiveInt = Field(
        default=7680 * 4320,
        description="Pixels of one picture, made or edited: 8K (7680x4320), 133 MB when it is decoded. A "
        "file of some kilobytes may claim any number.",
    )
    call_timeout: PositiveFloat = Field(
        default=300.0,
        description="Seconds for one picture, queue included: a large model on one card takes minutes.",
    )
    response_timeout: PositiveFloat = Field(
        default=1_800.0,
        description="Seconds for one response: some slow pictures one after the other; nobody waits longer.",
    )
    upstream_idle: PositiveFloat = Field(
        default=600.0,
        description="Seconds a model server may be silent within a turn: a long history on a slow machine "
        "is read for minutes before the first word.",
    )
    concurrency: PositiveInt = Field(
        default=8,
        description="Pictures made at a time, per process; others wait. Each is in memory several times.",
    )
    concurrency_per_response: PositiveInt = Field(
        default=4,
        description="Pictures made at a time, per response: half of the process's, so that one client "
        "leaves room for the others.",
    )
    disconnect_grace: NonNegativeFloat = Field(
        default=5.0,
        description="Seconds the inner application has to stop by itself once the client has gone.",
    )
    shutdown_grace: NonNegativeFloat = Field(
        default=5.0,
        description="Seconds that responses may go on once the server was told to stop; then they end as "
        "failed. Docker kills after ten.",
    )

    @field_validator("backend", mode="before")
    @classmethod
    def _route(cls, value: object) -> object:
        return json_object(value) if isinstance(value, str) and value.lstrip().startswith("{") else value

    @property
    def client_patience(self) -> float:
        """Seconds after which a client is cut off that takes nothing of its response and does not go."""
        return self.response_timeout + self.disconnect_grace

    def limits(self) -> Limits:
        """Return what the translator needs of the limits."""
        return Limits(
            max_event=self.max_event,
            max_arguments=self.max_arguments,
            max_prompt=self.max_prompt,
            max_images=self.max_images,
            max_turns=self.max_turns,
        )

    def lowering(self, *, backend: bool) -> LoweringOptions:
        """Return what lowering needs; `backend` tells whether pictures can be made."""
        return LoweringOptions(
            forced_choice=self.forced_choice,
            models=self.models,
            backend=backend,
            workspace=self.workspace_dir is not None,
            fetch=bool(self.fetch_hosts),
        )


def load_settings(given: dict[str, Any]) -> Settings:
    """Read the settings from keyword arguments and the environment.

    The empty text is none where there may be none: `IMAGECALL_BACKEND=` sets no backend.

    Raises:
        SettingsError: one line that names the wrong setting and says what it takes.
    """
    unset = {
        name: None
        for name, field in Settings.model_fields.items()
        if field.default is None and given.get(name, os.environ.get(f"IMAGECALL_{name.upper()}")) == ""
    }
    try:
        return Settings(**(given | unset))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            raise SettingsError(f"There is no setting '{name}'.") from None
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{name} (IMAGECALL_{name.upper()}): {reason}.") from None
