"""What is kept in the tests of an owner's part of the store."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.errors import RequestError
from imagecall.middleware.stored.owned_store import StoredResponse

__all__ = ["DATA", "KITE", "SKY", "TEXT", "refusal", "response"]

KITE = {"id": "ig_kite", "type": "image_generation_call", "status": "completed", "revised_prompt": "a kite"}
TEXT = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
DATA = b"a2l0ZQ=="
SKY = "data:image/png;base64,c2t5"


def response(response_id: str = "resp_1", **changes: Any) -> StoredResponse:
    """Make a response that drew a kite in two turns."""
    fields: dict[str, Any] = {
        "id": response_id,
        "status": "completed",
        "upstream": (response_id, "resp_inner"),
        "body": {"id": response_id, "object": "response", "status": "completed", "output": [KITE, TEXT]},
        "input": "Draw a kite.",
    }
    return StoredResponse(**{**fields, **changes})


async def refusal(known: Any) -> tuple[int, str, str | None, str | None]:
    with pytest.raises(RequestError) as caught:
        await known
    error = caught.value
    return error.status, error.message, error.param, error.code
