"""Asking a busy server again: after how long, how often, and not beyond the call's own deadline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_exponential_jitter

from .errors import TryLaterError

__all__ = ["Patience"]

log = logging.getLogger("imagecall")

T = TypeVar("T")

_backoff = wait_exponential_jitter(multiplier=0.5, max=8.0, jitter=0.5)
"""Seconds where the server names none; spread out, so that callers do not come back all at once."""


class Patience:
    """How often a `TryLaterError` is met with another attempt.

    Args:
        retries: further attempts after the first.
        sleep: waits for so many seconds.
    """

    def __init__(self, retries: int, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._retries = retries
        self._sleep = sleep

    async def until(self, attempt: Callable[[], Awaitable[T]], deadline: asyncio.Timeout) -> T:
        """Return what an attempt returns, or raise the last one's error.

        A wait that would outlast the deadline is not begun: the server's own words help more than a timeout.
        """
        clock = asyncio.get_running_loop().time

        def is_over(state: RetryCallState) -> bool:
            when = deadline.when()
            assert when is not None
            return state.attempt_number > self._retries or clock() + state.upcoming_sleep >= when

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TryLaterError),
            stop=is_over,
            wait=_wait,
            sleep=self._sleep,
            before_sleep=_tell,
            reraise=True,
        )
        return await retrying(attempt)


def _wait(state: RetryCallState) -> float:
    error = _error(state)
    return _backoff(state) if error.wait is None else error.wait


def _tell(state: RetryCallState) -> None:
    log.info(
        "The image server makes no picture (%s); attempt %d follows in %.1f seconds.",
        _error(state).code,
        state.attempt_number + 1,
        state.upcoming_sleep,
    )


def _error(state: RetryCallState) -> TryLaterError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, TryLaterError)
    return error
