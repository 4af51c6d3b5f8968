"""An image server built with the official SDK. `python -m mcp_servers.official` speaks over stdio."""

from __future__ import annotations

import base64

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp_servers.shapes import DOT
from mcp_servers.studio import FailedError, Studio
from mcp_types import CallToolResult, TextContent
from starlette.types import ASGIApp

__all__ = ["build", "http_app"]


def build(studio: Studio) -> MCPServer:
    """Build the server."""
    server = MCPServer("studio", log_level="CRITICAL")

    @server.tool()
    async def generate_image(prompt: str, ctx: Context, size: str = "auto", n: int = 1) -> CallToolResult:
        """Paint something."""

        async def progress(done: float, message: str) -> None:
            await ctx.report_progress(done, message=message)

        try:
            made = await studio.paint({"prompt": prompt, "size": size, "n": n}, progress)
        except FailedError as error:
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        return CallToolResult.model_validate(made)

    @server.tool()
    def edit_image(prompt: str, image_url: str) -> Image:
        """Change a picture, which is given as a data URL."""
        return Image(data=base64.b64decode(image_url.partition(",")[2]), format="png")

    @server.tool()
    def native(prompt: str) -> Image:
        """Paint in the SDK's own way."""
        return Image(data=DOT, format="png")

    @server.tool()
    def raising(prompt: str) -> Image:
        """Fail in the SDK's own way."""
        raise RuntimeError("the brush is broken")

    @server.resource("image://dot", mime_type="image/png")
    def dot() -> bytes:
        return DOT

    return server


def http_app(studio: Studio, *, json_response: bool = False) -> ASGIApp:
    """Build the server as an ASGI application, at /mcp."""
    return build(studio).streamable_http_app(json_response=json_response)


if __name__ == "__main__":
    build(Studio()).run()
