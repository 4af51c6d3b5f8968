"""How the model is told that a call of its own cannot be run as it stands."""

from __future__ import annotations

from .base import ToolArgumentError, ToolError

__all__ = ["refused"]


def refused(message: str, param: str | None, code: str = "invalid_arguments") -> ToolArgumentError:
    """Make the error of a call with wrong arguments.

    Args:
        message: one sentence for the model and the client: what is wrong and how to mend it.
        param: the argument at fault.
        code: anything but `invalid_arguments` tells the model that another try is of no use.
    """
    return ToolArgumentError(ToolError(message, code=code, type="image_generation_user_error", param=param))
