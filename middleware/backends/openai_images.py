"""Pictures from a server with OpenAI's Images API, in whichever dialect it speaks.

`POST …/images/generations` makes a picture and `POST …/images/edits` changes given ones. What servers
make of these differs in nearly every field, so as little as possible is sent, and whatever comes back is
believed for what it is: JSON or events, base64 or a URL, or the bytes themselves.

A prompt is written by a model and is never taken for orders: what stable-diffusion.cpp's server would
read as such, `<sd_cpp_extra_args>…</sd_cpp_extra_args>`, is always taken out of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, Self

from .base import Image, ImageError, ImageRequest, OnPartial
from .download import Downloads
from .images_api.call import ImagesCall
from .images_api.errors import AnswerError, ErrorReader
from .images_api.patience import Patience
from .images_api.request import PAINTING, Dialect
from .images_api.server import ImagesServer, parse_url
from .own_headers import own_headers
from .secret_values import Secrets, named_secrets

__all__ = ["OpenAIImagesBackend"]


class OpenAIImagesBackend:
    """Makes pictures with OpenAI, Azure, LiteLLM, vLLM-Omni, SGLang, LocalAI, stable-diffusion.cpp, ….

    Open it with `async with` before the first picture. One object serves any number of calls at a time.

    Options that nobody asked for, nulls and `auto` are never sent. Of `ImageRequest.extra`, the fields of a
    client's declaration that nobody here knows, only those that `pass_on` names are: a stranger's field may
    have a server write files, or send its owner's key elsewhere.

    A busy server (429, 503) is asked again after the time it names, and so is one that cannot be
    reached; all other errors, refusals of the safety system and limits that are used up fail at once.

    Args:
        url: the API's base, such as `http://127.0.0.1:8000/v1`. Its query string goes with each request:
            `https://NAME.openai.azure.com/openai/deployments/MODEL?api-version=2025-04-01-preview`.
        api_key: sent as a bearer token, to the server's own origin only.
        model: the model to name. Left out, none is named.
        models: globs of the model that the client declared, to the server's own names, tried in order. A
            declared model that matches none becomes `model`; it is never forwarded.
        headers: more headers, for the server's own origin only, such as Azure's `api-key`.
        body: more fields of each request. They win over all others except the prompt; a null takes a
            field away.
        drop: fields never sent.
        pass_on: globs of the fields that a client's declaration may set beside those of the Responses API.
        edits: how pictures to edit travel: `multipart` is what most servers take.
        response_format: `auto` asks for base64, except models of the gpt-image family, and asks again
            without it if the server refuses the field; `b64_json` always asks for it, `none` never.
        stream: whether to ask for a stream when previews are wanted. Most servers answer in one piece all
            the same; LiteLLM's proxy fails, and needs False.
        origins: further origins, such as `https://cdn.example.com`, from which the server's pictures may
            be fetched where it answers with URLs.
        timeout: seconds for one picture, further attempts and fetching included.
        retries: further attempts.
        max_bytes: of one picture.
        sleep: waits for so many seconds between attempts.
        now: seconds since the epoch.

    Raises:
        OptionError: a URL or header is malformed; its text is not repeated.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        model: str | None = None,
        models: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        drop: Iterable[str] = (),
        pass_on: Iterable[str] = PAINTING,
        edits: Literal["multipart", "json"] = "multipart",
        response_format: Literal["auto", "b64_json", "none"] = "auto",
        stream: bool = True,
        origins: Iterable[str] = (),
        timeout: float = 300.0,
        retries: int = 2,
        max_bytes: int = 32 << 20,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        own = own_headers(api_key, headers or {})
        self._dialect = Dialect(
            model=model,
            models=dict(models or {}),
            body=dict(body or {}),
            drop=frozenset(drop),
            pass_on=tuple(pass_on),
            edits=edits,
            response_format=response_format,
            stream=stream,
        )
        named = named_secrets([own, parse_url(url).query, self._dialect.body])
        errors = ErrorReader(Secrets(named, own.values()), now)
        self._server = ImagesServer(url, own, Downloads(origins, max_bytes), errors)
        self._patience = Patience(retries, sleep)
        self._plain: set[tuple[str, str | None]] = set()
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def __aenter__(self) -> Self:
        self._server.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.close()

    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> Image:
        """Make one picture, or change those of the request.

        Raises:
            ImageError: the picture could not be made. Its code is the server's own where it has one, else
                `timeout`, `no_image`, `not_an_image`, `image_too_large`, `image_url_not_allowed`, or
                `image_backend_…` and `unreachable`, `unauthorized`, `not_found`, `busy`, `refused`,
                `redirect`, `cut`, `error`.
        """
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                return await self._call(request, on_partial, deadline).make()
        except AnswerError as error:
            self._server.tell(error)
            raise
        except TimeoutError:
            if not deadline.expired():
                raise
            seconds = f"the {self._timeout:g} seconds that backend_timeout allows"
            message = f"The image server made no picture within {seconds}."
            raise ImageError(message, code="timeout") from None

    def _call(self, request: ImageRequest, on_partial: OnPartial, deadline: asyncio.Timeout) -> ImagesCall:
        return ImagesCall(
            server=self._server,
            dialect=self._dialect,
            patience=self._patience,
            plain=self._plain,
            max_bytes=self._max_bytes,
            request=request,
            on_partial=on_partial,
            deadline=deadline,
        )
