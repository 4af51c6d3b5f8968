"""One call's steps as the client reads them: from the phases of `state.py` to frames."""

from __future__ import annotations

from typing import Any

from .calls import Call
from .response import ClientResponse
from .state import CallInput, step
from .tools.base import HostedTool, ToolProgress

__all__ = ["tell"]


def tell(
    call: Call,
    happened: CallInput,
    tool: HostedTool,
    client: ClientResponse,
    progress: ToolProgress | None = None,
) -> list[bytes]:
    """Move a call on and return the frames of every phase of the step.

    Args:
        call: the call; it opens its item in `client` the first time.
        happened: what happened to it.
        tool: names the events and makes the items.
        client: numbers the frames.
        progress: the preview, where the step is one.
    """
    call.state, phases = step(call.state, happened)
    frames = []
    for phase in phases:
        if call.slot is None:
            call.slot, frame = client.open(tool.announced(call.id))
        elif phase == "done":
            frame = client.close(call.slot, call.final, data=call.data)
        else:
            payload: dict[str, Any] = {"type": f"response.{tool.item_type}.{tool.phases[phase]}"}
            if progress is not None:
                payload |= {"partial_image_index": call.previews, **tool.partial(progress)}
            frame = client.event(call.slot, payload, data=progress.data if progress else b"")
        frames.append(frame)
    return frames
