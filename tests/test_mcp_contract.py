"""The contract of backends, kept with a real MCP server over either transport."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forking import forked
from imagecall.middleware.backends.base import ImageRequest
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.backends.testing import BackendContract
from mcp_servers import plain
from serving import serve


class _Contract(BackendContract):
    patience = 60.0
    longest_block = 30.0

    @pytest.fixture
    def failing(self, backend: MCPBackend) -> tuple[MCPBackend, ImageRequest]:
        return backend, ImageRequest("fail")


@pytest.fixture(scope="module")
def command() -> Iterator[list[str]]:
    with forked(plain.__name__) as command:
        yield command


class TestStdio(_Contract):
    @pytest.fixture
    def backend(self, command: list[str]) -> MCPBackend:
        return MCPBackend(command=command)


class TestHTTP(_Contract):
    @pytest.fixture
    def backend(self) -> Iterator[MCPBackend]:
        with serve(plain.http_app()) as url:
            yield MCPBackend(url=f"{url}/mcp")
