"""Whose a cancellation is."""

from __future__ import annotations

import asyncio

__all__ = ["forgive", "from_outside"]


def from_outside() -> bool:
    """Tell, where a `CancelledError` was caught, whether somebody wants this task to end.

    Otherwise the error is of the making of what the task called, such as an application, a backend or a
    store of somebody else's, and a failure like any other.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def forgive() -> None:
    """Let a task that caught a `CancelledError` from outside, and will end by itself, go on."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
