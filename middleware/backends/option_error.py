"""An option of a backend that cannot be right, found when the backend is built."""

from __future__ import annotations

__all__ = ["OptionError"]


class OptionError(ValueError):
    """The message is one sentence; it never repeats what may be a secret.

    Args:
        option: its name, as the backend's parameter and the setting behind `backend_` have it.
        message: what is wrong, and how to mend it.
    """

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option
