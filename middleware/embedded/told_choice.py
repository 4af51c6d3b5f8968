"""Lets a chat template know whether a function has to be called."""

from __future__ import annotations

from typing import Any

from ...events.wire import dumps, loads
from .rewriting import Rewriting

__all__ = ["ToldChoice"]


class ToldChoice(Rewriting):
    """Tells llama.cpp's chat template the request's `tool_choice`, which it would not see otherwise.

    The server itself only restricts what the model may write: with "required" it may talk at
    length before it calls, and with "none" it writes its calls as text. The template knows better.
    """

    def rewrite(self, data: bytes) -> bytes | None:
        """Return the body with the choice told, None if it has none in words."""
        try:
            request: Any = loads(data)
        except ValueError:
            return None
        if not isinstance(request, dict) or not isinstance(request.get("tool_choice"), str):
            return None
        return dumps({**request, "chat_template_kwargs": {"tool_choice": request["tool_choice"]}})
