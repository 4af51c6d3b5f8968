"""Responses that are made in the background, on this worker and on others."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from starlette.types import Receive

from ...events.response_object import NEUTRAL
from ..exchange import Exchange
from ..lifetime import Lifetime
from ..stored.owned_store import OwnedStore
from ..stored.safe import StoreError
from ..stored.stored_response import StoredResponse
from .job import Job
from .leases import Leases

__all__ = ["Background"]

log = logging.getLogger("imagecall")

_LOOKS = 20
"""How often it is looked whether another worker has cancelled a response, and …"""
_PAUSE = 0.25
"""… seconds in between."""


class Background:
    """Runs this worker's responses in one task group that lives as long as the application.

    What other workers run is known from the store.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._group: asyncio.TaskGroup
        self._life: Lifetime | None = None
        self._stopping = False

    async def run(self, job: Job, exchange: Exchange, receive: Receive) -> None:
        """Begin a response, and serve the client that asked for it as long as it listens.

        Raises:
            RuntimeError: the server stops.
        """
        if self._life is None:
            self._group = asyncio.TaskGroup()
            self._life = Lifetime(self._group, "The background", RuntimeError("the server stops"))
        await self._life.opened()
        if self._stopping:
            raise RuntimeError("the server stops")
        job.exchange = exchange
        self._jobs[job.id] = job
        self._group.create_task(self._run(job))
        await job.follower.serve(receive)

    async def _run(self, job: Job) -> None:
        try:
            await job.run()
        except Exception:
            log.exception("%s failed in the background", job.id)
        finally:
            del self._jobs[job.id]

    async def current(self, store: OwnedStore, response_id: str) -> StoredResponse | None:
        """Look a response up as it is now; one whose worker has died has failed.

        Raises:
            RequestError: it is gone or somebody else's (404).
            StoreError: the store is strict, and fails.
        """
        stored = await store.response(response_id)
        if stored is None or not stored.running or response_id in self._jobs:
            return stored
        if await Leases(store.shared).held(response_id):
            return stored
        stored = await store.response(response_id)  # it may have ended between the two looks
        if stored is None or not stored.running:
            return stored
        log.warning("%s has failed: the worker that made it is gone", response_id)
        error = {"code": "server_error", "message": NEUTRAL}
        failed = replace(stored, status="failed", body={**stored.body, "status": "failed", "error": error})
        await store.keep_response(failed)
        return failed

    async def cancel(self, store: OwnedStore, stored: StoredResponse) -> StoredResponse | None:
        """End a response wherever it is made, and return what became of it.

        Raises:
            StoreError: nobody could tell the worker that makes it.
        """
        job = self._jobs.get(stored.id)
        if job is not None:
            await job.cancel()
        else:
            if not await Leases(store.shared).cancel(stored.id):
                message = f"The store cannot be reached, and response '{stored.id}' goes on; try again soon."
                raise StoreError(message)
            await self._wait(store, stored.id)
        return await self.current(store, stored.id)

    async def _wait(self, store: OwnedStore, response_id: str) -> None:
        for _ in range(_LOOKS):
            current = await self.current(store, response_id)
            if current is None or not current.running:
                return
            await asyncio.sleep(_PAUSE)

    async def close(self) -> None:
        """End all responses that run here, and wait until they have ended."""
        self._stopping = True
        await asyncio.gather(*(job.stop() for job in [*self._jobs.values()]))
        if self._life is not None:
            await self._life.close()
            self._life = None
        self._stopping = False
