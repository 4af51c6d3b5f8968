"""Servers with an Images API, one for each dialect that people run, as strict as the real ones are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from images_api import KEY, Asked, ImagesAPI, b64, b64_json
from painters import png
from picture_files import drawn, encoded
from starlette.responses import JSONResponse, Response, StreamingResponse

__all__ = ["DIALECTS", "Azure", "LocalAI", "OpenAI", "RawBytes", "SDServer", "SGLang", "VLLMOmni"]

Json = dict[str, Any]


def sse(*payloads: Json) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), json.dumps(payload).encode())
        for payload in payloads
    )


def error(status: int, message: str, param: str | None = None, code: str | int | None = None) -> JSONResponse:
    told = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": told}, status)


class OpenAI(ImagesAPI):
    """OpenAI's own: refuses what it does not know, streams, counts tokens."""

    config: ClassVar[Json] = {"api_key": KEY, "model": "gpt-image-2"}
    known = frozenset(
        {"model", "prompt", "n", "size", "quality", "background", "output_format", "output_compression"}
        | {"moderation", "stream", "partial_images", "complexity", "user"}
    )
    usage: ClassVar[Json] = {
        "input_tokens": 10,
        "output_tokens": 200,
        "total_tokens": 210,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 0},
    }

    def generations(self, asked: Asked) -> Response:
        return self._refuse(asked, self.known) or self._paint(asked, "image_generation")

    def edits(self, asked: Asked) -> Response:
        known = (self.known | {"input_fidelity", "user"}) - {"moderation"}
        if not asked.is_form or not [file for file in asked.files if file.field in ("image", "image[]")]:
            return error(400, "Missing required parameter: 'image'.", "image", "missing_required_parameter")
        return self._refuse(asked, known) or self._paint(asked, "image_edit")

    def _refuse(self, asked: Asked, known: frozenset[str]) -> Response | None:
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return error(401, "Incorrect API key provided.", code="invalid_api_key")
        for name, value in asked.fields.items():
            if name not in known:
                return error(400, f"Unknown parameter: '{name}'.", name, "unknown_parameter")
            if value is None:
                return error(400, f"Invalid type for '{name}'.", name, "invalid_type")
        if not str(asked.fields.get("model")).startswith("gpt-image"):
            return error(400, "The model does not exist.", "model", "model_not_found")
        return None

    def _paint(self, asked: Asked, kind: str) -> Response:
        facts = {"size": "48x32", "quality": "high", "background": "opaque", "output_format": "png"}
        if str(asked.fields.get("stream")).lower() != "true":
            return b64_json(png(asked.prompt), usage=self.usage, **facts)
        count = int(asked.fields.get("partial_images", 0))
        return StreamingResponse(self._stream(asked, kind, count, facts), media_type="text/event-stream")

    async def _stream(self, asked: Asked, kind: str, count: int, facts: Json) -> AsyncIterator[bytes]:
        for index in range(count):
            preview = {"b64_json": b64(png(f"{asked.prompt} {index}")), "partial_image_index": index}
            yield sse({"type": f"{kind}.partial_image", **preview, "created_at": 1, **facts})
        try:
            await self.passage()
        except asyncio.CancelledError:
            self.was_left.set()
            raise
        done = {"b64_json": b64(png(asked.prompt)), "created_at": 1, **facts, "usage": self.usage}
        yield sse({"type": f"{kind}.completed", **done})


class Azure(OpenAI):
    """The model is in the path, the version in the query, the key in a header of its own."""

    base = "/openai/deployments/painter"
    config: ClassVar[Json] = {"headers": {"api-key": KEY}}

    @property
    def url(self) -> str:
        return f"{super().url}?api-version=2025-04-01-preview"

    def _refuse(self, asked: Asked, known: frozenset[str]) -> Response | None:
        if asked.query != "api-version=2025-04-01-preview":
            return JSONResponse({"error": {"code": "404", "message": "Resource not found"}}, 404)
        if asked.headers.get("api-key") != KEY or "authorization" in asked.headers:
            return JSONResponse({"error": {"code": "401", "message": "Access denied."}}, 401)
        for name in asked.fields:
            if name not in known or name == "model":
                return error(400, f"Unknown parameter: '{name}'.", name, "unknown_parameter")
        return None


