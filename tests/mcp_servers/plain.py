"""An image server with one tool and no more. `python -m mcp_servers.plain` speaks over stdio."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.utilities.types import Image
from painters import png
from starlette.types import ASGIApp

__all__ = ["build", "http_app", "main"]


def build() -> MCPServer:
    """Build the server."""
    server = MCPServer("plain", log_level="CRITICAL")

    @server.tool()
    def generate_image(prompt: str) -> Image:
        """Paint something."""
        if prompt == "fail":
            raise RuntimeError("the brush is broken")
        return Image(data=png(prompt), format="png")

    return server


def http_app() -> ASGIApp:
    """Build the server as an ASGI application, at /mcp."""
    return build().streamable_http_app()


def main() -> None:
    """Serve over stdio."""
    build().run("stdio")


if __name__ == "__main__":
    main()
