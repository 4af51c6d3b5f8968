"""An image server built with FastMCP. `python -m mcp_servers.fast` speaks over stdio."""

from __future__ import annotations

import base64
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.types import Image
from mcp_servers.shapes import DOT, DOT_BASE64
from mcp_servers.studio import FailedError, Studio
from mcp_types import CallToolResult
from starlette.types import ASGIApp

__all__ = ["build", "http_app"]


def build(studio: Studio) -> FastMCP:
    """Build the server."""
    server = FastMCP("studio")

    @server.tool
    async def generate_image(prompt: str, ctx: Context, size: str = "auto", n: int = 1) -> ToolResult:
        """Paint something."""

        async def progress(done: float, message: str) -> None:
            await ctx.report_progress(done, message=message)

        try:
            made = await studio.paint({"prompt": prompt, "size": size, "n": n}, progress)
        except FailedError as error:
            raise ToolError(str(error)) from None
        parsed = CallToolResult.model_validate(made)
        return ToolResult(content=parsed.content, structured_content=parsed.structured_content)

    @server.tool
    def edit_image(prompt: str, image_url: str) -> Image:
        """Change a picture, which is given as a data URL."""
        return Image(data=base64.b64decode(image_url.partition(",")[2]), format="png")

    @server.tool
    def native(prompt: str) -> Image:
        """Paint in FastMCP's own way."""
        return Image(data=DOT, format="png")

    @server.tool
    def dictionary(prompt: str) -> dict[str, Any]:
        """Paint into a dictionary, which FastMCP makes both text and structured content."""
        return {"result": DOT_BASE64, "revised_prompt": prompt.upper()}

    @server.tool
    def raising(prompt: str) -> Image:
        """Fail in FastMCP's own way."""
        raise RuntimeError("the brush is broken")

    @server.resource("image://dot", mime_type="image/png")
    def dot() -> bytes:
        return DOT

    return server


def http_app(studio: Studio, *, json_response: bool = False) -> ASGIApp:
    """Build the server as an ASGI application, at /mcp."""
    return build(studio).http_app(json_response=json_response)


if __name__ == "__main__":
    build(Studio()).run(show_banner=False, log_level="CRITICAL")