class VLLMOmni(ImagesAPI):
    """The model must be the served one or none, a size must be one; edits stream only for some models."""

    config: ClassVar[Json] = {"models": {"gpt-image-*": "Qwen/Qwen-Image"}, "stream": False}

    def generations(self, asked: Asked) -> Response:
        model = asked.fields.get("model", "Qwen/Qwen-Image")
        if model != "Qwen/Qwen-Image":
            return error(400, f"Model mismatch: request specifies '{model}'.", code=400)
        if "x" not in asked.fields.get("size", "x"):
            told = {
                "loc": ["body", "size"],
                "msg": "Value error, size must be WIDTHxHEIGHT",
                "type": "value_error",
            }
            return JSONResponse({"detail": [told]}, 422)
        return b64_json(png(asked.prompt), output_format="png", size="48x32", metrics={"seconds": 1.5})

    def edits(self, asked: Asked) -> Response:
        if asked.fields.get("stream") == "true":
            return error(400, "Streaming needs a multi-stage model.", code=400)
        if not asked.is_form:
            return JSONResponse({"detail": [{"loc": ["body", "prompt"], "msg": "Field required"}]}, 422)
        return self.generations(asked)


class SGLang(ImagesAPI):
    """Answers generations with a relative URL unless base64 is asked for; counts prompt tokens."""

    def __init__(self, *, url_only: bool = False) -> None:
        super().__init__()
        self.url_only = url_only

    def generations(self, asked: Asked) -> Response:
        if asked.fields.get("response_format", "url") == "b64_json" and not self.url_only:
            return self._answer(asked, {"b64_json": b64(png(asked.prompt))})
        return self._answer(asked, {"url": f"/v1/images/{asked.prompt.encode().hex()}/content"})

    def edits(self, asked: Asked) -> Response:
        if not asked.files:
            return JSONResponse({"detail": "Field 'image' or 'url' is required"}, 422)
        return self._answer(asked, {"b64_json": b64(png(asked.prompt))})

    def download(self, asked: Asked) -> Response:
        return Response(png(bytes.fromhex(asked.path.split("/")[3]).decode()), media_type="image/png")

    def _answer(self, asked: Asked, entry: Json) -> Response:
        entry |= {"revised_prompt": asked.prompt, "file_path": "/srv/outputs/1.png"}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        return JSONResponse({"id": "1", "created": 1, "data": [entry], "usage": usage})


class LocalAI(ImagesAPI):
    """Answers with an absolute URL unless base64 is asked for; has no edits."""

    def generations(self, asked: Asked) -> Response:
        if asked.fields.get("response_format") == "b64_json":
            return b64_json(png(asked.prompt))
        name = asked.prompt.encode().hex()
        return JSONResponse({"created": 1, "data": [{"url": f"{self.origin}/generated-images/{name}.png"}]})

    def download(self, asked: Asked) -> Response:
        stem = asked.path.rpartition("/")[2].removesuffix(".png")
        return Response(png(bytes.fromhex(stem).decode()), media_type="image/png")


class SDServer(ImagesAPI):
    """stable-diffusion.cpp's: fails on null numbers, knows few fields, takes orders from the prompt."""

    def generations(self, asked: Asked) -> Response:
        for name in ("n", "output_compression"):
            if name in asked.fields and not isinstance(asked.fields[name], int):
                told = f"[json.exception.type_error.302] type must be number, but is {name}"
                return JSONResponse({"error": "server_error", "message": told}, 500)
        return self._paint(asked)

    def edits(self, asked: Asked) -> Response:
        if not asked.is_form:
            return JSONResponse({"error": "Content-Type must be multipart/form-data"}, 400)
        return self._paint(asked)

    def _paint(self, asked: Asked) -> Response:
        if not asked.prompt:
            return JSONResponse({"error": "prompt required"}, 400)
        assert "<sd_cpp_extra_args>" not in asked.prompt, "the prompt steers the server"
        width, _, height = asked.fields.get("size", "48x32").partition("x")
        rounded = (-(-int(width) // 8) * 8, -(-int(height) // 8) * 8)
        return b64_json(encoded(drawn(size=rounded), "PNG"), output_format="png")


class RawBytes(ImagesAPI):
    """Answers with the picture's own bytes, as endpoints of the Hugging Face kind do."""

    def generations(self, asked: Asked) -> Response:
        return Response(png(asked.prompt), media_type="image/png")


DIALECTS = (OpenAI, Azure, VLLMOmni, SGLang, LocalAI, SDServer, RawBytes)
