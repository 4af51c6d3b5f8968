"""An MCP server with one tool that returns a 3 MB picture at once: `python -m bench.painter PORT`."""

from __future__ import annotations

import json
import sys

from fastmcp import FastMCP

from .stream import picture_base64

server: FastMCP = FastMCP("painter")
_ANSWER = json.dumps({"b64_json": picture_base64()})
"""As text, the one shape that all contenders understand."""


@server.tool
def generate_image(prompt: str) -> str:  # noqa: ARG001  the tool's own argument
    """Make a picture."""
    return _ANSWER


if __name__ == "__main__":
    server.run(
        transport="http", host="127.0.0.1", port=int(sys.argv[1]), log_level="WARNING", show_banner=False
    )
