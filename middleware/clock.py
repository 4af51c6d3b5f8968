"""The clock of one response: keep-alives for its client, and an end to what takes too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from .delivery import Delivery
from .settings import Settings
from .turns import InnerTurn

__all__ = ["Clock", "StalledError"]

log = logging.getLogger("imagecall")

_TOO_LONG = "The response was not finished within the %g seconds that response_timeout allows."
_SILENT = "The model server was silent for the %g seconds that upstream_idle allows."

EndBy = Callable[[str], Awaitable[None]]
"""Ends something; is told what the client may know of it."""


class StalledError(Exception):
    """The client takes nothing any more, and everybody waits for it."""


class Clock:
    """Watches the limits of one response from its beginning.

    Args:
        settings: the limits.
        delivery: the client's end.
        turn: returns the turn that is running.
        end: ends the response.
        end_turn: ends the turn that is running.
    """

    __slots__ = ("_delivery", "_end", "_end_turn", "_now", "_settings", "_turn")

    def __init__(
        self,
        settings: Settings,
        delivery: Delivery,
        turn: Callable[[], InnerTurn],
        *,
        end: EndBy,
        end_turn: EndBy,
    ) -> None:
        self._settings = settings
        self._delivery = delivery
        self._turn = turn
        self._end = end
        self._end_turn = end_turn
        self._now = asyncio.get_running_loop().time

    async def run(self) -> None:
        """Keep the client's connection alive and end what takes too long."""
        settings = self._settings
        end = self._now() + settings.response_timeout
        while True:
            now = self._now()
            if now >= end:
                await self._end(_TOO_LONG % settings.response_timeout)
                return
            silent = self._silent_since(now) + settings.upstream_idle
            if now >= silent:
                log.warning("the model server was silent for %g seconds", settings.upstream_idle)
                await self._end_turn(_SILENT % settings.upstream_idle)
                continue
            alive = self._delivery.sent + settings.keepalive if settings.keepalive else end
            if now >= alive:
                await self._delivery.keep_alive()
                continue
            await asyncio.sleep(max(0.001, min(end, silent, alive) - now))

    def cut_off_late(self, group: asyncio.TaskGroup, on_cut: Callable[[], None]) -> asyncio.TimerHandle:
        """End all tasks of a group by a `StalledError` when the response should have ended long ago.

        Its end is told to the client like everything else, so it may have to wait for a client that takes
        nothing and does not go.

        Args:
            group: the tasks.
            on_cut: is called just before.

        Returns:
            what cancels this.
        """

        async def end() -> None:
            raise StalledError

        def cut() -> None:
            self._delivery.gone = True
            on_cut()
            group.create_task(end())

        return asyncio.get_running_loop().call_later(self._settings.client_patience, cut)

    def _silent_since(self, now: float) -> float:
        """Tell when the model server last said something; `now` while a client takes it in."""
        if self._delivery.busy:
            return now
        return max(self._delivery.heard, self._turn().silent_since(now))
