"""The backend in front of a real LiteLLM proxy, behind which stands a server that speaks as OpenAI's does."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from image_servers import OpenAI
from imagecall.middleware.backends.base import ImageRequest
from images_api import Asked, ImagesAPI
from kite import KITE
from litellm_proxy import MASTER_KEY, litellm_proxy
from painters import png
from painting import Naps, failed_item, painted, refused, respond
from parts import require
from picture_files import drawn, encoded, read
from starlette.responses import JSONResponse, Response

_COMMAND = os.environ.get("IMAGECALL_TEST_LITELLM", "")
"""Read before any test starts: the tests themselves see no setting from outside."""


class Behind(OpenAI):
    """The server behind the proxy.

    Attributes:
        refusal: what it answers instead of painting.
    """

    refusal: Response | None = None

    def generations(self, asked: Asked) -> Response:
        return self.refusal or super().generations(asked)


class Proxy(ImagesAPI):
    """The proxy itself, which runs already."""

    config: ClassVar[dict[str, Any]] = {
        "api_key": MASTER_KEY,
        "models": {"gpt-image-*": "painter"},
        "model": "painter",
        "stream": False,
    }

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @contextmanager
    def served(self) -> Iterator[str]:
        yield self._url


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Behind, Proxy]]:
    require(bool(_COMMAND), "LiteLLM is missing: set IMAGECALL_TEST_LITELLM to the path of its `litellm`.")
    behind = Behind()
    with behind.served() as url, litellm_proxy(_COMMAND, url, tmp_path_factory.mktemp("litellm")) as proxy:
        yield behind, Proxy(proxy)


@pytest.fixture
def behind(servers: tuple[Behind, Proxy]) -> Behind:
    server, _ = servers
    server.asked.clear()
    server.refusal = None
    return server


@pytest.fixture
def proxy(servers: tuple[Behind, Proxy]) -> Proxy:
    return servers[1]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_picture_comes_through_the_proxy_and_the_middleware(
    behind: Behind, proxy: Proxy, stream: bool
) -> None:
    wanted = {"model": "gpt-image-2", "quality": "high", "size": "1024x1024", "partial_images": 2}
    response, _ = await respond(proxy, stream=stream, hosted=wanted)
    picture = response["output"][0]
    assert (response["status"], picture["status"]) == ("completed", "completed")
    assert base64.b64decode(picture["result"]) == png(KITE)
    assert (picture["quality"], picture["size"]) == ("high", "48x32")
    assert response["tool_usage"]["image_gen"]["total_tokens"] == 210
    painted_for = {"model": "gpt-image-1", "prompt": KITE, "n": 1, "quality": "high", "size": "1024x1024"}
    assert [asked.fields for asked in behind.asked if asked.method == "POST"] == [painted_for]


async def test_an_edit_comes_through_the_proxy(behind: Behind, proxy: Proxy) -> None:
    pictures = (read(encoded(drawn(), "PNG")), read(encoded(drawn(), "JPEG")))
    request = ImageRequest("a kite", images=pictures, mask=pictures[0], input_fidelity="high")
    assert (await painted(proxy, request)).data == png("a kite")
    asked = behind.asked[-1]
    assert asked.path == "/v1/images/edits"
    assert asked.fields == {"model": "gpt-image-1", "prompt": "a kite", "n": "1", "input_fidelity": "high"}
    assert [(file.field, file.data) for file in asked.files] == [
        ("image[]", pictures[0].data),
        ("image[]", pictures[1].data),
        ("mask", pictures[0].data),
    ]


@pytest.mark.parametrize(
    ("status", "error", "code", "words"),
    [
        (
            400,
            {
                "code": "moderation_blocked",
                "type": "image_generation_user_error",
                "message": "Your request was rejected by the safety system.",
                "moderation_details": {"moderation_stage": "input", "categories": ["violence"]},
            },
            "moderation_blocked",
            "rejected by the safety system",
        ),
        (
            400,
            {"code": "billing_hard_limit_reached", "message": "Billing hard limit has been reached"},
            "billing_hard_limit_reached",
            "limit is used up (billing_hard_limit_reached)",
        ),
        (
            429,
            {"code": "insufficient_quota", "message": "You exceeded your current quota"},
            "insufficient_quota",
            "limit is used up (insufficient_quota)",
        ),
        (400, {"code": "invalid_value", "message": "Unknown size"}, "image_backend_refused", "Unknown size"),
        (500, {"message": "out of paint"}, "image_backend_error", "out of paint"),
    ],
    ids=["safety", "billing", "quota", "refusal", "failure"],
)
async def test_what_the_proxy_leaves_of_an_error_is_understood(
    behind: Behind, proxy: Proxy, status: int, error: dict[str, Any], code: str, words: str
) -> None:
    behind.refusal = JSONResponse({"error": {"type": None, "param": None, **error}}, status)
    item = await failed_item(proxy)
    assert item["error"]["code"] == code
    assert words in item["error"]["message"]


async def test_a_busy_server_behind_the_proxy_is_asked_again(behind: Behind, proxy: Proxy) -> None:
    naps = Naps()
    behind.refusal = JSONResponse({"error": {"code": "rate_limit_exceeded", "message": "slow down"}}, 429)
    error = await refused(proxy, sleep=naps, retries=1)
    assert error.message.startswith("The image server answered 429 (Too Many Requests)")
    assert len(naps.seconds) == 1


@pytest.mark.parametrize(("key", "model"), [("sk-wrong", "painter"), (MASTER_KEY, "unknown")])
async def test_a_key_or_model_that_the_proxy_does_not_know_fails_in_its_own_words(
    behind: Behind, proxy: Proxy, key: str, model: str
) -> None:
    error = await refused(proxy, api_key=key, model=model)
    assert error.message.startswith("The image server answered 40")
    assert key not in error.message
    assert "POST" not in [asked.method for asked in behind.asked]
