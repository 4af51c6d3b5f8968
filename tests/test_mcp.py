"""Pictures from real MCP servers: the official SDK's and FastMCP's, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from imagecall.middleware.backends.mcp import MCPBackend
from imagecall.middleware.images import read_image
from mcp_backends import HTTP, KINDS, PYTHONPATH, STDIO, command, paint, refusal, serving
from mcp_servers.shapes import DOT, SHAPES, WITHOUT_PICTURE, large_png
from picture_files import LIMITS

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOT_IMAGE = read_image(DOT, **LIMITS)


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[MCPBackend]:
    """One server of each kind, for all tests that leave it as it was."""
    kind = request.param
    if kind in STDIO:
        async with MCPBackend(command=command(STDIO[kind]), env=PYTHONPATH) as backend:
            yield backend
    else:
        with serving(HTTP[kind]) as url:
            async with MCPBackend(url=url) as backend:
                yield backend


async def test_a_picture_is_found_wherever_the_result_has_it(backend: MCPBackend) -> None:
    found = {shape: (await paint(backend, shape)).data for shape in SHAPES}
    assert found == dict.fromkeys(SHAPES, DOT)


async def test_the_prompt_that_was_really_used_is_taken_over(backend: MCPBackend) -> None:
    assert (await paint(backend, "JSON in a text")).revised_prompt == "a kite"
    assert await paint(backend, "a dog") == DOT_IMAGE


async def test_a_result_without_a_picture_fails_with_its_own_words(backend: MCPBackend) -> None:
    failures = {shape: await refusal(backend, shape) for shape in WITHOUT_PICTURE}
    assert {shape: failure.message for shape, failure in failures.items()} == {
        "a path": "Image saved to /models/local",
        "an excuse": "❌ The quota is used up.",
        "nothing": "The MCP tool 'generate_image' returned no picture.",
        "other kinds": "The MCP tool 'generate_image' returned no picture.",
    }
    assert {failure.code for failure in failures.values()} == {"no_image"}


async def test_a_tool_that_fails_fails_the_call_with_its_own_words(backend: MCPBackend) -> None:
    failure = await refusal(backend, "fail: The brush is broken. " + "x" * 400)
    assert failure.code == "mcp_tool_error"
    assert failure.message.startswith("The brush is broken. […]")
    failure = await refusal(backend, "fail: " + "so many words " * 40)
    assert len(failure.message) == 300
    assert failure.message.endswith("…")


async def test_a_picture_of_six_megabytes_arrives_whole(backend: MCPBackend) -> None:
    assert (await paint(backend, "large")).data == large_png(6.0)


async def test_ten_calls_run_side_by_side(backend: MCPBackend) -> None:
    images = await asyncio.gather(*(paint(backend, "together 10") for _ in range(10)))
    assert images == [DOT_IMAGE] * 10


async def test_cancelling_a_call_cancels_the_tool_on_the_server(backend: MCPBackend) -> None:
    call = asyncio.create_task(paint(backend, "hang"))
    await paint(backend, "until hanging")
    call.cancel()
    assert await paint(backend, "until cancelled") == DOT_IMAGE
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_picture_is_edited_by_the_servers_own_tool_for_it(backend: MCPBackend) -> None:
    kite = read_image(large_png(0.01), **LIMITS)
    assert await paint(backend, "bluer", images=(kite,)) == kite
