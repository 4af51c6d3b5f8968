"""`OpenAIImagesBackend` keeps the contract of backends, in front of a strict server and of a lax one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from image_servers import OpenAI, SDServer
from imagecall.middleware.backends.base import ImageRequest
from imagecall.middleware.backends.openai_images import OpenAIImagesBackend
from imagecall.middleware.backends.testing import BackendContract
from images_api import ImagesAPI


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[ImagesAPI]:
    made: ImagesAPI = request.cls.dialect()
    with made.served():
        yield made


class _Contract(BackendContract):
    supports_edits = True
    sizes = ("96x64", "64x64", "64x96")
    longest_block = 30.0

    @pytest.fixture
    def failing(self, server: ImagesAPI) -> tuple[OpenAIImagesBackend, ImageRequest]:
        return OpenAIImagesBackend(server.origin + "/nowhere"), ImageRequest("a kite")


class TestStrict(_Contract):
    dialect = OpenAI
    supports_previews = True

    @pytest.fixture
    def backend(self, server: ImagesAPI) -> OpenAIImagesBackend:
        return OpenAIImagesBackend(server.url, **server.config, drop=("x_style", "x_options"))


class TestLax(_Contract):
    dialect = SDServer

    @pytest.fixture
    def backend(self, server: ImagesAPI) -> OpenAIImagesBackend:
        return OpenAIImagesBackend(server.url)
